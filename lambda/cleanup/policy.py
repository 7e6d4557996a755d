"""Decides whether an execution that ended badly still lacks its report, which the event of its end would have caused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from aws.facts import GONE, Status
from contract.jobs import Job
from contract.timings import CleanupTiming
from ending.report import cause_of_end, covers_end


class ReportStanding(str, Enum):
    """What the clock has to do about an execution."""

    MISSING = "missing"
    """Its report is missing, and nothing else writes it any more: it gets the message that the event would have been."""
    NOTHING = "nothing"
    UNKNOWN = "unknown"
    """Nothing is done where nothing is known, and people are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFacts:
    """What is known of an execution that a listing shows as ended badly."""

    execution: str
    """ARN."""
    status: Status
    """As Step Functions says now: it may have been redriven since it was listed."""
    job: Job | None
    """Of the execution's name; None where nothing was admitted under it."""
    attempts: int
    """The newest attempt that has an intent; 0 before the first launch."""
    report: Mapping[str, Any] | None
    """The report that is in the bucket; None where there is none, or where it cannot be read."""


@dataclass(frozen=True, slots=True)
class ReportVerdict:
    standing: ReportStanding
    reason: str


def judge_report(facts: ReportFacts, timing: CleanupTiming, *, now: float) -> ReportVerdict:
    """Returns whether the execution's report is missing, and why. A report that the cleanup would leave as it is, is not missing."""
    status = facts.status
    if status.runs:
        return ReportVerdict(ReportStanding.NOTHING, "it runs again, and its own steps report its end")
    if status.name == "SUCCEEDED":
        return ReportVerdict(ReportStanding.NOTHING, "it succeeded, so its own steps have reported its end")
    if status.name == GONE or status.ended_at is None:
        return ReportVerdict(ReportStanding.UNKNOWN, "Step Functions no longer says when and how it ended")
    age_s = now - status.ended_at
    if age_s < timing.missing_report_after_s:
        return ReportVerdict(
            ReportStanding.NOTHING, f"it ended {age_s:.0f} s ago, and the event of its end may still do it"
        )
    if age_s > timing.missing_report_until_s:
        return ReportVerdict(ReportStanding.NOTHING, f"it ended {age_s:.0f} s ago, which is too long")
    if facts.job is None or not facts.job.belongs_to(facts.execution, status.started_at):
        return ReportVerdict(ReportStanding.NOTHING, "no job was admitted for it, so it has no report")
    ours = {"error": cause_of_end(status)["error"], "attempts": facts.attempts}
    if covers_end(facts.report, ours, status.ended_at):
        return ReportVerdict(ReportStanding.NOTHING, "its report is there")
    what = "has no report" if facts.report is None else "has the report of another end"
    return ReportVerdict(ReportStanding.MISSING, f"it ended {age_s:.0f} s ago and {what}")
