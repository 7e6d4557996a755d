"""Writes the page of the command line's help, from the command line itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from trainyard.app import app

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "command-line.md"
WIDTH = 110
HEAD = """# The command line

<!-- Written by `make docs` from trainyard/app.py. -->

What `trainyard COMMAND --help` prints. [How to use it](../guides/command-line.md).
"""


def pages() -> dict[Path, str]:
    return {PAGE: HEAD + "".join(_describe(get_command(app), app.info.name or "", None))}


def _describe(command: Any, path: str, parent: typer.Context | None) -> Iterator[str]:
    """Yields the help of a command, or of a group and then of its commands."""
    context = typer.Context(
        command, info_name=path.rpartition(" ")[2], parent=parent, terminal_width=WIDTH, max_content_width=WIDTH
    )
    yield f"\n## {path}\n\n```\n{command.get_help(context).strip()}\n```\n"
    for name, one in getattr(command, "commands", {}).items():
        yield from _describe(one, f"{path} {name}", context)
