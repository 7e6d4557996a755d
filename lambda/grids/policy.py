"""Decides what has become of a line, and sums up all lines of a grid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from contract.errors import GridFailed
from contract.grid import Line, LineOutcome, Record
from contract.records import LineFacts
from contract.text import one_line

COLUMNS = (
    "line",
    "index",
    "region",
    "job",
    "status",
    "reason",
    "seconds",
    "billable_seconds",
    "cost_usd",
    "model_artifact",
    "metrics",
    "backend",
    "log",
)
"""Of results.csv. `line` counts the manifest's lines from 1; a sweep makes several of one, which `index` tells apart."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet computes: code of a training may have written the reason."""
SHOWN = 20
"""At most this many reasons, or lines, are named; the files have all."""
MOST_REASON = 300
"""Characters of a reason that lines are grouped by, in the totals."""
REASONS = 1000
"""So many different ones are counted apart; every further one counts as OTHERS."""
OTHERS = "other reasons"
NAMED, PLACED = "<training>", "<region>"
"""Stand for the training's own name and region, in which alone the reasons of many lines differ."""


class Fate(str, Enum):
    """What has become of a line that has no record."""

    ENDED = "ended"
    """Its training is over: its record can be written."""
    RUNS = "runs"
    KEPT = "kept"
    """Its training runs, and a person protects it: the control plane does not end it."""
    STRANGER = "stranger"
    """Its name belongs to a training that is not this line's."""
    ABSENT = "absent"
    """No training of its name was ever created."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTraining:
    """The training that has a line's name."""

    facts: LineFacts
    stranger: str = ""
    """Whose it is, in words; empty where it is this very line's."""
    protected: bool = False
    """A person protects it: the control plane does not end it."""


def decide_fate(found: FoundTraining | None) -> Fate:
    """`found` is the training of the line's name, None where there is none."""
    if found is None:
        return Fate.ABSENT
    if found.stranger:
        return Fate.STRANGER
    if found.facts.ended:
        return Fate.ENDED
    return Fate.KEPT if found.protected else Fate.RUNS


def describe_taken(line: Line, stranger: str) -> str:
    """Says why a line whose name is a stranger's was refused."""
    return (
        f"The name {line.training} belongs to another training in {line.region} ({stranger}), and no name is given twice. "
        "Start the line again in a grid of another name."
    )


def row(record: Record, metrics: str) -> tuple[object, ...]:
    """One line of results.csv; `metrics` is JSON."""
    return (
        record.line,
        record.index,
        record.region,
        record.training,
        record.outcome.value,
        f"'{record.explanation}" if record.explanation.startswith(FORMULA) else record.explanation,
        record.seconds,
        record.billable_seconds,
        record.cost_usd,
        record.artifact,
        metrics,
        record.backend.value,
        record.log,
    )


@dataclass(slots=True)
class Totals:
    """What the records of a grid come to."""

    lines: int
    cost_at_most_usd: float | None
    outcomes: Counter[str] = field(default_factory=Counter)
    regions: dict[str, Counter[str]] = field(default_factory=dict)
    billable_seconds: float = 0.0
    cost_usd: float = 0.0
    unpriced: int = 0
    """Lines whose cost is not known."""
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, int] = field(default_factory=dict)
    """Reason to the first line of the manifest that has it."""
    unfinished: int = 0
    """Lines without a record."""

    def add(self, record: Record) -> None:
        self.outcomes[record.outcome.value] += 1
        self.regions.setdefault(record.region, Counter())[record.outcome.value] += 1
        self.billable_seconds += record.billable_seconds or 0.0
        self.cost_usd += record.cost_usd or 0.0
        self.unpriced += record.cost_usd is None
        if record.outcome is not LineOutcome.COMPLETED:
            self._explain(record)

    def _explain(self, record: Record) -> None:
        said = record.reason.replace(record.training, NAMED).replace(record.region, PLACED)
        reason = one_line(" ".join(said.split()), MOST_REASON)  # code of a training may have written it
        if reason not in self.reasons and len(self.reasons) >= REASONS:
            reason = OTHERS
        self.reasons[reason] += 1
        self.examples.setdefault(reason, record.line)

    def to_report(self) -> dict[str, Any]:
        """Returns them for the machine's variables and the report: a few KB, however many lines there are."""
        return {
            "lines": self.lines,
            "completed": self.outcomes[LineOutcome.COMPLETED.value],
            "outcomes": {outcome.value: self.outcomes[outcome.value] for outcome in LineOutcome},
            "unfinished": self.unfinished,
            "regions": {region: dict(counts) for region, counts in sorted(self.regions.items())},
            "billable_seconds": round(self.billable_seconds, 3),
            "cost_usd": round(self.cost_usd, 6),
            "unpriced_lines": self.unpriced,
            "cost_at_most_usd": self.cost_at_most_usd,
            "failures": [
                {"reason": reason, "lines": count, "first_line": self.examples[reason]}
                for reason, count in self.reasons.most_common(SHOWN)
            ],
        }


def why(problem: Mapping[str, Any] | None) -> str:
    """Of a stop, for lines that were never submitted."""
    error = str(problem.get("error")) if problem else "it was stopped"
    return f"The grid ended before this line was submitted ({error})."


def left_running(
    problem: Mapping[str, Any] | None, left: Sequence[str], patience_s: float, kept: Sequence[str] = ()
) -> dict[str, str]:
    """Error and cause of a stopped grid; what had not ended when the patience was over, and what is protected, is added to it."""
    error, cause = (
        (str(problem["error"]), str(problem["cause"])) if problem else (GridFailed.__name__, "It was stopped.")
    )
    if left:
        cause += (
            f" When {patience_s / 60:.0f} minutes were over, these had not ended: {short(left)}. "
            "Trainyard has stopped them, and the reaper stops them again."
        )
    if kept:
        cause += f" These are protected by a person's tag, and run until it is removed or their own time is over: {short(kept)}."
    return {"error": error, "cause": cause}


def short(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
