"""Batch keeps Batch's rules on a virtual clock: what it refuses, what it lists, and how jobs end that somebody ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from tests.fakes.aws import Aws
from tests.fakes.faked import ONCE, refused
from tests.fakes.grid_yard import NOW

JOB = {"jobName": "job", "jobQueue": "queue", "jobDefinition": "definition"}


@pytest.fixture
def aws() -> Iterator[Aws]:
    fake = Aws(now=NOW)
    with fake.connected():
        yield fake


@pytest.fixture
def client(aws: Aws) -> Any:  # noqa: ARG001
    return boto3.client("batch", config=ONCE)


@pytest.mark.parametrize(
    "change",
    [
        {"jobQueue": "nowhere"},
        {"jobDefinition": "nothing"},
        {"jobDefinition": "definition:2"},
        {"jobName": "two words"},
        {"arrayProperties": {"size": 1}},
        {"arrayProperties": {"size": 10_001}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_batch_does_not_take_is_refused(client: Any, change: dict[str, Any]) -> None:
    assert refused(client.submit_job, **(JOB | change)) == "ClientException"
    assert client.list_jobs(jobQueue="queue", jobStatus="RUNNABLE")["jobSummaryList"] == []


def test_a_queue_that_is_disabled_takes_no_job(client: Any) -> None:
    client.update_job_queue(jobQueue="queue", state="DISABLED")
    assert refused(client.submit_job, **JOB) == "ClientException"


@pytest.mark.parametrize("operation", ["terminate_job", "cancel_job"])
def test_a_job_that_nobody_has_cannot_be_ended(client: Any, operation: str) -> None:
    assert refused(getattr(client, operation), jobId="nobody", reason="enough") == "ClientException"


def test_more_than_a_hundred_jobs_are_not_described_at_once(client: Any) -> None:
    assert client.describe_jobs(jobs=["nobody"] * 100)["jobs"] == []
    assert refused(client.describe_jobs, jobs=["nobody"] * 101) == "ClientException"


def test_an_array_is_pending_while_its_children_wait_and_lists_them_by_itself_alone(client: Any) -> None:
    job = client.submit_job(**JOB, arrayProperties={"size": 3})["jobId"]
    assert [one["jobId"] for one in client.list_jobs(jobQueue="queue", jobStatus="PENDING")["jobSummaryList"]] == [job]
    assert client.list_jobs(jobQueue="queue", jobStatus="RUNNABLE")["jobSummaryList"] == []
    children = client.list_jobs(arrayJobId=job, jobStatus="RUNNABLE")["jobSummaryList"]
    assert [one["jobId"] for one in children] == [f"{job}:{index}" for index in range(3)]


def test_a_listing_has_pages_and_its_tokens_expire(aws: Aws, client: Any) -> None:
    jobs = [client.submit_job(**JOB)["jobId"] for _ in range(120)]
    first = client.list_jobs(jobQueue="queue", jobStatus="RUNNABLE")
    assert [one["jobId"] for one in first["jobSummaryList"]] == jobs[:19:-1]  # the newest first
    rest = client.list_jobs(jobQueue="queue", jobStatus="RUNNABLE", nextToken=first["nextToken"])
    assert [one["jobId"] for one in rest["jobSummaryList"]] == jobs[19::-1]
    aws.clock.run(3600)
    late = {"jobQueue": "queue", "jobStatus": "RUNNABLE", "nextToken": first["nextToken"]}
    assert refused(client.list_jobs, **late) == "ClientException"


def test_what_runs_has_half_a_minute_when_it_is_terminated_and_what_waits_has_none(aws: Aws, client: Any) -> None:
    aws.batch.add("runs")
    waits = client.submit_job(**JOB)["jobId"]
    for job in ("runs", waits):
        client.terminate_job(jobId=job, reason="enough")
    assert [aws.batch.jobs[job]["status"] for job in ("runs", waits)] == ["RUNNING", "FAILED"]
    aws.clock.run(30)
    ended = aws.batch.jobs["runs"]
    assert (ended["status"], ended["isTerminated"], ended["statusReason"]) == ("FAILED", True, "enough")
    assert ended["stoppedAt"] > ended["startedAt"]


def test_an_array_that_is_terminated_is_over_with_the_last_of_its_children(aws: Aws, client: Any) -> None:
    aws.batch.add("array", children=2)
    client.terminate_job(jobId="array", reason="enough")
    assert (aws.batch.jobs["array"]["status"], aws.batch.jobs["array"]["isTerminated"]) == ("PENDING", True)
    aws.clock.run(30)
    assert aws.batch.jobs["array"]["status"] == "FAILED"


def test_cancelling_ends_what_waits_and_leaves_what_runs_alone(aws: Aws, client: Any) -> None:
    aws.batch.add("runs")
    waits = client.submit_job(**JOB)["jobId"]
    for job in ("runs", waits):
        client.cancel_job(jobId=job, reason="later")
    aws.clock.run(100)
    found = [(aws.batch.jobs[job]["status"], aws.batch.jobs[job]["isCancelled"]) for job in ("runs", waits)]
    assert found == [("RUNNING", False), ("FAILED", True)]


def test_jobs_of_a_queue_are_found_by_their_names_and_an_arrays_running_children_by_it(aws: Aws, client: Any) -> None:
    aws.batch.add("array", name="grid-1", children=3)
    for name, jobs in (("grid*", ["array"]), ("grid-1", ["array"]), ("other*", [])):
        named = client.list_jobs(jobQueue="queue", filters=[{"name": "JOB_NAME", "values": [name]}])["jobSummaryList"]
        assert [one["jobId"] for one in named] == jobs
    pages = client.get_paginator("list_jobs").paginate(arrayJobId="array", PaginationConfig={"PageSize": 2})
    assert len([one for page in pages for one in page["jobSummaryList"]]) == 3
    assert client.list_jobs(arrayJobId="array", jobStatus="SUCCEEDED")["jobSummaryList"] == []


def test_what_is_over_cannot_be_ended(aws: Aws, client: Any) -> None:
    aws.batch.add("over")
    aws.batch.finish("over")
    client.terminate_job(jobId="over", reason="enough")
    assert (aws.batch.jobs["over"]["status"], aws.batch.jobs["over"]["isTerminated"]) == ("SUCCEEDED", False)
