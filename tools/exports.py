"""Writes the files that are made of uv.lock, with `python -m tools.exports`; a test compares them with the lock."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = str(Path(sys.executable).with_name("uv"))
EXPORTS = {
    "requirements.txt": "deploy",
    "lambda/requirements.txt": "functions",
    "lambda/search-requirements.txt": "search",
    "node/requirements.txt": "node",
    "grid_child/requirements.txt": "grid-child",
    "tools/uv.txt": "setup",
}
"""File to the dependency group of pyproject.toml whose packages it pins."""


def export(group: str) -> str:
    """Returns a group's packages as pip reads them, pinned and with hashes; raises CalledProcessError where uv.lock lacks the group."""
    command = [UV, "export", "-q", "--frozen", "--only-group", group, "--no-header", "--no-annotate"]
    pins = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return f"# Made of uv.lock by `make lock`: the group {group} of pyproject.toml.\n{pins}"


def main() -> None:
    for file, group in EXPORTS.items():
        path, text = ROOT / file, export(group)
        # make installs again what is made of a newer file.
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
