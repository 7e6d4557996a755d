"""Shows the nodes of an attempt: what each does, and the last output of those that failed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contract.reports import Exit, NodeReport
from contract.roles import Role, name_place
from pages import words
from pages.attempts import Segment, TimeSpan, draw_phases

MOST_NODES = 64
MOST_DRAWN = 16
"""Nodes that have a time line."""
MOST_TAILS, MOST_LINES, MOST_LINE = 3, 60, 400
"""Nodes whose output is shown, its last lines, and characters of each."""
MOST_OUTPUT = 26_000
"""Bytes of a node's output, as it is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A node as a page shows it."""

    rank: int
    role: str
    """Its role and its place there; empty in a job without roles."""
    instance: str
    phase: str
    step: str
    said: str
    """Its error, what is wrong with its machine, or what it does."""
    failed: bool
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The last output of a node that failed."""

    rank: int
    role: str
    """As in NodeRow."""
    reason: str
    lines: tuple[str, ...]
    left: int
    """Lines before these that the report has too."""


def list_nodes(
    reports: Mapping[int, NodeReport], span: TimeSpan, since: float, roles: Sequence[Role] = ()
) -> list[NodeRow]:
    """Returns the nodes, those first that failed first, at most MOST_NODES."""
    shown = sorted(reports.values(), key=lambda one: (_failed_at(one), not one.unhealthy, one.rank))[:MOST_NODES]
    return [_show(one, span, since, roles, is_drawn=place < MOST_DRAWN) for place, one in enumerate(shown)]


def list_tails(reports: Mapping[int, NodeReport], roles: Sequence[Role] = ()) -> list[Tail]:
    """Returns the last output of the nodes that failed first."""
    failed = sorted((one for one in reports.values() if find_failure(one)), key=lambda one: (_failed_at(one), one.rank))
    found = list[Tail]()
    for one in failed:
        exit_ = find_failure(one)
        if exit_ is not None and exit_.tail and len(found) < MOST_TAILS:
            lines = _choose_lines(exit_.tail)
            reason = f"{exit_.error}: {exit_.reason}" if exit_.reason else exit_.error
            role = name_place(roles, one.rank)
            found.append(Tail(rank=one.rank, role=role, reason=reason, lines=lines, left=len(exit_.tail) - len(lines)))
    return found


def _choose_lines(tail: Sequence[str]) -> tuple[str, ...]:
    """Returns the last lines of an output, as many as may be shown."""
    lines, left = list[str](), MOST_OUTPUT
    for line in reversed(tail[-MOST_LINES:]):
        shown = words.visible(line, MOST_LINE)
        left -= words.count_bytes(shown)
        if left < 0:
            break
        lines.insert(0, shown)
    return tuple(lines)


def find_failure(report: NodeReport) -> Exit | None:
    """Returns how the work of a node ended, if with an error."""
    return next((one for one in (report.exit, report.outcome) if one is not None and one.error), None)


def _failed_at(report: NodeReport) -> float:
    """Returns when a node failed by its clock; infinite where it did not."""
    if find_failure(report) is None:
        return math.inf
    at = words.finite(report.timeline.get("failed", report.timeline.get("ended")))
    return 1e12 if at is None else min(at, 1e12)


def _show(report: NodeReport, span: TimeSpan, since: float, roles: Sequence[Role], *, is_drawn: bool) -> NodeRow:
    failure = find_failure(report)
    said = report.unhealthy or report.note
    if failure is not None:
        said = f"{failure.error}: {failure.reason}" if failure.reason else failure.error
    lasted = f" for {words.duration(report.phase_s)}" if words.finite(report.phase_s) and report.exit is None else ""
    return NodeRow(
        rank=report.rank,
        role=name_place(roles, report.rank),
        instance=report.instance,
        phase=f"{report.phase.value}{lasted}",
        step=words.number(report.progress.step) if report.progress else "–",
        said=said,
        failed=failure is not None or bool(report.unhealthy),
        segments=tuple(draw_phases(report, span, since, span.end)) if is_drawn else (),
    )
