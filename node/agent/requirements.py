"""The job's Python: a virtual environment on top of the image's own, and `requirements.txt` installed into it."""

from __future__ import annotations

import importlib.util
import os
import re
import site
import sys
import sysconfig
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.dumps import HOOK
from agent.failures import CannotStart
from contract.training import REQUIREMENTS

TAIL = 15

Tool = Callable[[Sequence[str], Path, Mapping[str, str]], "tuple[int, Sequence[str]]"]
"""Runs a command in a folder with an environment; gives its exit code and its last lines."""


@dataclass(frozen=True)
class Python:
    """An environment to run commands in: its own programs first, then those of the image's environment."""

    folder: Path
    beneath: Path = Path(sys.executable).parent

    @property
    def program(self) -> Path:
        return self.folder / "bin" / "python"

    def variables(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The variables of a process in this environment: `inherited` without the agent's own path and settings."""
        kept = {
            name: value
            for name, value in inherited.items()
            if name not in ("PYTHONPATH", "PYTHONHOME") and not name.startswith("TRAINYARD_")
        }
        path = (str(self.folder / "bin"), str(self.beneath), inherited.get("PATH", os.defpath))
        # PYTHON_EXEC: with which Python torchrun starts its workers, also a torchrun that is called by its full path.
        own = {"VIRTUAL_ENV": str(self.folder), "PATH": os.pathsep.join(path), "PYTHON_EXEC": str(self.program)}
        return {**kept, **own}

    def command(self, words: Sequence[str]) -> list[str]:
        """`words` with this environment's program of that name, if it has one, whatever PATH the job sets."""
        first, *rest = words
        own = self.folder / "bin" / first
        return [str(own) if "/" not in first and own.exists() else first, *rest]

    def take_over_programs(self) -> None:
        """Copies the Python programs beneath (torchrun), to be run by this environment's Python: their first line names
        the Python beneath, which does not see the requirements. What the requirements brought stays as it is."""
        for file in sorted(self.beneath.iterdir()):
            copy = self.folder / "bin" / file.name
            if not copy.exists() and (source := _python_source(file)) is not None:
                copy.write_bytes(TRAMPOLINE % os.fsencode(self.program) + source)
                copy.chmod(0o755)


TRAMPOLINE = b"""#!/bin/sh\n'''exec' "%s" "$0" "$@"\n' '''\n"""
"""A first line can name a Python only if its path is short and has no space. This is what pip writes for the others: a
command to sh, a string to Python."""
TRAMPOLINED = re.compile(rb"""#!/bin/sh\n'''exec' "?([^"\n]+?)"? "\$0" "\$@"\n' '''\n""")
FIRST_LINE = re.compile(rb"#![ \t]*(\S+)[ \t]*\n")
FIRST_BYTES = 4096


def _python_source(file: Path) -> bytes | None:
    """What follows the first line of a program that runs on the agent's own Python; None for any other file.

    A program whose first line has options (`-s`, `-I`) uses only its own packages, and one that uses env(1) finds this
    environment's Python by itself.
    """
    try:
        if not file.is_file():
            return None
        with file.open("rb") as source:
            start = source.read(FIRST_BYTES)
            named = TRAMPOLINED.match(start) or FIRST_LINE.match(start)
            if named is None or os.path.realpath(os.fsdecode(named[1])) != os.path.realpath(sys.executable):
                return None
            return start[named.end() :] + source.read()
    except OSError:
        return None


def make(folder: Path) -> Python:
    """A virtual environment that sees every package of the Python that runs the agent.

    `--system-site-packages` would show the packages of the *base* Python, and a deep-learning image keeps PyTorch in a
    virtual environment: its site folders are added by a .pth instead, after the new environment's own.
    """
    builder = venv.EnvBuilder(symlinks=True, clear=True, with_pip=importlib.util.find_spec("pip") is None)
    builder.create(folder)
    paths = sysconfig.get_paths(
        "venv" if "venv" in sysconfig.get_scheme_names() else "posix_prefix", vars={"base": str(folder)}
    )
    lines = [f"import site; site.addsitedir({beneath!r})\n" for beneath in site.getsitepackages()]
    Path(paths["purelib"], "trainyard_beneath.pth").write_text("".join(lines), "utf-8")
    Path(paths["purelib"], "trainyard_stacks.pth").write_text(HOOK, "utf-8")
    return Python(folder)


def install(python: Python, code: Path, environment: Mapping[str, str], tool: Tool) -> bool:
    """Installs the code's requirements.txt; False when it has none. Raises CannotStart with pip's last lines."""
    if not (code / REQUIREMENTS).is_file():
        return False
    pip = [
        str(python.program),
        "-m",
        "pip",
        "install",
        "--no-input",
        "--disable-pip-version-check",
        "--no-compile",  # of every module, by one core: Python compiles those that the job imports
        "--progress-bar",
        "off",
    ]
    status, tail = tool([*pip, "-r", REQUIREMENTS], code, environment)
    if status:
        words = "\n".join(tail[-TAIL:])
        raise CannotStart(f"{REQUIREMENTS} cannot be installed (pip exited with code {status}):\n{words}")
    return True
