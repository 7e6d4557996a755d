"""Says why the training's command does not start, by the file that it names."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path

from contract import executables


def unrunnable(program: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Returns why the program would start and end at once: env(1) and shells take a carriage return for a part of what they are given."""
    file = find(program, folder, environment)
    broken = file is not None and file.is_file() and executables.has_carriage_return(_head(file))
    return f"the command {program!r} {_worded(executables.CARRIAGE_RETURN)}" if broken else ""


def cause(program: str, folder: Path, environment: Mapping[str, str], problem: Exception) -> str:
    """Returns why the program was not started, which the system calls `problem`."""
    file = find(program, folder, environment)
    return f"the command {program!r} {_about(program, file, folder, problem)}"


def find(program: str, folder: Path, environment: Mapping[str, str]) -> Path | None:
    """Returns the file that the system would run; None where there is none."""
    if "/" in program:
        file = folder / program
        return file if os.path.lexists(file) else None
    found = shutil.which(program, path=environment.get("PATH", os.defpath))
    return Path(found) if found else None


def _about(program: str, file: Path | None, folder: Path, problem: Exception) -> str:
    if file is None:
        if "/" not in program and os.path.lexists(folder / program):
            return f"is not on PATH; allowed: ./{program} for the file of that name in the code archive"
        if isinstance(problem, FileNotFoundError):
            return "is neither on PATH nor a file of the code archive"
        return f"cannot be started: {problem}"
    if file.is_dir():
        return "is a folder; allowed: a file"
    if not file.exists():
        return f"is a link to {str(file.readlink())!r}, which is not there"
    if not file.is_file():
        return "is not a file; allowed: a file"
    if not os.access(file, os.X_OK):
        return f"is not executable; allowed: {executables.EXECUTABLE}"
    head = _head(file)
    if why := executables.cannot_run(head):
        return _worded(why)
    named, built = executables.interpreter(head), executables.processors(head)
    if named and not (folder / named).exists():
        return f"has a first line that names {named!r}, which this machine does not have"
    if built and built != platform.machine():
        return f"is built for {built}, and this machine has {platform.machine()}"
    if isinstance(problem, FileNotFoundError) and head.startswith(executables.ELF):
        return "is linked against a loader that this machine does not have; allowed: a program that is built on a system as the machine's"
    return f"cannot be started: {problem}"


def _worded(why: executables.CannotRun) -> str:
    return f"{why.problem}; allowed: {why.allowed}"


def _head(file: Path) -> bytes:
    try:
        with file.open("rb") as source:
            return source.read(executables.FIRST_BYTES)
    except OSError:
        return b""
