"""The table of mistakes that a new user makes: a test makes each for real, and `make docs` makes a page of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from tools import markdown

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "mistakes.md"
WIDTH = 100
"""The most characters of a request that the page shows."""
MOST_LINES = 3
"""Lines of an answer."""
ANY = "…"
"""Stands in an answer for what differs between computers and runs."""
REQUEST: Mapping[str, Any] = {"command": ["python", "train.py"], "instance_types": ["t3.large"], "max_hours": 0.5}
CODE: Mapping[str, str] = {"train.py": "print('trained')\n"}
COMMAND = "python -m rehearsal --job mine.json --code my-code"


class Stage(Enum):
    """When a mistake is noticed."""

    SET_UP = "Before anything runs"
    READING = "While the command line and the request are read: nothing is deployed"
    ADMIT = "In the state Admit: nothing is launched"
    TRAINING = "On a machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """What a person does, and what is printed."""

    name: str
    stage: Stage
    says: tuple[str, ...]
    """The lines of the answer."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Of the request, in place of those of REQUEST."""
    code: Mapping[str, str] = field(default_factory=dict)
    """Files of the folder of code, in place of those of CODE; none of them is executable."""
    text: str = ""
    """The whole file, where it is no request."""
    options: tuple[str, ...] = ("--code", "my-code")
    does: str = ""
    """What the person does, where it is more than such a request."""


REFUSED = "InvalidRequest: The request was refused; nothing was started."
CORRECT = "Next: correct the request, and rehearse it again."
MEND = "Next: correct the code or the command, and rehearse it again."
ROWS = (
    Mistake(
        name="the environment is not activated",
        stage=Stage.SET_UP,
        does=COMMAND.replace("python", "python3", 1),
        says=(
            f"A rehearsal needs its environment, and {ANY} has no rich: run `make -C {ANY} setup-rehearsal` once, then `source {ANY}`",
        ),
    ),
    Mistake(
        name="it was never set up",
        stage=Stage.SET_UP,
        does=COMMAND,
        says=(
            f"A rehearsal is not set up, as there is no node_modules/.bin/cdk: run `make -C {ANY} setup-rehearsal` once, then {ANY}",
        ),
    ),
    Mistake(
        name="another folder (`cd` into the checkout, or name it: `make -C trainyard rehearse`)",
        stage=Stage.SET_UP,
        does=COMMAND,
        says=(f"{ANY}: No module named rehearsal",),
    ),
    Mistake(
        name="no network",
        stage=Stage.SET_UP,
        does="make setup-rehearsal",
        says=(
            f"No network: the package index at {ANY} could not be reached ({ANY}). Set-up needs it once: connect, or name a proxy "
            "(HTTPS_PROXY) or an index that can be reached (PIP_INDEX_URL), and run the same command again.",
        ),
    ),
    Mistake(
        name="Ctrl-C half way",
        stage=Stage.SET_UP,
        does=f"{COMMAND}, then Ctrl-C",
        says=(f"{ANY} s  interrupted at: {ANY}; every process has ended. Results so far: rehearsal/out/{ANY}",),
    ),
    Mistake(
        name="wrong JSON",
        stage=Stage.READING,
        text='{"command": "python train.py", "instance_types": ["t3.large"],}',
        says=(
            f"--job {ANY}mine.json: is not JSON: {ANY} in line 1, column {ANY} (JSON has no comma there); allowed: a JSON object",
        ),
    ),
    Mistake(
        name="no code",
        stage=Stage.READING,
        options=(),
        says=("--code is missing; allowed: a folder, unless --image names one with a Dockerfile",),
    ),
    Mistake(
        name="the request names code in S3, and no folder is given",
        stage=Stage.READING,
        fields={"code": "s3://REPLACE-WITH-UploadPrefix/ddp_digits.tar.gz"},
        options=(),
        says=(
            "--code is missing: the account of a rehearsal does not have the code that the request names; allowed: a folder, which "
            "is uploaded in its place",
        ),
    ),
    Mistake(
        name="a folder that is not there",
        stage=Stage.READING,
        options=("--code", "nowhere"),
        says=("--code nowhere: there is no such folder",),
    ),
    Mistake(
        name="a number in words",
        stage=Stage.READING,
        options=("--code", "my-code", "--nodes", "two"),
        says=("--nodes two: must be a whole number of at least 1, such as 2",),
    ),
    Mistake(
        name="a fault with a typing error",
        stage=Stage.READING,
        options=("--code", "my-code", "--fault", "node-loss:rank=1"),
        says=(
            "--fault node-loss: there is no such fault (did you mean node-lost?); the others: python -m rehearsal --help",
        ),
    ),
    Mistake(
        name="a fault of a node that the job does not have",
        stage=Stage.READING,
        options=("--code", "my-code", "--fault", "node-lost:rank=1"),
        says=("--fault node-lost: rank is 1, and the job has rank 0 alone; allowed: 0, or all",),
    ),
    Mistake(
        name="a fault of spot nodes in a job without them",
        stage=Stage.READING,
        options=("--code", "my-code", "--fault", "spot-kill"),
        says=(
            "--fault spot-kill: strikes spot nodes, and the request's market is on-demand; allowed: beside a market of spot",
        ),
    ),
    Mistake(
        name="a wrong type",
        stage=Stage.READING,
        fields={"nodes": "2"},
        says=(
            'mine.json: nodes: "2" is not a whole number (numbers have no quotes); allowed: a whole number from 1 to 16 '
            "(limits.max_nodes in cdk.json)",
        ),
    ),
    Mistake(
        name="fields of other tools",
        stage=Stage.READING,
        fields={"timeout": 3600, "gpus": 1, "env": {"A": "1"}, "spot": True},
        says=(
            "mine.json: timeout (did you mean max_hours?), gpus (did you mean instance_types or accelerators?), env (did you mean "
            f"environment?), spot (did you mean market?): there are no such fields; allowed: code, command, {ANY}",
        ),
    ),
    Mistake(
        name="a placeholder of an example",
        stage=Stage.READING,
        fields={"data": ["s3://trainyard-bytes-REPLACE-WITH-ACCOUNT-eu-central-1/uploads/digits/"]},
        says=(
            "mine.json: data: s3://trainyard-bytes-REPLACE-WITH-ACCOUNT-eu-central-1/uploads/digits/ has the placeholder of the example; "
            "allowed: the number of the account in the place of REPLACE-WITH-ACCOUNT",
        ),
    ),
    Mistake(
        name="a region in which nothing is deployed",
        stage=Stage.READING,
        fields={"region": "us-east-1"},
        says=(
            "mine.json: region: the deployment does not train in us-east-1; allowed: eu-central-1 (regions with a cidr or a vpc in "
            "cdk.json)",
        ),
    ),
    Mistake(
        name="a secret by its name",
        stage=Stage.READING,
        fields={"secrets": {"TOKEN": "my-token"}},
        says=(
            "mine.json: secrets.TOKEN: my-token is not the ARN of a secret; allowed: "
            "arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME",
        ),
    ),
    Mistake(
        name="a file that the code does not have",
        stage=Stage.READING,
        fields={"command": ["python", "trian.py"]},
        says=(
            "mine.json: command: runs trian.py, which is not in my-code (did you mean train.py?); allowed: a file of the archive, by its "
            "path from the archive's root",
        ),
    ),
    Mistake(
        name="no execution bit",
        stage=Stage.READING,
        fields={"command": ["./run.sh"]},
        code={"run.sh": "#!/bin/sh\npython train.py\n"},
        says=(
            "mine.json: command: runs ./run.sh of my-code, which is not executable; allowed: a file on which `chmod +x` was run before it "
            "was packed on Linux or macOS, or its interpreter in front of it",
        ),
    ),
    Mistake(
        name="an instance type that does not exist",
        stage=Stage.ADMIT,
        fields={"instance_types": ["g5.xlrge"]},
        says=(
            REFUSED,
            "- instance_types: g5.xlrge does not exist in eu-central-1; allowed: EC2 types that the region has",
            CORRECT,
        ),
    ),
    Mistake(
        name="a cap that buys nothing",
        stage=Stage.ADMIT,
        fields={"max_cost_usd": 0.001},
        says=(
            REFUSED,
            f"- max_cost_usd: $0.001 pays for {ANY} min of 1 node of t3.large ({ANY}); allowed: {ANY} or more, which pays for 0.5 h",
            CORRECT,
        ),
    ),
    Mistake(
        name="an image that is not there",
        stage=Stage.ADMIT,
        fields={"image": "images:nope"},
        says=(
            REFUSED,
            f"- image: images:nope does not exist in eu-central-1 ({ANY}); allowed: repository and tag of an image that exists there",
            CORRECT,
        ),
    ),
    Mistake(
        name="the name of another job",
        stage=Stage.ADMIT,
        does="start two executions of one name with different inputs",
        says=(f"{ANY}ExecutionAlreadyExists{ANY}",),
    ),
    Mistake(
        name="a package that the machine's image lacks",
        stage=Stage.TRAINING,
        code={"train.py": "import transformers\n"},
        says=(
            f"  rank 0: the command exited with code 1; the machine image has torch {ANY} and no module transformers: add its package "
            "to requirements.txt at the root of the code (the code has none), or pack the file of that name",
            "      ModuleNotFoundError: No module named 'transformers'",
            MEND,
        ),
    ),
    Mistake(
        name="a syntax error",
        stage=Stage.TRAINING,
        code={"train.py": "def main(:\n"},
        says=("TrainingFailed: rank 0: the command exited with code 1.", f"      SyntaxError: {ANY}", MEND),
    ),
)
HEAD = f"""# Mistakes of a new user

<!-- Written by `make docs` from tools/mistakes.py; a test makes each mistake for real. -->

What is printed where something is wrong at the beginning: the cause and what to do, in at most {MOST_LINES} lines, and no traceback of
Trainyard's own. Your own code's traceback follows its cause, once. `{ANY}` stands for what differs between computers and runs.

Each request is this one, with the fields shown; the folder `my-code` has a `train.py`:

```json
{{}}
```
"""


def pages() -> dict[Path, str]:
    return {PAGE: page()}


def page() -> str:
    """Returns the whole page."""
    parts = [HEAD.replace("{}", json.dumps(REQUEST))]
    for stage in Stage:
        parts.append(f"\n## {stage.value}\n\n| mistake | given | printed |\n|---|---|---|\n")
        parts += [_row(one) for one in ROWS if one.stage is stage]
    return "".join(parts)


def _row(one: Mistake) -> str:
    options = " ".join(one.options)
    given = [one.does or one.text, json.dumps(one.fields, ensure_ascii=False) if one.fields else ""]
    given += [f"{name}: {text.strip()}" for name, text in one.code.items()]
    given += [options if one.options != ("--code", "my-code") else ""]
    shown = "<br>".join(markdown.code(text.replace("\n", " "), WIDTH) for text in given if text) or "without `--code`"
    said = "<br>".join(markdown.plain(line.strip()) for line in one.says)
    return f"| {one.name} | {shown} | {said} |\n"
