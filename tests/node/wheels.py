"""Packages for pip, and a plain way to run it."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def run(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, Sequence[str]]:
    done = subprocess.run(words, cwd=folder, env=dict(environment), capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def wheel(folder: Path, name: str, says: str) -> Path:
    """A package with one module, as pip takes it."""
    file = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}.py", f"SAYS = {says!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return file


BACKEND = """
import os, zipfile
from pathlib import Path

def build_editable(folder, config_settings=None, metadata_directory=None):
    Path("{name}/_built.py").write_text("ANSWER = 42")
    info = "{name}-1.0.dist-info"
    with zipfile.ZipFile(Path(folder, "{name}-1.0-py3-none-any.whl"), "w") as archive:
        archive.writestr("{name}.pth", os.getcwd() + chr(10))
        archive.writestr(info + "/METADATA", "Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n")
        archive.writestr(info + "/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(info + "/RECORD", "")
    return "{name}-1.0-py3-none-any.whl"
"""
"""What pip runs for `-e` (PEP 660): as setuptools does for extensions, it builds beside the sources."""


def write_editable(folder: Path, name: str) -> None:
    """The sources of a package that cannot be imported before pip has built a file beside them."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "__init__.py").write_text(f"from {name}._built import ANSWER\n")
    (folder / "backend.py").write_text(BACKEND.format(name=name))
    build = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    (folder / "pyproject.toml").write_text(build)
