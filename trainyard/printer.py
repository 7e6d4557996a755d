"""Prints for a person, or for a program: plain lines and tables, or JSON on stdout and messages on stderr.

Names, logs and causes are texts of others, which may steer a terminal: everything that is printed is made harmless here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from contract.text import one_line

if TYPE_CHECKING:
    from rich.console import Console

MOST_LINE = 20_000
"""Characters of a line."""
UNBOUNDED = 100_000
"""Columns where there is no terminal, so that no cell is broken."""


def clean_lines(text: str, most: int = MOST_LINE) -> list[str]:
    """Returns the lines of a text that others wrote, without what steers a terminal."""
    return [one_line(line, most) for line in text.splitlines()]


class Printer:
    """Knows whether JSON is wanted."""

    def __init__(self, *, as_json: bool, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.as_json = as_json
        self._out, self._err = out or sys.stdout, err or sys.stderr

    def say(self, text: str) -> None:
        """Prints lines for a person: on stderr where stdout has JSON."""
        stream = self._err if self.as_json else self._out
        for line in clean_lines(text) or [""]:
            print(line, file=stream, flush=True)

    def complain(self, text: str) -> None:
        """Prints lines about what went wrong, on stderr."""
        for line in clean_lines(text):
            print(line, file=self._err, flush=True)

    def document(self, value: Any) -> None:
        """Prints one JSON document on a line, where JSON is wanted."""
        if self.as_json:
            print(json.dumps(value, ensure_ascii=True, default=str), file=self._out, flush=True)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]], title: str = "") -> None:
        """Prints a table of which nothing is cut: on a terminal long cells have several lines. Prints nothing where JSON is wanted."""
        if self.as_json:
            return
        from rich.table import Table
        from rich.text import Text

        if title:
            self.say(title)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(Text(one_line("" if cell is None else str(cell), MOST_LINE)) for cell in row))
        self._console().print(table)

    def _console(self) -> Console:
        from rich.console import Console

        is_terminal = self._out.isatty()
        return Console(
            file=self._out, highlight=False, soft_wrap=not is_terminal, width=None if is_terminal else UNBOUNDED
        )
