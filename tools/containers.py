"""Writes the page of what a job's container finds: its folders and variables, here and in SageMaker, and docker's options."""

from __future__ import annotations

from pathlib import Path

from agent.container.options import MEANING
from contract import containers, training
from tools.markdown import plain

PAGE = Path(__file__).parent.parent / "docs" / "container-options.md"
HEAD = """# What a container finds

Written by `make docs`; edit `contract/containers.py` and `node/agent/container/options.py` instead. [How to use it](containers.md).

## Folders and names, here and in SageMaker

One image runs as a job on EC2 and as a line of a [grid](grid.md). Where a name differs, let the program look for both:
`os.environ.get("CHECKPOINT_DIR", "/opt/ml/checkpoints")`.

| what | folder in a job's container | variable here | folder in SageMaker | variable in SageMaker (set by AWS's toolkit) |
|---|---|---|---|---|
"""
NOTHING = "-"
SAGEMAKER = (
    (
        "checkpoints, restored and committed",
        containers.CHECKPOINTS,
        training.CHECKPOINT_DIR,
        "/opt/ml/checkpoints",
        NOTHING,
    ),
    ("results that are kept", containers.ARTIFACTS, training.ARTIFACTS_DIR, "/opt/ml/model", "SM_MODEL_DIR"),
    ("code that comes beside the image", containers.CODE, NOTHING, "/opt/ml/code", "SM_MODULE_DIR"),
    ("room for data; SageMaker has channels there", containers.DATA, NOTHING, "/opt/ml/input/data", "SM_CHANNEL_..."),
    ("progress", containers.PROGRESS, training.PROGRESS_FILE, NOTHING, "metrics in printed lines"),
    ("name of the job", NOTHING, training.JOB_ID, NOTHING, "TRAINING_JOB_NAME"),
    (
        "number of machines",
        NOTHING,
        training.NUM_NODES,
        "/opt/ml/input/config/resourceconfig.json",
        "SM_HOSTS (a list)",
    ),
    (
        "this machine among them",
        NOTHING,
        training.NODE_RANK,
        "/opt/ml/input/config/resourceconfig.json",
        "SM_CURRENT_HOST",
    ),
    ("address of the first", NOTHING, training.MASTER_ADDR, NOTHING, "SM_MASTER_ADDR, MASTER_ADDR"),
    ("its port", NOTHING, training.MASTER_PORT, NOTHING, "MASTER_PORT"),
    ("which attempt it is", NOTHING, training.ATTEMPT, NOTHING, NOTHING),
    (
        "arguments of the entry point",
        NOTHING,
        "arguments of the request",
        NOTHING,
        "ContainerArguments, hyperparameters",
    ),
)
"""What it is; folder and name here; folder and name there."""
OPTIONS = """
## What docker is told

The node's agent runs `docker run` with these options and no others, then the image by its digest, then the words of the job as they stand.
No shell reads them. `--gpus` and `--device` are there where the instance type has such devices, `--workdir` where the request has code,
`--entrypoint` where it has a command.

| option | meaning |
|---|---|
"""


def pages() -> dict[Path, str]:
    return {PAGE: page()}


def page() -> str:
    """Returns docs/container-options.md."""
    names = "\n".join(f"| {' | '.join([what, *map(_code, words)])} |" for what, *words in SAGEMAKER)
    options = "\n".join(f"| `{option}` | {_sentence(meaning)} |" for option, meaning in MEANING.items())
    return f"{HEAD}{names}\n{OPTIONS}{options}\n"


def _code(word: str) -> str:
    return "" if word == NOTHING else f"`{word}`" if " " not in word else plain(word)


def _sentence(meaning: str) -> str:
    parts = meaning.split("`")
    return "`".join(part if number % 2 else plain(part) for number, part in enumerate(parts))
