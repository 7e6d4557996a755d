"""A line's final word: made of the line and of SageMaker's answer, in words for a person, and priced where a price is known."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from contract import records
from contract.codec import decode, encode
from contract.grid import Line, LineOutcome, Record
from contract.training_facts import LOG_GROUP, describe_training

BEGAN, OVER = 1_800_000_300.0, 1_800_001_200.0
LINE = Line(
    index=3,
    line=2,
    region="eu-west-1",
    why="the manifest says so",
    slot=0,
    request={
        "TrainingJobName": "yard-sweep-d275a33309f0-3",
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200},
    },
    source={"region": "eu-west-1"},
    hourly_usd=4.0,
)
COMPLETED: dict[str, Any] = {
    "TrainingJobName": LINE.training,
    "TrainingJobArn": "arn:aws:sagemaker:eu-west-1:123456789012:training-job/yard-sweep-d275a33309f0-3",
    "TrainingJobStatus": "Completed",
    "SecondaryStatus": "Completed",
    "CreationTime": datetime.fromtimestamp(1_800_000_000, timezone.utc),
    "TrainingStartTime": datetime.fromtimestamp(BEGAN, timezone.utc),
    "TrainingEndTime": datetime.fromtimestamp(OVER, timezone.utc),
    "BillableTimeInSeconds": 900,
    "ModelArtifacts": {"S3ModelArtifacts": "s3://b/o/model.tar.gz"},
    "FinalMetricDataList": [{"MetricName": "loss", "Value": 0.25, "Timestamp": 0}],
}


def recorded(line: Line, answer: dict[str, Any]) -> Record:
    return records.record_of(line, describe_training(line, answer))


def failed(reason: str) -> dict[str, Any]:
    return COMPLETED | {"TrainingJobStatus": "Failed", "SecondaryStatus": "Failed", "FailureReason": reason}


def stopped(secondary: str) -> dict[str, Any]:
    return COMPLETED | {"TrainingJobStatus": "Stopped", "SecondaryStatus": secondary}


def test_a_completed_training_has_no_reason_and_all_its_figures() -> None:
    record = recorded(LINE, COMPLETED)
    assert record == Record(
        index=3,
        line=2,
        region="eu-west-1",
        training=LINE.training,
        outcome=LineOutcome.COMPLETED,
        reason="",
        arn=COMPLETED["TrainingJobArn"],
        seconds=900.0,
        billable_seconds=900.0,
        cost_usd=1.0,
        artifact="s3://b/o/model.tar.gz",
        metrics={"loss": 0.25},
        submitted_at=1_800_000_000.0,
        ended_at=OVER,
        log="https://eu-west-1.console.aws.amazon.com/cloudwatch/home?region=eu-west-1#logsV2:log-groups/log-group/"
        f"$252Faws$252Fsagemaker$252FTrainingJobs$3FlogStreamNameFilter$3D{LINE.training}$252F",
    )
    assert decode(Record, encode(record)) == record


def test_times_may_be_seconds_as_a_machine_hands_them_on() -> None:
    plain = COMPLETED | {"CreationTime": 1_800_000_000, "TrainingStartTime": BEGAN, "TrainingEndTime": OVER}
    assert recorded(LINE, plain) == recorded(LINE, COMPLETED)


@pytest.mark.parametrize("status", ["InProgress", "Stopping", "Deleting", "Something new"])
def test_a_training_that_has_not_ended_has_no_record(status: str) -> None:
    answer = COMPLETED | {"TrainingJobStatus": status}
    assert not describe_training(LINE, answer).ended
    with pytest.raises(ValueError, match="has no record yet"):
        recorded(LINE, answer)


@pytest.mark.parametrize(
    ("reason", "meaning", "logs"),
    [
        ("AlgorithmError: ExecuteUserScriptError: ExitCode 1", "own code or container", True),
        ("ClientError: Data download failed: AccessDenied (403)", "data, image, role or parameters", True),
        ("InternalServerError: We encountered an internal error.", "SageMaker itself failed", False),
        ("CapacityError: Unable to provision requested ML compute capacity.", "no machines of this type", False),
        ("ResourceLimitExceeded: The account-level service limit", "quota", False),
    ],
)
def test_a_failure_says_what_its_class_means_and_what_sagemaker_said(reason: str, meaning: str, logs: bool) -> None:
    record = recorded(LINE, failed(reason))
    assert record.outcome is LineOutcome.FAILED
    assert meaning in record.reason
    assert reason.rstrip(".") in record.reason
    assert (f"{LOG_GROUP} in eu-west-1, streams {LINE.training}/" in record.reason) is logs


@pytest.mark.parametrize(
    ("answer", "own"),
    [
        (COMPLETED, None),
        (failed("AlgorithmError: ExecuteUserScriptError: ExitCode 1"), True),
        (failed("AlgorithmError: , exit code: 137"), True),
        (
            failed("ClientError: Please use an instance type with more memory, or reduce the size of training data"),
            True,
        ),
        (failed("ClientError: Data download failed: AccessDenied (403)"), False),
        (failed("ClientError: The image does not exist"), False),
        (failed("InternalServerError: We encountered an internal error."), False),
        (failed("CapacityError: Unable to provision requested ML compute capacity."), False),
        (failed("ResourceLimitExceeded: The account-level service limit"), False),
        (failed("MysteryError: what?"), False),
        (failed(""), False),
        (stopped("MaxRuntimeExceeded"), True),
        (stopped("MaxWaitTimeExceeded"), False),
        (stopped("Interrupted"), False),
        (stopped("Stopped"), False),
    ],
)
def test_an_end_is_the_trainings_own_where_its_code_failed_or_was_too_slow(answer: Any, own: bool | None) -> None:
    assert recorded(LINE, answer).own_failure is own


def test_a_failure_of_a_class_nobody_knows_is_told_as_it_is_with_the_place_of_the_logs() -> None:
    record = recorded(LINE, failed("MysteryError: what?"))
    assert record.reason.startswith("SageMaker: MysteryError: what?")
    assert LOG_GROUP in record.reason


@pytest.mark.parametrize("said", ["", None, "  \n "])
def test_a_failure_without_a_reason_says_so(said: str | None) -> None:
    answer = failed("") | {"FailureReason": said}
    assert recorded(LINE, answer).reason.startswith("SageMaker says Failed and gives no reason")


def test_a_reason_is_one_line_of_a_table() -> None:
    record = recorded(LINE, failed("AlgorithmError: Traceback\n  File x\r\nValueError"))
    assert "\n" not in record.reason
    assert "\r" not in record.reason


@pytest.mark.parametrize(
    ("secondary", "words"),
    [
        ("Stopped", "was stopped before it completed"),
        ("MaxRuntimeExceeded", "MaxRuntimeInSeconds 3600"),
        ("MaxWaitTimeExceeded", "MaxWaitTimeInSeconds 7200"),
        ("Interrupted", "lost its spot machines"),
        ("Something new", "was stopped before it completed"),
    ],
)
def test_a_stop_says_what_stopped_it(secondary: str, words: str) -> None:
    record = recorded(LINE, stopped(secondary))
    assert record.outcome is LineOutcome.STOPPED
    assert words in record.reason


def test_a_stop_by_a_limit_that_the_line_does_not_name_is_told_all_the_same() -> None:
    line = replace(LINE, request={"TrainingJobName": "a"})
    assert "SageMaker's default" in recorded(line, stopped("MaxRuntimeExceeded")).reason


def test_braces_in_sagemakers_words_are_text() -> None:
    assert "{0} {runtime}" in recorded(LINE, failed("AlgorithmError: {0} {runtime}")).reason


def test_without_a_price_there_is_no_cost() -> None:
    record = recorded(replace(LINE, hourly_usd=None), COMPLETED)
    assert record.cost_usd is None
    assert record.billable_seconds == 900


def test_what_spot_saves_is_in_the_seconds() -> None:
    record = recorded(LINE, COMPLETED | {"EnableManagedSpotTraining": True, "BillableTimeInSeconds": 270})
    assert (record.seconds, record.billable_seconds, record.cost_usd) == (900.0, 270.0, 0.3)


def test_a_spot_training_of_which_sagemaker_bills_something_unknown_has_no_cost() -> None:
    answer = {k: v for k, v in COMPLETED.items() if k != "BillableTimeInSeconds"} | {"EnableManagedSpotTraining": True}
    record = recorded(LINE, answer)
    assert (record.billable_seconds, record.cost_usd) == (None, None)


def test_an_on_demand_training_is_billed_from_start_to_end() -> None:
    answer = {k: v for k, v in COMPLETED.items() if k != "BillableTimeInSeconds"}
    assert recorded(LINE, answer).billable_seconds == 900


def test_a_training_that_never_started_costs_nothing_even_without_a_price() -> None:
    answer = failed("CapacityError: none") | {"LastModifiedTime": OVER}
    for name in ("TrainingStartTime", "TrainingEndTime", "BillableTimeInSeconds"):
        del answer[name]
    record = recorded(replace(LINE, hourly_usd=None), answer)
    assert (record.seconds, record.billable_seconds, record.cost_usd, record.ended_at) == (None, 0.0, 0.0, OVER)


def test_a_clock_that_went_back_makes_no_negative_time() -> None:
    answer = COMPLETED | {"TrainingStartTime": OVER, "TrainingEndTime": BEGAN}
    assert recorded(LINE, answer).seconds == 0.0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_metric_that_is_no_number_is_left_out_of_the_record(value: float) -> None:
    metrics = [{"MetricName": "loss", "Value": value}, {"MetricName": "epoch", "Value": 3.0}]
    record = recorded(LINE, COMPLETED | {"FinalMetricDataList": metrics})
    assert json.loads(encode(record))["metrics"] == {"epoch": 3.0}
    assert record.metric_problems == {"loss": f"its last value is {value}"}
    assert (record.reason, record.explanation) == ("", f"loss: its last value is {value}")


def test_a_training_without_artifact_and_metrics_has_empty_ones() -> None:
    answer = failed("AlgorithmError: x")
    del answer["ModelArtifacts"], answer["FinalMetricDataList"]
    record = recorded(LINE, answer)
    assert (record.artifact, record.metrics) == ("", {})


@pytest.mark.parametrize(
    ("make", "outcome"), [(records.refused, LineOutcome.REFUSED), (records.not_started, LineOutcome.STOPPED)]
)
def test_a_line_without_a_training_costs_nothing_and_names_none(make: Any, outcome: LineOutcome) -> None:
    record = make(LINE, "because")
    assert (record.outcome, record.reason, record.arn, record.cost_usd) == (outcome, "because", "", 0.0)


def test_the_same_answer_makes_the_same_bytes_whoever_writes_them() -> None:
    assert encode(recorded(LINE, dict(reversed(COMPLETED.items())))) == encode(recorded(LINE, COMPLETED))
