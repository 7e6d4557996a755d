"""Brings a training's code to /opt/ml/code as AWS's toolkit does, and says what the toolkit then runs.

What it does is read from the toolkit's own sources (aws/sagemaker-training-toolkit: environment.py, files.py, entry_point.py).
"""

from __future__ import annotations

import re
import shutil
import tarfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from localaws.containers.images import NotRunnable

PROGRAM, SUBMITTED = "SAGEMAKER_PROGRAM", "SAGEMAKER_SUBMIT_DIRECTORY"
"""Variables of an image or a training; as hyperparameters they are written in small letters."""


MOST_LINES = 100
LAST = 5
"""Lines of the output that stand for the reason where none has the name of an error."""
ERROR = re.compile(r"(?:[A-Z]\w*(?:Error|Exception)\b)|mpirun\.real|ORTE")
"""What the toolkit looks for in the output."""
OF_A_RANK = re.compile(r"^\[\d+,\d+\]<std(?:out|err)>:? ?")


class Reason:
    """Finds in a program's output what the toolkit tells: everything from the first line on that has the name of an error."""

    def __init__(self) -> None:
        self._last, self._found = deque[str](maxlen=LAST), list[str]()

    def hear(self, line: str) -> None:
        line = OF_A_RANK.sub("", line)
        self._last.append(line)
        if len(self._found) < MOST_LINES and (self._found or ERROR.search(line)):
            self._found.append(line)

    def __str__(self) -> str:
        return "\n".join(self._found or self._last)


class ToolkitError(Exception):
    """AWS's toolkit itself fails, before the program runs; the message is what it writes into the failure file."""


def chosen(variables: Mapping[str, str], said: str) -> str:
    """Returns the program: that of the variable comes before that of the hyperparameter. Raises NotRunnable where neither says one."""
    found = variables.get(PROGRAM, "") or said
    if not found:
        raise NotRunnable(f"the image has no ENTRYPOINT, and neither it nor the hyperparameters say {PROGRAM}")
    return found


def bring(code: Path, submitted: str, place: Callable[[str], Path]) -> None:
    """Unpacks or copies what was submitted, unless the folder of the code has something: then that stays. `place` says where this
    computer has a path of the container. Raises ToolkitError."""
    code.mkdir(parents=True, exist_ok=True)
    if not submitted or any(code.iterdir()):
        return
    if submitted.startswith("s3://"):
        raise NotRunnable(f"{SUBMITTED} is {submitted}: this computer reads code of the image and of a channel")
    source = place(submitted)
    if source == code:
        return
    if source.is_dir():
        shutil.copytree(source, code, dirs_exist_ok=True)
        return
    try:
        with tarfile.open(source, mode="r:gz") as archive:
            for member in archive.getmembers():
                if not (code / member.name).resolve().is_relative_to(code.resolve()):
                    raise ToolkitError("framework error: \nException: Attempted Path Traversal in Tar File")
            archive.extractall(code)
    except (OSError, tarfile.TarError) as problem:
        raise _failed(problem, str(source), submitted) from problem


def words(code: Path, program: str, root: Path, arguments: Sequence[str], launcher: Sequence[str]) -> list[str]:
    """Returns the command, which runs in the folder of the code. Python says itself that a program is not there. Raises ToolkitError."""
    if program.endswith(".py"):
        return ["python", *launcher, program, *arguments]
    try:
        (code / program).chmod(0o777)
    except OSError as problem:
        raise _failed(problem, str(root), "") from problem
    return ["/bin/sh", "-c", f"./{program} {' '.join(arguments)}"]


def _failed(problem: Exception, local: str, inside: str) -> ToolkitError:
    """Names a path as the container has it."""
    told = f"{type(problem).__name__}: {problem}".replace(local, inside)
    return ToolkitError(f"framework error: \nTraceback (most recent call last):\n{told}")
