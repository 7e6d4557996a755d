"""The job's Python: a virtual environment on top of the image's own, and `requirements.txt` installed into it."""

from __future__ import annotations

import importlib.util
import os
import site
import sys
import sysconfig
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.failures import CannotStart

REQUIREMENTS = "requirements.txt"
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
        """What a process of this environment inherits: the agent's own path and settings are not its business."""
        kept = {
            name: value
            for name, value in inherited.items()
            if name not in ("PYTHONPATH", "PYTHONHOME") and not name.startswith("TRAINYARD_")
        }
        path = (str(self.folder / "bin"), str(self.beneath), inherited.get("PATH", os.defpath))
        return {**kept, "VIRTUAL_ENV": str(self.folder), "PATH": os.pathsep.join(path)}

    def command(self, words: Sequence[str]) -> list[str]:
        """`words` with the right Python: `python` is this environment's, and so is that of the image's Python programs
        (torchrun), whose first line names the Python beneath, where the requirements are not installed."""
        first, *rest = words
        if first in ("python", "python3"):
            return [str(self.program), *rest]
        beneath = self.beneath / first
        if "/" not in first and not (self.folder / "bin" / first).exists() and _is_python_script(beneath):
            return [str(self.program), str(beneath), *rest]
        return [first, *rest]


def _is_python_script(file: Path) -> bool:
    try:
        with file.open("rb") as source:
            line = source.readline(512)
    except OSError:
        return False
    return line.startswith(b"#!") and b"python" in line


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
        "--progress-bar",
        "off",
    ]
    status, tail = tool([*pip, "-r", REQUIREMENTS], code, environment)
    if status:
        words = "\n".join(tail[-TAIL:])
        raise CannotStart(f"{REQUIREMENTS} cannot be installed (pip exited with code {status}):\n{words}")
    return True
