"""Writes the page of what a job's container finds: its folders and variables, here and in SageMaker, and docker's options."""

from __future__ import annotations

from pathlib import Path

from agent.container.options import MEANING
from tools import docker_options
from tools.container_names import NAMES, SharedName
from tools.docker_options import OPTIONS, Documented
from tools.launcher_names import LAUNCHERS, LauncherName
from tools.markdown import plain

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "container-options.md"
HEAD = """# What a container finds

Written by `make docs`; edit `tools/container_names.py`, `tools/launcher_names.py`, `tools/docker_options.py` and
`node/agent/container/options.py` instead.
[How to use it](../guides/containers.md).

## Folders and names, here and in SageMaker

One image runs as a job on EC2 and as a line of a [grid](../guides/grid.md). Where a name differs, let the program look for both:
`os.environ.get("CHECKPOINT_DIR", "/opt/ml/checkpoints")`.
[examples/image_job](../../examples/image_job/train.py) does so for all that it needs.

SageMaker itself sets what the third column has, in every container. The names of the fourth are those of AWS's toolkit, which its own
containers for SageMaker have (their tags end in `-sagemaker`) and which runs there as long as the line has no `entrypoint`. `<NAME>` is the
name of a channel or of a hyperparameter, in capitals.

| what | in a job's container | in SageMaker | in SageMaker, by AWS's toolkit |
|---|---|---|---|
"""
PROCESSES = """
## Who starts its processes, here and in SageMaker

The same program, under torchrun or mpirun, as a job and as a line of a grid. On the line's side all of it is what AWS's toolkit does in its
containers. What a program writes for both sides asks its launcher: `torch.distributed` and MPI know rank and world everywhere.

| what | job, torchrun | job, mpi | line, torchrun | line, mpi |
|---|---|---|---|---|
"""
DOCKER = """
## What docker is told

The node's agent runs `docker run` with these options and no others, then the image by its digest, then the words of the job unchanged.
No shell reads them. `--gpus` and `--device` are there where the instance type has such devices, `--workdir` where the request has code,
`--entrypoint` where it has a command.

Each is checked against [docker's reference]({docker}) and, for GPUs, against [NVIDIA's]({nvidia}); a test checks every value against what
the reference allows. What the last column says needs a real docker or the hardware, and no rehearsal has shown it.

| option | meaning | documented | not shown by a rehearsal |
|---|---|---|---|
"""


def pages() -> dict[Path, str]:
    return {PAGE: page()}


def page() -> str:
    """Returns docs/reference/container-options.md."""
    names = "\n".join(map(_name, NAMES))
    options = "\n".join(_option(option, OPTIONS[option]) for option in MEANING)
    launchers = "\n".join(map(_launcher, LAUNCHERS))
    return f"{HEAD}{names}\n{PROCESSES}{launchers}\n{DOCKER.format(docker=docker_options.DOCKER, nvidia=docker_options.NVIDIA)}{options}\n"


def _name(one: SharedName) -> str:
    here = _cell(one.here, one.here_words)
    return f"| {one.what} | {here} | {_cell(one.platform, one.there_words)} | {_cell(one.toolkit, '')} |"


def _launcher(one: LauncherName) -> str:
    return f"| {' | '.join((one.what, *one.cells))} |"


def _cell(names: tuple[str, ...], words: str) -> str:
    return ", ".join(f"`{one}`" for one in names) + (f"{': ' if names and words else ''}{words}")


def _option(option: str, one: Documented) -> str:
    where = f"[{one.takes}]({one.address})" + (f", [NVIDIA]({one.more})" if one.more else "")
    return f"| `{option}` | {_sentence(MEANING[option])} | {where} | {_sentence(one.untested)} |"


def _sentence(meaning: str) -> str:
    parts = meaning.split("`")
    return "`".join(part if number % 2 else plain(part) for number, part in enumerate(parts))
