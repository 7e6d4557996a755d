"""The fake SageMaker keeps SageMaker's rules: names for ever, quotas, throttles, and states that move with the clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from localaws.model import Tokens
from localaws.services.sagemaker_planned import Life, Planned
from tests.fakes.aws import Aws
from tests.fakes.faked import ONCE, refused
from tests.fakes.grid_yard import NOW, request_of

REGION = "eu-west-1"
ALGORITHM = request_of(0, REGION)["AlgorithmSpecification"]


@pytest.fixture
def aws() -> Iterator[Aws]:
    fake = Aws(now=NOW)
    with fake.connected():
        yield fake


@pytest.fixture
def here(aws: Aws) -> Planned:
    return aws.sagemaker(REGION)


def client(region: str = REGION) -> Any:
    return boto3.client("sagemaker", region_name=region, config=ONCE)


def request(name: str = "one", **changes: Any) -> dict[str, Any]:
    return request_of(0, REGION) | {"TrainingJobName": name} | changes


def states(aws: Aws, seconds: list[float], name: str = "one") -> list[tuple[str, str]]:
    found = []
    for pause in seconds:
        aws.clock.run(pause)
        answer = client().describe_training_job(TrainingJobName=name)
        found.append((answer["TrainingJobStatus"], answer["SecondaryStatus"]))
    return found


def test_a_name_is_taken_for_ever_in_its_region_and_free_in_others(aws: Aws) -> None:
    client().create_training_job(**request())
    aws.clock.run(10_000_000)
    assert refused(client().create_training_job, **request()) == "ResourceInUse"
    client("us-east-1").create_training_job(**request())


def test_an_arn_has_the_name_in_lower_case(aws: Aws) -> None:
    arn = client().create_training_job(**request("One-Two"))["TrainingJobArn"]
    assert arn.endswith(":training-job/one-two")
    assert client().list_tags(ResourceArn=arn)["Tags"]
    assert aws.calls


@pytest.mark.parametrize("operation", ["describe_training_job", "stop_training_job"])
def test_a_name_that_nobody_has_is_a_validation_exception(aws: Aws, operation: str) -> None:
    assert refused(getattr(client(), operation), TrainingJobName="nobody") == "ValidationException"
    assert len(aws.calls) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"TrainingJobName": "a" * 64},
        {"TrainingJobName": "a_b"},
        {"TrainingJobName": "-first"},
        {"Environment": {"LONG": "x" * 513}},
        {"HyperParameters": {"x" * 257: "1"}},
        {"ResourceConfig": {"InstanceType": "ml.p9.huge", "InstanceCount": 1, "VolumeSizeInGB": 1}},
        {"AlgorithmSpecification": ALGORITHM | {"MetricDefinitions": [{"Name": "loss", "Regex": "("}]}},
        {"StoppingCondition": {"MaxRuntimeInSeconds": 2_419_201}},
        {"HyperParameters": {f"p{number}": "1" for number in range(101)}},
        {"StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 120}},
        {"EnableManagedSpotTraining": True},
        {
            "EnableManagedSpotTraining": True,
            "StoppingCondition": {"MaxRuntimeInSeconds": 120, "MaxWaitTimeInSeconds": 60},
        },
        {"Tags": [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]},
        {"Tags": [{"Key": "aws:x", "Value": "1"}]},
        {"Tags": [{"Key": str(number), "Value": "1"} for number in range(51)]},
    ],
    ids=lambda changes: " ".join(changes),
)
def test_what_sagemaker_does_not_take_the_fake_does_not_take(aws: Aws, changes: dict[str, Any]) -> None:
    assert refused(client().create_training_job, **request(**changes)) == "ValidationException"
    assert aws.sagemaker(REGION).trainings == {}


def test_a_training_moves_through_its_states_with_the_clock(aws: Aws) -> None:
    client().create_training_job(**request())
    assert states(aws, [1, 180, 30, 600, 25]) == [
        ("InProgress", "Starting"),
        ("InProgress", "Downloading"),
        ("InProgress", "Training"),
        ("InProgress", "Uploading"),
        ("Completed", "Completed"),
    ]


def test_figures_are_there_when_it_has_ended_and_not_before(aws: Aws, here: Planned) -> None:
    here.life = lambda _: Life(metrics={"loss": 0.5})
    client().create_training_job(**request())
    early = client().describe_training_job(TrainingJobName="one")
    late = {"TrainingStartTime", "TrainingEndTime", "BillableTimeInSeconds", "FinalMetricDataList", "ModelArtifacts"}
    assert not late & set(early)
    aws.clock.run(1000)
    found = client().describe_training_job(TrainingJobName="one")
    assert late <= set(found)
    assert found["BillableTimeInSeconds"] == found["TrainingTimeInSeconds"] == 650


@pytest.mark.parametrize("place", ["Starting", "Downloading", "Training"])
def test_a_failure_has_a_reason_and_no_artifact(aws: Aws, here: Planned, place: str) -> None:
    here.life = lambda _: Life(failure="ClientError: x", fails_while=place)
    client().create_training_job(**request())
    aws.clock.run(1000)
    found = client().describe_training_job(TrainingJobName="one")
    assert (found["TrainingJobStatus"], found["FailureReason"]) == ("Failed", "ClientError: x")
    assert "ModelArtifacts" not in found
    assert ("BillableTimeInSeconds" in found) is (place != "Starting")
    assert client().list_training_jobs(StatusEquals="Completed")["TrainingJobSummaries"] == []


@pytest.mark.parametrize(("sigterm_s", "after"), [(5.0, 25.0), (1000.0, 140.0)])
def test_a_stop_gives_the_container_two_minutes_at_most(
    aws: Aws, here: Planned, sigterm_s: float, after: float
) -> None:
    here.life = lambda _: Life(sigterm_s=sigterm_s)
    client().create_training_job(**request())
    aws.clock.run(300)
    client().stop_training_job(TrainingJobName="one")
    assert states(aws, [1, after - 2, 2]) == [("Stopping", "Stopping")] * 2 + [("Stopped", "Stopped")]
    assert refused(client().stop_training_job, TrainingJobName="one") == "ValidationException"


def test_stopping_twice_is_stopping_once(aws: Aws) -> None:
    client().create_training_job(**request())
    aws.clock.run(300)
    client().stop_training_job(TrainingJobName="one")
    aws.clock.run(20)
    client().stop_training_job(TrainingJobName="one")
    assert states(aws, [6]) == [("Stopped", "Stopped")]


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ({"MaxRuntimeInSeconds": 100, "MaxWaitTimeInSeconds": 9000}, "MaxRuntimeExceeded"),
        ({"MaxRuntimeInSeconds": 260, "MaxWaitTimeInSeconds": 260}, "MaxWaitTimeExceeded"),
    ],
)
def test_what_is_over_its_time_is_stopped(aws: Aws, condition: dict[str, int], why: str) -> None:
    client().create_training_job(**request(EnableManagedSpotTraining=True, StoppingCondition=condition))
    assert states(aws, [1000]) == [("Stopped", why)]


def test_an_interruption_of_spot_costs_time_and_no_money(aws: Aws, here: Planned) -> None:
    here.life = lambda _: Life(interruptions=1)
    spot = {"MaxRuntimeInSeconds": 9000, "MaxWaitTimeInSeconds": 9000}
    client().create_training_job(**request(EnableManagedSpotTraining=True, StoppingCondition=spot))
    assert ("InProgress", "Interrupted") in states(aws, [510, 5, 5])
    aws.clock.run(1000)
    found = client().describe_training_job(TrainingJobName="one")
    assert found["TrainingJobStatus"] == "Completed"
    assert found["TrainingTimeInSeconds"] == 840
    assert found["BillableTimeInSeconds"] == int(650 * 0.3)


def test_a_quota_counts_instances_that_live_and_names_itself(aws: Aws, here: Planned) -> None:
    here.quotas["ml.g5.xlarge", False] = 3
    client().create_training_job(**request())
    with pytest.raises(ClientError, match=r"'ml.g5.xlarge for training job usage' is 3 Instances") as caught:
        client().create_training_job(**request("two"))
    assert caught.value.response["Error"]["Code"] == "ResourceLimitExceeded"
    aws.clock.run(1000)
    client().create_training_job(**request("two"))


def test_a_token_bucket_throttles_and_fills_again(aws: Aws, here: Planned) -> None:
    here.limits["CreateTrainingJob"] = Tokens(rate=0.5, burst=2)
    for name in ("one", "two"):
        client().create_training_job(**request(name))
    assert refused(client().create_training_job, **request("three")) == "ThrottlingException"
    assert set(here.trainings) == {"one", "two"}
    aws.clock.run(2)
    client().create_training_job(**request("three"))


def test_a_listing_has_pages_newest_first_and_filters(aws: Aws) -> None:
    for number in range(25):
        client().create_training_job(**request(f"yard-{number:02}"))
    client().create_training_job(**request("other"))
    client().stop_training_job(TrainingJobName="yard-03")
    first = client().list_training_jobs(NameContains="yard")
    assert [one["TrainingJobName"] for one in first["TrainingJobSummaries"]][:2] == ["yard-24", "yard-23"]
    assert len(first["TrainingJobSummaries"]) == 10
    pages = client().get_paginator("list_training_jobs").paginate(NameContains="yard", StatusEquals="InProgress")
    names = [one["TrainingJobName"] for page in pages for one in page["TrainingJobSummaries"]]
    assert len(names) == len(set(names)) == 24
    assert aws.calls


def test_tags_are_added_and_replaced_and_fifty_at_most(aws: Aws) -> None:
    arn = client().create_training_job(**request(Tags=[{"Key": "a", "Value": "1"}]))["TrainingJobArn"]
    client().add_tags(ResourceArn=arn, Tags=[{"Key": "a", "Value": "2"}, {"Key": "b", "Value": "3"}])
    tags = {one["Key"]: one["Value"] for one in client().list_tags(ResourceArn=arn)["Tags"]}
    assert tags == {"a": "2", "b": "3"}
    many = [{"Key": str(number), "Value": ""} for number in range(49)]
    assert refused(client().add_tags, ResourceArn=arn, Tags=many) == "ValidationException"
    assert refused(client().list_tags, ResourceArn=arn + "x") == "ValidationException"
    assert aws.calls
