"""Asks the type checker about snippets, under the project's own settings."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.architecture.sources import ROOT

PYREFLY = Path(sys.executable).with_name("pyrefly")
"""The type checker, whatever the PATH is."""


def complaints(folder: Path, snippets: Sequence[str], *options: str) -> list[list[str]]:
    """What the checker says of each snippet. One run for all of them: to begin takes it longer than a thousand files.

    Args:
        folder: An empty one, for the snippets.
        options: Of `pyrefly check`.
    """
    files = [folder / f"snippet_{number}.py" for number in range(len(snippets))]
    for file, text in zip(files, snippets, strict=True):
        file.write_text(text)
    settings = ["--config", str(ROOT / "pyproject.toml"), "--output-format", "json", *options]
    command = [str(PYREFLY), "check", *settings, *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    found: dict[str, list[str]] = {file.stem: [] for file in files}
    for error in json.loads(done.stdout)["errors"]:
        found[Path(error["path"]).stem].append(f"{error['name']}: {error['concise_description']}")
    return list(found.values())
