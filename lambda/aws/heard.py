"""Sorts an attempt's reports: what is known of each node, and which reports count for nothing. Texts of nodes are made harmless here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from aws.facts import Heard, Seen
from contract.reports import Exit, NodeReport
from contract.text import one_line

AHEAD_S = 60.0
"""A report may claim to be written this long from now, at most. A node reckons with AWS's clock, so seconds are honest; a report
from next year would let a node that has gone count as alive."""

LINE, LINES = 500, 100
"""Characters of a line, and lines, of what a node says of its end: more than an agent writes."""
SHOWN = 100
"""Characters of a job's name that are told, more than one has: a node may write 400 KB there, which each look would log."""


def heard(reports: Iterable[Seen], *, job: str, attempt: int, ids: Sequence[str]) -> dict[int, Heard]:
    """The report of each rank, of those that the rank's own instance wrote in this attempt. `ids` are the attempt's instances by rank."""
    return {
        seen.report.rank: Heard(report=make_harmless(seen.report), age_s=max(0.0, seen.age_s))
        for seen in reports
        if seen.report is not None and not _foreign(seen, job, attempt, ids)
    }


def make_harmless(report: NodeReport) -> NodeReport:
    """Returns the report with each of its texts on as many lines as it claims, so that none begins a line among our own words. An order in
    it is the node's, whoever it says that it is from."""
    order = report.order
    if order is not None:
        author = f"rank {report.rank}"
        order = replace(order, author=author, reason=one_line(order.reason, LINE), error=one_line(order.error, SHOWN))
    return replace(
        report,
        order=order,
        outcome=_quiet(report.outcome),
        exit=_quiet(report.exit),
        note=one_line(report.note, LINE),
        unhealthy=one_line(report.unhealthy, LINE),
        restored=one_line(report.restored, LINE),
        layout=one_line(report.layout, SHOWN),
    )


def _quiet(end: Exit | None) -> Exit | None:
    if end is None:
        return None
    reason = "\n".join(one_line(line, LINE) for line in end.reason.splitlines()[:LINES])
    return replace(end, reason=reason, tail=tuple(one_line(line, LINE) for line in end.tail[-LINES:]))


def strange(reports: Iterable[Seen], *, job: str, attempt: int, ids: Sequence[str]) -> list[str]:
    """A line for each report that counts for nothing."""
    return [why for seen in reports if (why := _foreign(seen, job, attempt, ids))]


def _foreign(seen: Seen, job: str, attempt: int, ids: Sequence[str]) -> str:
    """Why a report counts for nothing, empty where it counts. IAM lets an instance write only its own report; what the report says
    of job, attempt and rank is still the node's own words."""
    report = seen.report
    if report is None:
        return f"the report of {seen.instance} cannot be read"
    if (report.job, report.attempt) != (job, attempt):
        return f"the report of {seen.instance} is of attempt {report.attempt} of job {report.job[:SHOWN]}"
    if not 0 <= report.rank < len(ids):
        return f"the report of {seen.instance} is of rank {report.rank}, and there are {len(ids)}"
    if seen.instance != ids[report.rank]:
        return f"the report of {seen.instance} is of rank {report.rank}, which is {ids[report.rank]}"
    if seen.age_s < -AHEAD_S:
        return f"the report of {seen.instance} claims to be written {-seen.age_s:.0f} s from now"
    return ""
