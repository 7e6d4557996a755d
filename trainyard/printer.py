"""Prints for a person, or for a program: plain lines and tables, or JSON on stdout and messages on stderr.

Names, logs and causes are texts of others, which may steer a terminal: everything that is printed is made harmless here.
"""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TextIO

from contract.text import one_line
from trainyard.stops import OutputClosed, OutputFailed

MOST_LINE = 20_000
"""Characters of a line."""
UNBOUNDED = 100_000
"""Columns where there is no terminal, so that no cell is broken."""


def clean_lines(text: str, most: int = MOST_LINE) -> list[str]:
    """Returns the lines of a text that others wrote, without what steers a terminal."""
    return [one_line(line, most) for line in text.splitlines()]


def make_plain(value: Any) -> Any:
    """Returns the value with null in the place of each number that JSON has not: infinite ones, and NaN."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): make_plain(one) for key, one in value.items()}
    return (
        [make_plain(one) for one in value]
        if isinstance(value, Sequence) and not isinstance(value, str | bytes)
        else value
    )


def _write(line: str, stream: TextIO) -> None:
    try:
        print(line, file=stream, flush=True)
    except BrokenPipeError:
        raise OutputClosed from None
    except OSError as problem:
        _discard(stream)
        raise OutputFailed(f"stdout: {problem.strerror}; what is printed is not whole") from None


def _discard(stream: TextIO) -> None:
    """Has nothing of the stream be written any more: at the end of the process Python would try again, and say that it failed."""
    with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:  # noqa: PTH123  (tests' streams have no number)
        os.dup2(nowhere.fileno(), stream.fileno())


class Printer:
    """Knows whether JSON is wanted."""

    def __init__(self, *, as_json: bool, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.as_json = as_json
        self._out, self._err = out or sys.stdout, err or sys.stderr

    def say(self, text: str) -> None:
        """Prints lines for a person: on stderr where stdout has JSON."""
        for line in clean_lines(text) or [""]:
            if self.as_json:
                self._write_message(line)
            else:
                _write(line, self._out)

    def complain(self, text: str) -> None:
        """Prints lines about what went wrong, on stderr."""
        for line in clean_lines(text):
            self._write_message(line)

    def _write_message(self, line: str) -> None:
        """Raises OutputClosed where messages cannot be written: no other stream is left that a person reads."""
        try:
            _write(line, self._err)
        except OutputFailed:
            raise OutputClosed from None

    def give_up(self, text: str) -> None:
        """Says on stderr, where it can, why no more is printed, and prints no more."""
        with suppress(OutputClosed):
            self.complain(text)
        _discard(self._out)

    def write_document(self, text: str) -> None:
        """Prints a text for another program on stdout as it is: its lines are not cut. It must have nothing that steers a terminal."""
        _write(text.removesuffix("\n"), self._out)

    def document(self, value: Any) -> None:
        """Prints one JSON document on a line, where JSON is wanted."""
        if self.as_json:
            _write(json.dumps(make_plain(value), ensure_ascii=True, allow_nan=False, default=str), self._out)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]], title: str = "") -> None:
        """Prints a table of which nothing is cut: on a terminal long cells have several lines. Prints nothing where JSON is wanted."""
        if self.as_json:
            return
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        if title:
            self.say(title)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(Text(one_line("" if cell is None else str(cell), MOST_LINE)) for cell in row))
        is_terminal = self._out.isatty()
        drawn = Console(
            file=io.StringIO(),  # on a pipe that is closed rich would end the process
            highlight=False,
            soft_wrap=not is_terminal,
            width=shutil.get_terminal_size().columns if is_terminal else UNBOUNDED,
        )
        with drawn.capture() as captured:
            drawn.print(table)
        _write(captured.get().removesuffix("\n"), self._out)
