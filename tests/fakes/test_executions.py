"""What the fake knows of executions, queues and versions, where the product leans on it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError

from aws import executions
from aws.queue import Queue
from aws.s3 import Bucket
from tests.builders import JOB, PLACE
from tests.fakes.aws import Aws
from tests.fakes.executions import MACHINE
from tests.fakes.queue import URL
from tests.fakes.yard import deployed


@pytest.fixture
def aws() -> Iterator[Aws]:
    made = deployed()
    with made.connected():
        yield made


def test_a_new_execution_is_described_at_once_and_listed_late(aws: Aws) -> None:
    begun = aws.states.executions.begin("job-1")
    assert executions.status(begun.arn).runs
    assert list(executions.running(MACHINE)) == []
    aws.clock.run(5)
    assert list(executions.running(MACHINE)) == [begun.arn]


def test_every_page_of_executions_is_read_and_of_one_machine_alone(aws: Aws) -> None:
    aws.states.executions.pages.size = 7
    for number in range(50):
        aws.states.executions.begin(f"job-{number}")
    aws.states.executions.machines.add(f"{MACHINE}-2")
    aws.states.executions.begin("job-1", f"{MACHINE}-2")
    aws.clock.run(5)
    assert len(set(executions.running(MACHINE))) == 50


def test_what_ended_well_or_long_ago_did_not_end_lately(aws: Aws) -> None:
    made = {name: aws.states.executions.begin(name) for name in ("runs", "well", "long-ago", "lately")}
    aws.states.executions.end(made["long-ago"], "FAILED")
    aws.clock.run(1000)
    aws.states.executions.end(made["well"], "SUCCEEDED")
    aws.states.executions.end(made["lately"], "TIMED_OUT")
    found = executions.lately(MACHINE, aws.clock.now - 500)
    assert found == {made["runs"].arn: "RUNNING", made["lately"].arn: "TIMED_OUT"}
    assert executions.lately(f"{MACHINE}-2", 0.0) is None


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize("arn", ["job-1", MACHINE, "arn:aws:states:eu-central-1:123456789012:execution:yard-train"])
def test_an_arn_that_is_none_is_no_execution_that_is_gone(arn: str) -> None:
    with pytest.raises(ClientError, match="Invalid Arn"):
        executions.status(arn)


def test_stopping_what_is_over_or_gone_changes_nothing(aws: Aws) -> None:
    over = aws.states.executions.begin("job-1")
    aws.states.executions.end(over, "SUCCEEDED")
    executions.stop(over.arn, "Aborted", "too late")
    executions.stop(f"{over.arn}-never-was", "Aborted", "too late")
    assert (over.status, over.cause) == ("SUCCEEDED", None)


def test_a_cause_that_is_too_long_is_cut_and_no_error(aws: Aws) -> None:
    begun = aws.states.executions.begin("job-1")
    executions.stop(begun.arn, "Aborted", "x" * 100_000)
    assert executions.status(begun.arn).name == "ABORTED"


def test_an_execution_started_twice_runs_once(aws: Aws) -> None:
    for since in (1.0, 1.0, 2.0):
        executions.start(MACHINE, "drain-1", {"since": since})
    (only,) = aws.states.executions.known.values()
    assert json.loads(only.input) == {"since": 1.0}


def test_a_delayed_message_comes_after_its_delay_rounded_up(aws: Aws) -> None:
    received: list[float] = []
    begun = aws.clock.now

    def function(_: object) -> dict[str, list[str]]:
        received.append(aws.clock.now - begun)
        return {"batchItemFailures": []}

    aws.queue.feed(function)
    Queue(URL).send("late", in_s=5.5)
    Queue(URL).send("later than SQS can", in_s=10_000)
    aws.clock.run(2000)
    assert [round(at) for at in received] == [6, 900]


def test_a_message_of_a_function_that_died_comes_back_after_the_queues_own_time(aws: Aws) -> None:
    times: list[float] = []

    def function(_: object) -> dict[str, list[str]] | None:
        times.append(aws.clock.now)
        return {"batchItemFailures": []} if len(times) == 2 else None

    aws.queue.feed(function)
    aws.queue.put("x")
    aws.clock.run(2000)
    assert times[1] - times[0] == aws.queue.visibility_s
    assert not aws.queue.messages


def test_a_receipt_that_is_no_longer_good_changes_nothing(aws: Aws) -> None:
    aws.queue.put("x")
    with pytest.raises(ClientError, match="in flight"):
        Queue(URL).again("message-0-receipt-1", in_s=1)


def test_delete_markers_are_versions_and_deleting_by_version_leaves_nothing(aws: Aws) -> None:
    bucket = Bucket(PLACE.bucket, PLACE.region)
    bucket.put("a", b"1")
    bucket.put("a", b"2")
    bucket.delete("a")
    (page,) = bucket.versions()
    assert len(page) == 3
    assert bucket.delete_versions(page) == {}
    assert aws.s3.buckets[PLACE.bucket].objects == {}
    assert bucket.delete_versions([]) == {}


def test_a_bucket_that_is_not_there_is_no_error_and_one_that_is_not_ours_is(aws: Aws) -> None:
    assert Bucket(JOB.home_bucket).exists()
    assert not Bucket("nobodys").exists()
    aws.s3.buckets["theirs"] = aws.s3.buckets[JOB.home_bucket]
    aws.s3.buckets["theirs"].forbidden = ("",)
    with pytest.raises(ClientError):
        Bucket("theirs").exists()
