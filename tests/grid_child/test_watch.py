"""Watching a training: few calls, words for a person, and one record at the end."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from contract import records
from contract.codec import encode
from contract.grid import ExitCode, LineOutcome
from contract.timing import Timing
from contract.training_facts import LOG_GROUP
from grid_child.policy import LONGEST_S
from localaws.services.sagemaker_planned import Life
from tests.fakes.faults import Kind, Mishap
from tests.fakes.grid_yard import BUCKET, NOW, PREFIX, GridYard

DESCRIBE = "sagemaker:DescribeTrainingJob"


def read_log(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_record_says_what_the_training_did_and_cost(yard: GridYard) -> None:
    yard.sagemaker().life = lambda _: Life(metrics={"loss": 0.25})
    assert yard.run() == ExitCode.DONE
    record, training = yard.recorded(), yard.trained()
    assert record.outcome is LineOutcome.COMPLETED
    assert record.reason == ""
    assert record.arn == training.arn
    assert record.seconds == record.billable_seconds == 650
    assert record.cost_usd == pytest.approx(650 / 3600 * 2.0, abs=1e-6)
    assert record.artifact.endswith("/output/model.tar.gz")
    assert record.metrics == {"loss": 0.25}
    assert (record.submitted_at, record.ended_at) == pytest.approx((training.created_at, training.ends_at))


def test_a_failure_is_recorded_with_its_reason(yard: GridYard) -> None:
    yard.sagemaker().life = lambda _: Life(failure="AlgorithmError: exit code 1")
    assert yard.run() == ExitCode.DONE
    record = yard.recorded()
    assert record.outcome is LineOutcome.FAILED
    assert "AlgorithmError: exit code 1" in record.reason
    assert LOG_GROUP in record.reason


def test_spot_interruptions_are_watched_through(yard: GridYard) -> None:
    yard.sagemaker().life = lambda _: Life(interruptions=2)
    assert yard.run() == ExitCode.DONE
    assert yard.recorded().outcome is LineOutcome.COMPLETED
    assert yard.calls("CreateTrainingJob") == 1


def test_a_day_of_watching_is_a_call_a_minute(yard: GridYard) -> None:
    yard.sagemaker().life = lambda _: Life(training_s=80_000)
    assert yard.run() == ExitCode.DONE
    assert 80_000 / 60 * 0.9 < yard.calls("DescribeTrainingJob") < 80_000 / 60 * 1.1


def test_children_do_not_look_in_step(yard: GridYard) -> None:
    looks: list[float] = []
    sagemaker = yard.sagemaker()
    sagemaker.life = lambda _: Life(training_s=3600)
    behind = sagemaker.answer

    def answer(operation: str, params: dict[str, Any]) -> dict[str, Any]:
        looks.append(yard.aws.clock.now)
        return behind(operation, params)

    sagemaker.answer = answer  # type: ignore[method-assign]
    yard.run()
    pauses = {round(later - earlier, 1) for earlier, later in pairwise(looks[1:])}
    assert len(pauses) > 20
    assert min(pauses) >= 48
    assert max(pauses) <= 72.1


def test_every_change_is_one_line_of_json_that_names_its_training(
    yard: GridYard, capsys: pytest.CaptureFixture[str]
) -> None:
    yard.sagemaker().life = lambda _: Life(training_s=3600)
    yard.run()
    lines = read_log(capsys)
    changes = [line["state"] for line in lines if line["event"] == "training"]
    assert [one for one in ("Starting", "Training", "Completed") if one in changes] == [
        "Starting",
        "Training",
        "Completed",
    ]
    assert len(changes) == len(set(changes))
    training = yard.lines[0].training
    assert {(one["grid"], one["line"], one["region"], one["training"]) for one in lines} == {
        ("sweep", 0, "eu-central-1", training)
    }


@pytest.mark.parametrize("kind", [Kind.UNREACHABLE, Kind.LOST, Kind.ERROR, Kind.THROTTLED])
def test_trouble_while_watching_is_waited_out(yard: GridYard, kind: Kind) -> None:
    assert yard.run(mishaps=[Mishap(DESCRIBE, nth=2, times=40, fault=kind)]) == ExitCode.DONE
    assert yard.recorded().outcome is LineOutcome.COMPLETED
    assert yard.calls("CreateTrainingJob") == 1


def test_a_training_that_is_not_visible_yet_is_not_made_twice(yard: GridYard) -> None:
    """SageMaker may not know for a moment what it has just accepted; the name stays taken."""
    sagemaker = yard.sagemaker()
    behind, hidden = sagemaker.answer, [2]

    def answer(operation: str, params: dict[str, Any]) -> dict[str, Any]:
        if operation == "DescribeTrainingJob" and hidden[0]:
            hidden[0] -= 1
            known, sagemaker.trainings = sagemaker.trainings, {}
            try:
                return behind(operation, params)
            finally:
                sagemaker.trainings = known
        return behind(operation, params)

    sagemaker.answer = answer  # type: ignore[method-assign]
    assert yard.run() == ExitCode.DONE
    assert len(sagemaker.trainings) == 1
    assert yard.recorded().outcome is LineOutcome.COMPLETED


def test_a_line_with_its_record_is_done_at_once(yard: GridYard) -> None:
    yard.run()
    calls = len(yard.aws.calls)
    assert yard.run(attempt=2) == ExitCode.DONE
    assert {call.service for call in yard.aws.calls[calls:]} == {"s3"}


def test_a_record_is_never_written_over(yard: GridYard) -> None:
    """Somebody else was faster: its word stands."""
    other = encode(replace(records.refused(yard.lines[0], "said another"), arn="arn:of:another"))
    yard.at(600, lambda: yard.put(PREFIX.record(0), other))
    assert yard.run() == ExitCode.DONE
    assert yard.aws.s3.read(BUCKET, PREFIX.record(0)) == other
    assert len(yard.aws.s3.buckets[BUCKET].objects[PREFIX.record(0)]) == 1


@pytest.mark.parametrize("kind", [Kind.LOST, Kind.ERROR_AFTER, Kind.ERROR, Kind.UNREACHABLE])
def test_a_record_whose_answer_was_lost_stands_once(yard: GridYard, kind: Kind) -> None:
    assert yard.run(mishaps=[Mishap("s3:PutObject", fault=kind)]) == ExitCode.DONE
    assert len(yard.aws.s3.buckets[BUCKET].objects[PREFIX.record(0)]) == 1


def test_a_record_that_cannot_be_written_is_written_by_the_next_attempt(yard: GridYard) -> None:
    assert yard.run(mishaps=[Mishap("s3:PutObject", times=1e9, fault=Kind.ERROR)]) == ExitCode.AGAIN
    assert yard.run(attempt=2) == ExitCode.DONE
    assert yard.recorded().outcome is LineOutcome.COMPLETED
    assert yard.calls("CreateTrainingJob") == 1


def test_before_its_container_is_too_old_a_child_leaves_and_its_retry_watches_on(yard: GridYard) -> None:
    days = 86_400.0
    line = yard.lines[0]
    request = line.request | {"StoppingCondition": {"MaxRuntimeInSeconds": int(28 * days)}}
    yard.lines[0] = replace(line, request=request)
    yard.write()
    yard.timing = replace(Timing(), training_watch_s=3600)
    yard.sagemaker().life = lambda _: Life(training_s=20 * days)
    assert yard.run() == ExitCode.AGAIN
    assert LONGEST_S <= yard.aws.clock.now - NOW < 14 * days
    assert yard.run(attempt=2) == ExitCode.DONE
    assert yard.calls("CreateTrainingJob") == 1
    assert yard.recorded().outcome is LineOutcome.COMPLETED
