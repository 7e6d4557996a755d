"""What code of a job printed is shown as text: it moves no cursor, and begins no line of its own."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from rehearsal.diagnosis import show_lines


@pytest.mark.parametrize("evil", ["\x1b[2J\x1b[1;1HAll is well", "a\rAll is well", "[red]x[/red]\x07", "a\u202eb"])
def test_no_line_of_a_log_steers_the_terminal(evil: str) -> None:
    shown = io.StringIO()
    show_lines(Console(file=shown, width=200, force_terminal=False), "node job-1/1/0", [evil])
    _, line, *others = shown.getvalue().splitlines()
    assert others == []
    assert all(letter.isprintable() for letter in line)
    assert line.startswith(evil[0] if evil[0].isprintable() else " ")
