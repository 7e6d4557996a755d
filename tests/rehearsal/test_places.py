"""Jobs over two regions and two markets on the local AWS: capacity goes away, and AWS takes a spot node back."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from contract import keys, names
from rehearsal.summary import summarise
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import ended, instances, left, shutdowns, stored, succeeded

pytestmark = [pytest.mark.rehearsal]
HOME, AWAY = "eu-central-1", "us-east-1"


@pytest.fixture(scope="module")
def jobs(second_wave: dict[str, StartedJob]) -> dict[str, StartedJob]:
    """What happens to each is in the faults of the deployment."""
    return second_wave


def rungs(job: StartedJob) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(job.describe()["output"])["rungs"]
    return found


def test_a_spot_node_that_is_taken_back_goes_on_from_its_last_checkpoint_in_another_region(
    jobs: dict[str, StartedJob],
) -> None:
    job = jobs["moved"]
    succeeded(job)
    ended(job)
    assert [one["region"] for one in rungs(job) if one["answer"] == "launched"] == [HOME, AWAY]
    assert [len(instances(job, region)) for region in (HOME, AWAY)] == [2, 2]
    assert {one["InstanceLifecycle"] for one in instances(job)} == {"spot"}
    first, second = job.reports(1), job.reports(2)
    (taken,) = summarise(job, wall_s=0.0).interruptions
    assert (
        taken["error"] == "Interrupted"
    )  # also where the machine was gone before a node could say that it had heard the notice
    (restored,) = {one.restored_step for one in second.values()}
    assert restored >= max(one.closed_step for one in first.values())
    assert restored > 0
    assert left(job) == []


def test_a_job_that_is_advised_to_leave_a_spot_node_saves_and_leaves_it_before_it_is_taken(
    jobs: dict[str, StartedJob],
) -> None:
    job = jobs["advised"]
    succeeded(job)
    ended(job)
    first, second = job.reports(1)[0], job.reports(2)[0]
    assert first.exit is not None
    assert "EC2 recommends leaving the node of rank 0" in first.exit.reason
    assert second.restored_step >= 20
    assert "Server.SpotInstanceTermination" not in shutdowns(job)
    assert left(job) == []


def test_each_object_of_the_checkpoint_went_to_the_other_region_once(yard: Yard, jobs: dict[str, StartedJob]) -> None:
    job = jobs["moved"]
    ended(job)
    calls = [call for name in ("s3:CopyObject", "s3:UploadPartCopy") for call in yard.aws.recorder.of(name=name)]
    done = [call.parameters["Key"] for call in calls if not call.error]  # AWS throttles some, and boto3 asks again
    crossed = Counter(key for key in done if f"/{job.name}/checkpoints/" in key)
    assert crossed
    assert set(crossed.values()) == {1}


def test_the_bytes_of_an_attempt_are_in_its_region_and_the_decisions_at_home(
    yard: Yard, jobs: dict[str, StartedJob]
) -> None:
    job = jobs["moved"]
    ended(job)
    account = yard.places.machine.split(":")[4]
    bucket = names.bytes_bucket("trainyard", account, AWAY)
    listed = yard.client("s3", AWAY).list_objects_v2(Bucket=bucket, Prefix=keys.BytesPrefix(job.name).root)
    assert listed["KeyCount"] > 0
    assert stored(yard, keys.JobPrefix(job.name).description)


def test_what_spot_does_not_have_is_bought_on_demand(jobs: dict[str, StartedJob]) -> None:
    job = jobs["bought"]
    succeeded(job)
    ended(job)
    asked = [(one["market"], one["answer"]) for one in rungs(job)]
    assert asked[-1] == ("on-demand", "launched")
    assert len(asked[:-1]) >= 4
    assert set(asked[:-1]) == {("spot", "InsufficientInstanceCapacity")}
    assert {one.get("InstanceLifecycle", "on-demand") for one in instances(job)} == {"on-demand"}
