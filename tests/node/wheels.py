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
