"""Which ends lack their report: the verdict alone, with facts that the fake does not come by easily."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from aws.facts import GONE, Status
from cleanup.policy import ReportFacts, ReportStanding, ReportVerdict, judge_report
from contract.timings import CleanupTiming
from tests.builders import JOB

TIMING = JOB.timing.of(CleanupTiming)
ENDED_AT = JOB.admitted_at + 7200.0
NOW = ENDED_AT + TIMING.missing_report_after_s + 60
STATUS = Status(
    name="ABORTED",
    started_at=JOB.admitted_at,
    ended_at=ENDED_AT,
    error="Stopped",
    cause="by a person",
)
FACTS = ReportFacts(execution=JOB.execution, status=STATUS, job=JOB, attempts=2, report=None)


def judge(*, now: float = NOW, status: Mapping[str, Any] | None = None, **changes: Any) -> ReportVerdict:
    return judge_report(replace(FACTS, status=replace(STATUS, **(status or {})), **changes), TIMING, now=now)


def reported(**changes: Any) -> dict[str, Any]:
    return {"error": "Stopped", "attempts": 2, "ended_at": ENDED_AT - 5} | changes


def test_an_end_without_a_report_lacks_it_and_the_reason_says_how_old_it_is() -> None:
    assert judge() == ReportVerdict(ReportStanding.MISSING, "it ended 1380 s ago and has no report")


@pytest.mark.parametrize(
    "report", [reported(), reported(ended_at=None), reported(ended_at=ENDED_AT + 9), reported(attempts=3)]
)
def test_a_report_of_this_end_is_not_missing(report: dict[str, Any]) -> None:
    assert judge(report=report) == ReportVerdict(ReportStanding.NOTHING, "its report is there")


@pytest.mark.parametrize(
    "report",
    [
        {},
        reported(error="NodeLost"),
        reported(attempts=1),
        reported(ended_at=ENDED_AT - 3600),
        reported(ended_at="soon"),
        reported(attempts=None),
    ],
)
def test_a_report_of_another_end_is_none_of_this_one(report: dict[str, Any]) -> None:
    assert judge(report=report) == ReportVerdict(
        ReportStanding.MISSING, "it ended 1380 s ago and has the report of another end"
    )


@pytest.mark.parametrize("name", ["RUNNING", "PENDING_REDRIVE", "SUCCEEDED"])
def test_what_runs_or_ended_well_lacks_nothing(name: str) -> None:
    assert judge(status={"name": name}).standing is ReportStanding.NOTHING


@pytest.mark.parametrize("age_s", [0.0, TIMING.missing_report_after_s - 1, TIMING.missing_report_until_s + 1])
def test_an_end_that_was_listed_as_older_counts_as_old_as_step_functions_says_now(age_s: float) -> None:
    """It was redriven, and ended again."""
    assert judge(now=ENDED_AT + age_s).standing is ReportStanding.NOTHING


@pytest.mark.parametrize("age_s", [TIMING.missing_report_after_s, TIMING.missing_report_until_s])
def test_both_ends_of_the_window_belong_to_it(age_s: float) -> None:
    assert judge(now=ENDED_AT + age_s).standing is ReportStanding.MISSING


@pytest.mark.parametrize("status", [{"name": GONE}, {"ended_at": None}])
def test_what_step_functions_does_not_say_is_unknown_and_not_missing(status: dict[str, Any]) -> None:
    assert judge(status=status).standing is ReportStanding.UNKNOWN


@pytest.mark.parametrize(
    "job",
    [
        None,
        replace(JOB, execution=f"{JOB.execution}-another"),
        replace(JOB, admitted_at=JOB.admitted_at - 91 * 86_400),
    ],
)
def test_an_execution_for_which_no_job_was_admitted_lacks_nothing(job: Any) -> None:
    assert judge(job=job).standing is ReportStanding.NOTHING
