"""What code of a job printed is shown as text: it moves no cursor, and begins no line of its own."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from contract.reports import NodeReport, Phase
from rehearsal.diagnosis import show_lines
from rehearsal.screen import Screen


@pytest.mark.parametrize("evil", ["\x1b[2J\x1b[1;1HAll is well", "a\rAll is well", "[red]x[/red]\x07", "a\u202eb"])
def test_no_line_of_a_log_steers_the_terminal(evil: str) -> None:
    shown = io.StringIO()
    show_lines(Console(file=shown, width=200, force_terminal=False), "node job-1/1/0", [evil])
    _, line, *others = shown.getvalue().splitlines()
    assert others == []
    assert all(letter.isprintable() for letter in line)
    assert line.startswith(evil[0] if evil[0].isprintable() else " ")


@pytest.mark.parametrize("evil", ["\x1b[2J\x1b[1;1HAll is well", "a [/nothing] b", "[red]x[/red]\x07", "a\u202eb"])
def test_nothing_that_a_node_says_of_itself_steers_the_terminal_or_ends_the_rehearsal(evil: str) -> None:
    said = NodeReport(job="job-1", attempt=1, rank=0, instance=evil, phase=Phase.TRAINING, sent_at=0.0, note=evil)
    job: Any = SimpleNamespace(
        name="job-1",
        started=0.0,
        states=lambda: ["Train"],
        reports=lambda _attempt: {0: said},
        describe_admitted=lambda: SimpleNamespace(roles=()),
    )
    shown = io.StringIO()
    console = Console(file=shown, width=200)
    console.print(Screen(console)._picture(job))
    assert shown.getvalue().replace("\n", "").isprintable()
