"""Decides whose page is due: what messages say of executions, and what a listing and the pages that are there say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

from contract import names, search
from contract.execution_facts import BEFORE_END_S
from messages.policy import UnreadableMessage, read

CLOCK_S = 300.0
"""How often the clock asks for the page of each execution that runs."""
LOOKS_BACK_S = 4500.0
"""How long after an execution's end the clock asks for a page that does not tell of it. The cleanup's own clock asks for a report that is
missing up to an hour after the end, and its message comes back for a quarter of one."""
MOST_TIMES = 30
"""How often a page is written again that could not have everything of an end, at most: a report is written within minutes, or never."""


class PageKind(str, Enum):
    """What a page is of."""

    JOB = "job"
    GRID = "grid"
    SEARCH = "search"


PATTERNS = {
    PageKind.JOB: names.JOB_PATTERN,
    PageKind.GRID: names.GRID_PATTERN,
    PageKind.SEARCH: search.PATTERN,
}
"""Names that an execution may have by which something was begun. Every other one has no page, because it may lead elsewhere as a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DuePage:
    """A page that has to be written."""

    kind: PageKind
    name: str
    """Of the execution."""
    execution: str
    """ARN."""
    times: int = 0
    """How often the page was written because of this message."""
    sent_at: float | None = None
    """When the clock asked for it, UTC epoch seconds; None where an event did."""

    def write(self) -> str:
        return json.dumps(asdict(self))

    def again(self) -> DuePage:
        return replace(self, times=self.times + 1)

    def is_overtaken(self, now: float) -> bool:
        """Whether the clock has asked anew since: then a queue that is behind drops what it is late with."""
        return self.sent_at is not None and now >= self.sent_at + 2 * CLOCK_S

    @property
    def comes_back(self) -> bool:
        """Whether the message may be sent again. The clock asks anew by itself."""
        return self.sent_at is None and self.times < MOST_TIMES


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPage:
    """A page that is there."""

    read_at: float
    """When the writer began to read what it tells, UTC epoch seconds."""
    is_whole: bool
    """Whether it tells of an end, and has everything."""


def read_due(body: str, begins: Mapping[PageKind, str]) -> DuePage | None:
    """Returns the page that a message asks for; None where it asks for none that may be written. `begins` is how the ARNs of executions of
    the deployment's machines begin, up to the name. The message is our own, or an event of Step Functions."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    due = _read_own(found) if "kind" in found else _read_event(body, begins)
    if due is None or not PATTERNS[due.kind].fullmatch(due.name):
        return None
    return due if due.execution == begins[due.kind] + due.name else None


def _read_own(found: Mapping[str, Any]) -> DuePage | None:
    try:
        sent_at = found.get("sent_at")
        return DuePage(
            kind=PageKind(found["kind"]),
            name=str(found["name"]),
            execution=str(found["execution"]),
            times=int(found.get("times", 0)),
            sent_at=None if sent_at is None else float(sent_at),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _read_event(body: str, begins: Mapping[PageKind, str]) -> DuePage | None:
    for kind, begin in begins.items():
        try:
            notice = read(body, begin.split(":")[-2])
        except UnreadableMessage:
            return None
        if notice is not None:
            return DuePage(kind=kind, name=notice.execution.rpartition(":")[2], execution=notice.execution)
    return None


def is_missing(page: WrittenPage | None, ended_at: float) -> bool:
    """Whether the page of an execution that has ended does not tell all of it."""
    return page is None or page.read_at < ended_at or not page.is_whole


def reports_end(report: Mapping[str, Any] | None, field: str, ended_at: float) -> bool:
    """Whether a report, whose `field` says when it was written, is of this end. The cleanup writes it minutes after the end."""
    at = report.get(field) if report else None
    return isinstance(at, (int, float)) and at >= ended_at - BEFORE_END_S
