"""Sorts an attempt's reports: what is known of each node, and which reports are none of its nodes'."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aws.facts import Heard, Seen
from contract.keys import JobPrefix


def heard(reports: Iterable[Seen], *, job: str, attempt: int, ids: Sequence[str]) -> dict[int, Heard]:
    """The newest report of each rank, of those that the rank's own instance wrote in this attempt under the rank's own keys.

    `ids` are the attempt's instances by rank. A node numbers its reports, so of a regular and an urgent one the later counts,
    whatever S3 lists first.
    """
    known: dict[int, Heard] = {}
    for seen in reports:
        report = seen.report
        if report is None or _foreign(seen, job, attempt, ids):
            continue
        before = known.get(report.rank)
        newest = report if before is None or report.sequence > before.report.sequence else before.report
        age_s = seen.age_s if before is None else min(seen.age_s, before.age_s)
        known[report.rank] = Heard(report=newest, age_s=age_s)
    return known


def strange(reports: Iterable[Seen], *, job: str, attempt: int, ids: Sequence[str]) -> list[str]:
    """A line for each report that counts for nothing."""
    return [why for seen in reports if (why := _foreign(seen, job, attempt, ids))]


def _foreign(seen: Seen, job: str, attempt: int, ids: Sequence[str]) -> str:
    """Why a report counts for nothing, empty where it counts."""
    report = seen.report
    if report is None:
        return f"{seen.key} cannot be read"
    if (report.job, report.attempt) != (job, attempt):
        return f"{seen.key} is of attempt {report.attempt} of job {report.job}"
    if not 0 <= report.rank < len(ids):
        return f"{seen.key} is of rank {report.rank}, and there are {len(ids)}"
    prefix = JobPrefix(job)
    if seen.key not in (prefix.report(attempt, report.rank), prefix.urgent(attempt, report.rank)):
        return f"{seen.key} is of rank {report.rank}, whose reports have other keys"
    if report.instance != ids[report.rank]:
        return f"{seen.key} is of {report.instance}, and rank {report.rank} is {ids[report.rank]}"
    return ""
