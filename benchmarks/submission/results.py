"""What the runs come to: whether both sent the same request, the rows of the table, and which of the bounds are not met."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FASTER, LESS_MEMORY = 5.0, 3.0
"""How many times the child has to be faster and smaller than the SDK."""
CHILD, SDK = "the grid's child", "SageMaker Python SDK"
ADDED = {"ProfilerConfig": {"DisableProfiler": True}}
"""What the SDK says by itself once its profiler is turned off, which Plan leaves unsaid."""
HEAD = ("| answers | submitted by | median | min | max | peak memory | calls before |", "|---|---|---|---|---|---|---|")


@dataclass(frozen=True, slots=True)
class Run:
    seconds: float
    """From the start of the process to the accepted CreateTrainingJob."""
    peak_mb: float
    """Largest resident set of the process' whole life, 1 MB = 1,000,000 bytes."""
    before: int
    """Calls to AWS before CreateTrainingJob."""


def differences(sent: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Arguments that do not say what is wanted. A switch that is off may be left out: off is SageMaker's default for all of them."""
    on = {name: value for name, value in wanted.items() if value is not False}
    optional = {name: value for name, value in wanted.items() if value is False} | ADDED
    missing = [
        f"{name} is {sent.get(name)!r}, wanted {value!r}" for name, value in on.items() if sent.get(name) != value
    ]
    extra = [f"{name} is {value!r}, not wanted" for name, value in sent.items() if name not in on | optional]
    wrong = [
        f"{name} is {sent[name]!r}, wanted {value!r}"
        for name, value in optional.items()
        if name in sent and sent[name] != value
    ]
    return missing + extra + wrong


def times(runs: Mapping[str, Sequence[Run]], what: Callable[[Run], float]) -> float:
    """How many times as much the SDK takes, of medians."""
    child, sdk = (statistics.median(what(run) for run in runs[name]) for name in (CHILD, SDK))
    return sdk / child


def rows(answers: str, runs: Mapping[str, Sequence[Run]]) -> list[str]:
    """A row for each, then one that compares them; every cell of memory is a median."""
    found = []
    for name in (CHILD, SDK):
        took = [run.seconds for run in runs[name]]
        held = statistics.median(run.peak_mb for run in runs[name])
        cells = [answers, name, *(f"{of(took):.3f} s" for of in (statistics.median, min, max)), f"{held:.0f} MB"]
        found.append(_row(*cells, str(runs[name][-1].before)))
    faster, smaller = times(runs, lambda run: run.seconds), times(runs, lambda run: run.peak_mb)
    return [*found, _row(answers, "the SDK takes", f"**{faster:.1f} x**", "", "", f"**{smaller:.1f} x**", "")]


def broken(answers: str, runs: Mapping[str, Sequence[Run]]) -> list[str]:
    """The bounds that are not met, in words; never rounded up."""
    faster, smaller = times(runs, lambda run: run.seconds), times(runs, lambda run: run.peak_mb)
    return [
        f"answers {answers}: the child is {found:.2f} times {what}, wanted {wanted:g}"
        for found, wanted, what in ((faster, FASTER, "as fast"), (smaller, LESS_MEMORY, "as small"))
        if found < wanted
    ]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
