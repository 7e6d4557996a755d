"""What an execution of the Train machine means as a line of a grid, whatever is missing from its answer."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from contract import errors
from contract.codec import decode, encode
from contract.execution_facts import REPORTED_S, Evidence, describe_execution, explain_end, is_marked, read_report
from contract.grid import LineOutcome, Record
from contract.records import record_of
from tests.fakes.executions import MACHINE
from tests.fakes.grid_yard import NOW, grid_of, job_line_of

LINE = job_line_of(3)
ARN = f"{MACHINE.replace(':stateMachine:', ':execution:')}:{LINE.training}"
OVER = NOW + 900
ADMITTED, UNKNOWN = Evidence(is_admitted=True), Evidence(is_admitted=False)


def answer(status: str, **more: Any) -> dict[str, Any]:
    began = {"executionArn": ARN, "status": status, "startDate": datetime.fromtimestamp(NOW, timezone.utc)}
    ended = {} if status == "RUNNING" else {"stopDate": datetime.fromtimestamp(OVER, timezone.utc)}
    return {**began, **ended, **more}


def test_a_job_that_runs_has_not_ended() -> None:
    facts = describe_execution(LINE, answer("RUNNING"), None, now=OVER)
    assert (facts.status, facts.ended, facts.region) == ("InProgress", False, LINE.region)


@pytest.mark.parametrize("output", [None, "", "not json", "[]", "{}", '{"cost": 3, "progress": [], "artifacts": null}'])
def test_a_job_that_ended_well_completed_whatever_its_output_lacks(output: str | None) -> None:
    facts = describe_execution(LINE, answer("SUCCEEDED", output=output), None, now=OVER)
    assert facts.outcome is LineOutcome.COMPLETED
    assert (facts.cost_usd, facts.metrics, facts.artifact, facts.seconds) == (None, {}, "", 900.0)


@pytest.mark.parametrize("metric", [float("nan"), float("inf"), None, True, "0.5"])
def test_a_metric_that_is_no_finite_number_is_left_out(metric: Any) -> None:
    output = json.dumps({"progress": {"metric": metric}})
    assert describe_execution(LINE, answer("SUCCEEDED", output=output), None, now=OVER).metrics == {}


@pytest.mark.parametrize("word", ["nan", "inf", "-inf"])
def test_a_metric_that_diverged_has_no_value_and_the_reason(word: str) -> None:
    output = json.dumps({"progress": {"metric": None, "diverged": word}})
    found = describe_execution(LINE, answer("SUCCEEDED", output=output), None, now=OVER)
    assert (found.metrics, found.metric_problems) == ({}, {"metric": f"its last value is {word}"})


@pytest.mark.parametrize("word", ["", "0.5", "=cmd()", None, 1, ["nan"], {"nan": 1}, "NaN "])
def test_what_a_node_writes_in_the_place_of_such_a_word_is_no_reason(word: Any) -> None:
    output = json.dumps({"progress": {"metric": 0.5, "diverged": word}})
    found = describe_execution(LINE, answer("SUCCEEDED", output=output), None, now=OVER)
    assert (found.metrics, found.metric_problems) == ({"metric": 0.5}, {})


def test_a_metric_beyond_what_documents_hold_has_no_value_and_the_reason() -> None:
    output = json.dumps({"progress": {"metric": 1e305}})
    found = describe_execution(LINE, answer("SUCCEEDED", output=output), None, now=OVER)
    assert (found.metrics, found.metric_problems) == ({}, {"metric": "its last value is 1e+305, beyond 1e+300"})


def test_an_unknown_cost_is_no_cost() -> None:
    output = json.dumps({"cost": {"usd_at_most": "unknown", "billed_s": 60.0}})
    facts = describe_execution(LINE, answer("SUCCEEDED", output=output), None, now=OVER)
    assert (facts.cost_usd, facts.billable_seconds) == (None, 60.0)


@pytest.mark.parametrize("status", ["ABORTED", "TIMED_OUT", "FAILED"])
def test_until_its_report_says_so_an_admitted_job_has_not_ended(status: str) -> None:
    other = Evidence(is_admitted=True, report={"error": "NodeLost", "cost": {"usd_at_most": 1.0}})
    for evidence in (ADMITTED, other):
        facts = describe_execution(LINE, answer(status), evidence, now=OVER + REPORTED_S - 1)
        assert (facts.status, facts.ended) == ("Stopping", False)
        late = describe_execution(LINE, answer(status), evidence, now=OVER + REPORTED_S)
        assert (late.ended, late.cost_usd) == (True, None)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [("ABORTED", LineOutcome.STOPPED), ("TIMED_OUT", LineOutcome.FAILED), ("FAILED", LineOutcome.FAILED)],
)
def test_a_job_that_was_never_admitted_has_ended_at_once_and_cost_nothing(status: str, outcome: LineOutcome) -> None:
    facts = describe_execution(LINE, answer(status), UNKNOWN, now=OVER)
    assert (facts.outcome, facts.cost_usd, facts.billable_seconds) == (outcome, 0.0, 0.0)


def test_only_a_refusal_of_admit_is_a_refused_line() -> None:
    said = {"error": "InvalidRequest", "cause": "The request was refused:\n- nodes: 0 is too small"}
    facts = describe_execution(LINE, answer("FAILED", **said), UNKNOWN, now=OVER)
    assert facts.outcome is LineOutcome.REFUSED
    assert facts.reason == f"InvalidRequest: The request was refused: - nodes: 0 is too small. The execution is {ARN}."
    report = {"error": "InvalidRequest", "cost": {}}
    later = describe_execution(LINE, answer("FAILED", **said), Evidence(is_admitted=True, report=report), now=OVER)
    assert later.outcome is LineOutcome.FAILED


@pytest.mark.parametrize(
    ("status", "error", "cause", "attempts", "own"),
    [
        ("FAILED", "TrainingFailed", "rank 0: the command exited with code 137.", 1, True),
        ("FAILED", "TrainingFailed", "rank 0: the command exited with code 1.\n  could not begin its command", 3, True),
        ("FAILED", "TrainingFailed", "rank 0 could not begin its command.\nIts nodes said:\n  no such image", 1, False),
        ("FAILED", "DeadlineReached", "The job's 2 hours are over.", 1, True),
        ("FAILED", "DeadlineReached", "The job's 2 hours are over.", 2, False),  # lost nodes took a part of them
        *(
            ("FAILED", error.__name__, "x", 1, False)
            for error in errors.ALL
            if error not in (errors.TrainingFailed, errors.DeadlineReached)
        ),
        ("FAILED", "States.Runtime", "x", 1, False),
        ("ABORTED", "", "", 1, False),
        ("TIMED_OUT", "", "", 1, False),
    ],
)
def test_an_end_is_the_commands_own_only_where_it_failed_or_used_up_its_hours_alone(
    status: str, error: str, cause: str, attempts: int, own: bool
) -> None:
    found = answer(status, error=error, cause=cause)
    report = {"error": explain_end(status, error, cause)[0], "attempts": attempts, "cost": {}}
    facts = describe_execution(LINE, found, Evidence(is_admitted=True, report=report), now=OVER)
    assert (facts.ended, facts.own_failure) == (True, own)


def test_the_region_is_that_of_the_newest_launch_with_instances() -> None:
    launches = [
        {"region": "eu-west-1", "instances": ["i-1"]},
        {"region": "us-east-1", "instances": ["i-2"]},
        {"region": "us-west-2", "instances": []},
    ]
    report = {"error": "Aborted", "launches": launches}
    facts = describe_execution(LINE, answer("ABORTED"), Evidence(is_admitted=True, report=report), now=OVER)
    assert facts.region == "us-east-1"


@pytest.mark.parametrize("status", ["ABORTED", "TIMED_OUT", "FAILED", "GONE", "Something new"])
def test_an_end_without_words_gets_some(status: str) -> None:
    error, cause = explain_end(status, "", "")
    assert error
    assert cause.endswith(".")
    assert explain_end(status, "E", "c") == ("E", "c")


@pytest.mark.parametrize("given", ["", "[]", "null", "not json", "{}", '{"grid_line": {"execution": "x", "index": 3}}'])
def test_an_input_that_does_not_name_the_line_is_not_its_own(given: str) -> None:
    line = job_line_of(3)
    line.request["input"] = given
    assert not is_marked(line, grid_of(4, ("eu-central-1",)))
    assert is_marked(LINE, grid_of(4, ("eu-central-1",)))
    assert not is_marked(replace(LINE, index=2), grid_of(4, ("eu-central-1",)))


@pytest.mark.parametrize("body", [None, b"", b"{", b"[]", b"3", b"\xff"])
def test_a_report_that_is_none_is_no_report(body: bytes | None) -> None:
    assert read_report(body) is None


@pytest.mark.parametrize(("at", "ended"), [(OVER - 3600, False), (OVER - 10, True), (OVER + 300, True), (None, True)])
def test_a_report_of_the_same_error_of_an_earlier_attempt_does_not_end_a_job(at: float | None, ended: bool) -> None:
    """Its instances may run: recoveries that fail alike, or a redrive, leave such a report. Older versions wrote no time."""
    report = {"error": "TrainingFailed", "cost": {"usd_at_most": 9.0}} | ({} if at is None else {"ended_at": at})
    evidence = Evidence(is_admitted=True, report=report)
    facts = describe_execution(LINE, answer("FAILED", error="TrainingFailed", cause="x"), evidence, now=OVER + 400)
    assert facts.ended is ended


@pytest.mark.parametrize(
    "more",
    [
        {"launches": [1, None]},
        {"launches": 7},
        {"cost": [1]},
        {"cost": {"usd_at_most": 10**400, "billed_s": float("nan")}},
    ],
)
def test_a_report_with_anything_in_it_makes_a_record(more: dict[str, Any]) -> None:
    evidence = Evidence(is_admitted=True, report={"error": "Aborted", **more})
    facts = describe_execution(LINE, answer("ABORTED", cause="half \ud800"), evidence, now=OVER)
    assert facts.cost_usd is None
    assert decode(Record, encode(record_of(LINE, facts))).outcome is LineOutcome.STOPPED


def test_a_report_that_is_nested_without_end_is_none() -> None:
    assert read_report(b'{"a":' * 100_000) is None
