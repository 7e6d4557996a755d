"""SageMaker's and Batch's stand-ins: the states, the container contracts, the refusals and the ends that AWS documents."""

from __future__ import annotations

import io
import json
import os
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from contract import tags
from rehearsal.faults import parse_faults
from rehearsal.gaps import batch as batch_gap
from rehearsal.gaps import sagemaker as sagemaker_gap
from rehearsal.server import LocalAws
from tests.rehearsal.local_app import CALM, until
from tests.rehearsal.local_grid import AWAY, HOME, MANIFEST, Grid

pytestmark = pytest.mark.rehearsal


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with LocalAws(replace(CALM, speed=400.0), gaps=("cloudformation", "ecr", "sagemaker", "batch")) as aws:
        yield Grid(aws, tmp_path_factory.mktemp("images"))


@contextmanager
def faults(grid: Grid, *given: str) -> Iterator[None]:
    before = grid.aws.conditions
    grid.aws.conditions = replace(before, faults=parse_faults(list(given)), faults_since=time.monotonic())
    try:
        yield
    finally:
        grid.aws.conditions = before


def refused(grid: Grid, region: str = HOME, **request: Any) -> str:
    """`code: message` of the refusal."""
    until(lambda: _room(region))
    with pytest.raises(ClientError) as problem:
        grid.aws.client("sagemaker", region).create_training_job(**request)
    error = problem.value.response["Error"]
    return f"{error['Code']}: {error['Message']}"


def _room(region: str) -> bool:
    """Whether the pace lets a creation through: what is tested is another refusal."""
    left, at = sagemaker_gap._current[-1]._buckets.get(region, (5.0, 0.0))
    return left + time.monotonic() - at >= 2.0


def create(grid: Grid, name: str, region: str = HOME, **more: Any) -> str:
    until(lambda: _room(region))
    return grid.create(name, region, **more)


# SageMaker: what it does


def test_a_training_goes_through_the_states_and_leaves_what_the_contract_says(grid: Grid) -> None:
    create(grid, "whole", hyper={"steps": 4, "rate": 0.5, "name": "two words"}, count=2)
    assert grid.training("whole")["TrainingJobStatus"] == "InProgress"
    ended = grid.ended("whole")
    assert (ended["TrainingJobStatus"], ended.get("FailureReason")) == ("Completed", None)
    assert grid.path(ended) == ["Starting", "Downloading", "Training", "Uploading", "Completed"]
    assert [(one["MetricName"], one["Value"]) for one in ended["FinalMetricDataList"]] == [("loss", 0.25)]
    assert ended["BillableTimeInSeconds"] == ended["TrainingTimeInSeconds"] >= 1
    address = ended["ModelArtifacts"]["S3ModelArtifacts"]
    assert address == "s3://bytes-eu-central-1/out/whole/output/model.tar.gz"
    assert files(grid, "out/whole/output/model.tar.gz") == {"algo-1": "4", "algo-2": "4"}
    config = json.loads(files(grid, "out/whole/output/output.tar.gz")["config.json"])
    assert (config["hosts"], config["current_host"]) == (["algo-1", "algo-2"], "algo-2")
    log = grid.log("/aws/sagemaker/TrainingJobs", "whole/algo-1-")
    assert log[0] == "begins at 0 with ['a.csv'] ['--name', 'two words', '--rate', '0.5', '--steps', '4']"
    assert log[-1] == "loss=0.250"


def files(grid: Grid, key: str, region: str = HOME) -> dict[str, str]:
    body = grid.aws.client("s3", region).get_object(Bucket=f"bytes-{region}", Key=key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        return {one.name: reader.read().decode() for one in archive if (reader := archive.extractfile(one))}


def test_an_image_with_an_entry_point_is_given_the_word_train(grid: Grid) -> None:
    create(grid, "own", image="own")
    assert grid.ended("own")["TrainingJobStatus"] == "Completed"
    assert grid.log("/aws/sagemaker/TrainingJobs", "own/")[0].endswith("['a.csv'] ['train']")


def test_a_name_is_free_in_the_other_region_and_never_again_in_its_own(grid: Grid) -> None:
    create(grid, "twice")
    create(grid, "twice", AWAY)
    assert grid.ended("twice")["TrainingJobStatus"] == grid.ended("twice", AWAY)["TrainingJobStatus"] == "Completed"
    assert refused(grid, **grid.request("twice")).startswith("ResourceInUse: ")


def test_a_stopped_training_gets_its_sigterm_and_keeps_what_it_had(grid: Grid) -> None:
    create(grid, "stopped", hyper={"steps": 10_000, "pause": 0.05})
    grid.reaches("stopped", "Training")
    until(lambda: grid.training("stopped")["FinalMetricDataList"])
    grid.aws.client("sagemaker", HOME).stop_training_job(TrainingJobName="stopped")
    ended = grid.ended("stopped")
    assert (ended["TrainingJobStatus"], grid.path(ended)[-2:]) == ("Stopped", ["Stopping", "Stopped"])
    assert ended["ModelArtifacts"]["S3ModelArtifacts"]
    with pytest.raises(ClientError, match="status Stopped"):
        grid.aws.client("sagemaker", HOME).stop_training_job(TrainingJobName="stopped")


def test_one_that_does_not_hear_sigterm_is_killed_with_everything_it_started(grid: Grid) -> None:
    create(grid, "stubborn", hyper={"steps": 10_000, "pause": 0.05, "stubborn": True})
    grid.reaches("stubborn", "Training")
    (training,) = (one for one in sagemaker_gap.trainings() if one.name == "stubborn")
    until(lambda: training.containers)
    pids = [one.pid for one in training.containers]
    grid.aws.client("sagemaker", HOME).stop_training_job(TrainingJobName="stubborn")
    assert grid.ended("stubborn")["TrainingJobStatus"] == "Stopped"
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_one_that_is_stopped_before_it_has_instances_never_begins(grid: Grid) -> None:
    before = grid.aws.conditions
    grid.aws.conditions = replace(before, training_start_s=(4000.0, 4000.0))
    try:
        create(grid, "early")
    finally:
        grid.aws.conditions = before
    grid.aws.client("sagemaker", HOME).stop_training_job(TrainingJobName="early")
    ended = grid.ended("early")
    assert (ended["TrainingJobStatus"], "TrainingStartTime" in ended) == ("Stopped", False)


def test_a_failure_is_told_in_the_programs_own_words(grid: Grid) -> None:
    create(grid, "fails", hyper={"fails": "no gradient"}, count=2)
    create(grid, "dies", hyper={"dies": True})
    reasons = [grid.ended(name)["FailureReason"] for name in ("fails", "dies")]
    assert reasons[0] == "AlgorithmError: no gradient, exit code: 3"
    assert reasons[1].startswith("AlgorithmError: ExecuteUserScriptError:\nExitCode 1")
    assert "the last words" in reasons[1]


def test_beyond_its_longest_run_it_is_stopped(grid: Grid) -> None:
    create(grid, "long", hyper={"steps": 10_000, "pause": 0.05}, StoppingCondition={"MaxRuntimeInSeconds": 400})
    ended = grid.ended("long")
    assert (ended["TrainingJobStatus"], ended["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")


def test_an_interrupted_spot_training_goes_on_from_its_checkpoint(grid: Grid) -> None:
    spot: dict[str, Any] = {
        "EnableManagedSpotTraining": True,
        "StoppingCondition": {"MaxRuntimeInSeconds": 36000, "MaxWaitTimeInSeconds": 72000},
        "CheckpointConfig": {"S3Uri": f"s3://bytes-{HOME}/checkpoints/spot"},
        "Tags": [{"Key": tags.LINE, "Value": "0"}],
    }
    with faults(grid, "spot-interrupted:after=300"):
        create(grid, "spot", hyper={"steps": 40, "pause": 0.05}, **spot)
        ended = grid.ended("spot")
    assert ended["TrainingJobStatus"] == "Completed"
    path = grid.path(ended)
    assert path[path.index("Interrupted") :][:4] == ["Interrupted", "Starting", "Downloading", "Training"]
    begun = [line.split()[2] for line in grid.log("/aws/sagemaker/TrainingJobs", "spot/") if line.startswith("begins")]
    assert begun[0] == "0"
    assert int(begun[1]) > 0
    assert ended["BillableTimeInSeconds"] < ended["TrainingTimeInSeconds"]


def test_data_of_another_region_cannot_be_downloaded(grid: Grid) -> None:
    request = grid.request("abroad")
    request["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"] = f"s3://bytes-{AWAY}/data/"
    until(lambda: _room(HOME))
    grid.aws.client("sagemaker", HOME).create_training_job(**request)
    assert "The bucket is in this region: us-east-1" in grid.ended("abroad")["FailureReason"]


def test_where_no_data_lies_it_fails_in_words(grid: Grid) -> None:
    request = grid.request("nothing")
    request["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"] = f"s3://bytes-{HOME}/nowhere/"
    until(lambda: _room(HOME))
    grid.aws.client("sagemaker", HOME).create_training_job(**request)
    assert "Could not find any data at" in grid.ended("nothing")["FailureReason"]


def test_an_image_without_a_command_fails(grid: Grid) -> None:
    create(grid, "empty", image="empty")
    assert "has no ENTRYPOINT" in grid.ended("empty")["FailureReason"]


# SageMaker: what it refuses


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"TrainingJobName": "under_score"}, "failed to satisfy constraint"),
        ({"TrainingJobName": "-first"}, "failed to satisfy constraint"),
        ({"TrainingJobName": "a" * 64}, "failed to satisfy constraint"),
        ({"RoleArn": "arn:aws:iam::123456789012:role/nobody"}, "Could not assume role"),
        ({"RoleArn": "arn:aws:iam::123456789012:role/start"}, "Could not assume role"),
        ({"HyperParameters": {str(number): "x" for number in range(101)}}, "less than or equal to 100"),
        ({"Environment": {"LONG": "x" * 513}}, "'Environment'"),
        ({"StoppingCondition": {"MaxRuntimeInSeconds": 2419201}}, "at most 2419200"),
        ({"EnableManagedSpotTraining": True}, "MaxWaitTimeInSeconds"),
        ({"StoppingCondition": {"MaxRuntimeInSeconds": 9, "MaxWaitTimeInSeconds": 9}}, "only when EnableManagedSpot"),
    ],
)
def test_a_request_that_sagemaker_would_refuse_is_refused(grid: Grid, change: dict[str, Any], says: str) -> None:
    answer = refused(grid, **{**grid.request("refused"), **change})
    assert answer.startswith("ValidationException: ")
    assert says in answer


@pytest.mark.parametrize(
    ("image", "says"),
    [
        ("{home}:missing", "not found"),
        ("{home}@sha256:" + "0" * 64, "not found"),
        ("123456789012.dkr.ecr.eu-central-1.amazonaws.com/nowhere:v1", "Cannot find repository"),
        ("123456789012.dkr.ecr.us-east-1.amazonaws.com/yard/images:own", "not in the region eu-central-1"),
        ("docker.io/library/python:3", "Invalid image URI"),
    ],
)
def test_an_image_that_is_not_there_is_refused(grid: Grid, image: str, says: str) -> None:
    request = grid.request("image")
    home = grid.image("x").rpartition(":")[0]
    request["AlgorithmSpecification"]["TrainingImage"] = image.replace("{home}", home)
    assert says in refused(grid, **request)


def test_an_image_of_which_there_are_no_files_is_refused_in_words(grid: Grid) -> None:
    ecr = grid.aws.client("ecr", HOME)
    ecr.put_image(repositoryName="yard/images", imageManifest=json.dumps({"mediaType": MANIFEST}), imageTag="bare")
    assert "no build of this rehearsal made the image" in refused(grid, **grid.request("bare", image="bare"))


def test_a_type_that_is_none_is_refused(grid: Grid) -> None:
    request = grid.request("type")
    request["ResourceConfig"]["InstanceType"] = "ml.p9.huge"
    assert "'resourceConfig.instanceType'" in refused(grid, **request)


def test_what_the_model_does_not_allow_is_refused(grid: Grid) -> None:
    request = {**grid.request("model"), "OutputDataConfig": {}}
    session = grid.aws.client("sagemaker", HOME)
    with pytest.raises(Exception, match="S3OutputPath"):
        session.create_training_job(**request)


def test_beyond_the_quota_it_is_a_limit_and_the_name_stays_free(grid: Grid) -> None:
    service = sagemaker_gap._current[-1]
    service.quota["ml.m5.large"] = 1
    try:
        assert refused(grid, **grid.request("quota", count=2)).startswith("ResourceLimitExceeded: ")
    finally:
        service.quota.clear()
    create(grid, "quota")
    assert grid.ended("quota")["TrainingJobStatus"] == "Completed"


def test_too_many_creations_at_once_are_throttled(grid: Grid) -> None:
    codes = []
    bad = {**grid.request("pace", AWAY), "TrainingJobName": "under_score"}
    with ClientWithoutRetries(grid, AWAY) as client:
        for _ in range(8):
            try:
                client.create_training_job(**bad)
            except ClientError as problem:
                codes.append(problem.response["Error"]["Code"])
    assert "ThrottlingException" in codes


@contextmanager
def ClientWithoutRetries(grid: Grid, region: str) -> Iterator[Any]:  # noqa: N802
    import boto3
    from botocore.config import Config

    keys = grid.aws.credentials_for(grid.roles["job"], throttled=False)
    yield boto3.client(
        "sagemaker",
        region_name=region,
        endpoint_url=grid.aws.endpoint,
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret,
        aws_session_token=keys.token,
        config=Config(retries={"total_max_attempts": 1}),
    )


def test_a_lost_answer_leaves_a_training_behind(grid: Grid) -> None:
    until(lambda: _room(HOME))
    line = [{"Key": tags.LINE, "Value": "3"}]
    with faults(grid, "create-response-lost:line=3"), ClientWithoutRetries(grid, HOME) as client:
        with pytest.raises(ClientError, match="InternalFailure"):
            client.create_training_job(**grid.request("lost", Tags=line))
        with pytest.raises(ClientError, match="ResourceInUse"):
            client.create_training_job(**grid.request("lost", Tags=line))
    assert grid.ended("lost")["TrainingJobStatus"] == "Completed"


def test_tags_and_lists_show_what_was_created(grid: Grid) -> None:
    arn = create(grid, "listed", AWAY)
    client = grid.aws.client("sagemaker", AWAY)
    assert client.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "kind", "Value": "test"}]
    grid.ended("listed", AWAY)
    pages = client.get_paginator("list_training_jobs").paginate(NameContains="list", StatusEquals="Completed")
    assert [one["TrainingJobName"] for page in pages for one in page["TrainingJobSummaries"]] == ["listed"]
    assert client.list_training_jobs(StatusEquals="Failed", NameContains="list")["TrainingJobSummaries"] == []


def test_nobody_knows_a_training_that_never_was(grid: Grid) -> None:
    with pytest.raises(ClientError, match="Requested resource not found"):
        grid.training("never")


# Batch

RULES = [
    {"onExitCode": "75", "action": "RETRY"},
    {"onExitCode": "1*", "action": "RETRY"},
    {"onReason": "*", "action": "EXIT"},
]
STRATEGY = {"attempts": 3, "evaluateOnExit": RULES}


@pytest.fixture(scope="module")
def definition(grid: Grid) -> str:
    grid.define("child", retryStrategy=STRATEGY)
    return "child"


def test_every_child_of_an_array_knows_its_place(grid: Grid, definition: str) -> None:
    identity = grid.submit(definition, "0", size=3, tags={"a": "b"})
    assert grid.job(identity)["status"] == "PENDING"
    ended = grid.job_in(identity, "SUCCEEDED", "FAILED")
    assert (ended["status"], ended["arrayProperties"]["statusSummary"]["SUCCEEDED"]) == ("SUCCEEDED", 3)
    assert ended["tags"] == {"a": "b"}
    assert grid.aws.client("batch", HOME).list_tags_for_resource(resourceArn=ended["jobArn"])["tags"] == {"a": "b"}
    for index in range(3):
        child = grid.job(f"{identity}:{index}")
        (attempt,) = child["attempts"]
        assert attempt["container"]["exitCode"] == 0
        log = grid.log("children", attempt["container"]["logStreamName"])
        assert f"AWS_BATCH_JOB_ARRAY_INDEX {index}" in log
        assert f"AWS_BATCH_JOB_ID {identity}:{index}" in log


def test_a_plain_job_has_no_index(grid: Grid, definition: str) -> None:
    ended = grid.job_in(grid.submit(definition, "0"), "SUCCEEDED", "FAILED")
    assert ended["status"] == "SUCCEEDED"
    assert "arrayProperties" not in ended
    log = grid.log("children", ended["container"]["logStreamName"])
    assert not [line for line in log if "INDEX" in line]


@pytest.mark.parametrize(
    ("wish", "status", "codes"),
    [
        ("75,0", "SUCCEEDED", [75, 0]),
        ("75,75,75,0", "FAILED", [75, 75, 75]),
        ("64", "FAILED", [64]),
        ("137,64,0", "FAILED", [137, 64]),
    ],
)
def test_rules_say_what_is_tried_again(grid: Grid, definition: str, wish: str, status: str, codes: list[int]) -> None:
    ended = grid.job_in(grid.submit(definition, wish), "SUCCEEDED", "FAILED")
    assert ended["status"] == status
    assert [one["container"]["exitCode"] for one in ended["attempts"]] == codes


def test_a_terminated_array_ends_with_all_its_children(grid: Grid, definition: str) -> None:
    identity = grid.submit(definition, "wait", size=6)
    grid.job_in(f"{identity}:0", "RUNNING")
    grid.aws.client("batch", HOME).terminate_job(jobId=identity, reason="enough")
    ended = grid.job_in(identity, "FAILED")
    assert ended["isTerminated"]
    children = [grid.job(f"{identity}:{index}") for index in range(6)]
    assert {(one["status"], one["isTerminated"], one["statusReason"]) for one in children} == {
        ("FAILED", True, "enough")
    }
    assert not [one for one in batch_gap.jobs() if one.status == "RUNNING"]


def test_cancelling_leaves_what_runs_alone(grid: Grid, definition: str) -> None:
    client, identity = grid.aws.client("batch", HOME), grid.submit(definition, "wait", size=6)
    running = until(lambda: [i for i in range(6) if grid.job(f"{identity}:{i}")["status"] == "RUNNING"][:4] or None)
    client.cancel_job(jobId=identity, reason="later")
    statuses = [grid.job(f"{identity}:{index}") for index in range(6)]
    assert all(statuses[index]["status"] == "RUNNING" for index in running)
    assert any(one["status"] == "FAILED" and one["isCancelled"] for one in statuses)
    client.terminate_job(jobId=identity, reason="over")
    grid.job_in(identity, "FAILED")


def test_a_retired_task_comes_again_and_nobody_terminated_it(grid: Grid, definition: str) -> None:
    with faults(grid, "task-retired:after=400"):
        ended = grid.job_in(grid.submit(definition, "wait,0"), "SUCCEEDED", "FAILED")
    assert (ended["status"], ended["isTerminated"]) == ("SUCCEEDED", False)
    assert [one["container"]["exitCode"] for one in ended["attempts"]] == [75, 0]
    assert "maintenance" in ended["attempts"][0]["statusReason"]


def test_a_killed_child_comes_again(grid: Grid, definition: str) -> None:
    with faults(grid, "child-killed:after=400"):
        ended = grid.job_in(grid.submit(definition, "wait,0"), "SUCCEEDED", "FAILED")
    assert [one["container"]["exitCode"] for one in ended["attempts"]] == [137, 0]


def test_jobs_are_listed_by_queue_by_name_and_by_array(grid: Grid, definition: str) -> None:
    client, identity = grid.aws.client("batch", HOME), grid.submit(definition, "0", size=3)
    grid.job_in(identity, "SUCCEEDED")
    by_name = client.list_jobs(jobQueue="yard", filters=[{"name": "JOB_NAME", "values": ["jo*"]}])["jobSummaryList"]
    assert by_name[0]["jobId"] == identity
    pages = client.get_paginator("list_jobs").paginate(
        arrayJobId=identity, jobStatus="SUCCEEDED", PaginationConfig={"PageSize": 2}
    )
    assert len([one for page in pages for one in page["jobSummaryList"]]) == 3
    assert client.list_jobs(arrayJobId=identity)["jobSummaryList"] == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"jobQueue": "nowhere"}, "JobQueue nowhere not found"),
        ({"jobDefinition": "nothing"}, "JobDefinition nothing not found"),
        ({"jobDefinition": "child:99"}, "JobDefinition child:99 not found"),
        ({"jobName": "two words"}, "jobName"),
        ({"arrayProperties": {"size": 1}}, "between 2 and 10000"),
        ({"arrayProperties": {"size": 10_001}}, "between 2 and 10000"),
    ],
)
def test_a_job_that_batch_would_refuse_is_refused(
    grid: Grid, definition: str, change: dict[str, Any], says: str
) -> None:
    request = {"jobName": "job", "jobQueue": "yard", "jobDefinition": definition, **change}
    with pytest.raises(ClientError, match=says):
        grid.aws.client("batch", HOME).submit_job(**request)


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"image": "123456789012.dkr.ecr.eu-central-1.amazonaws.com/yard/images:gone"}, "CannotPullContainerError"),
        ({"image": "python:3"}, "CannotPullContainerError"),
        (
            {"logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "none"}}},
            "ResourceInitialization",
        ),
    ],
)
def test_a_task_that_cannot_start_says_why(grid: Grid, properties: dict[str, Any], says: str) -> None:
    definition = grid.define(f"bad-{abs(hash(says + json.dumps(properties)))}", properties=properties)
    ended = grid.job_in(grid.submit(definition, "0"), "FAILED")
    assert ended["attempts"][0]["statusReason"] == "Task failed to start"
    assert says in ended["attempts"][0]["container"]["reason"]


# the state machine's own word for it


def machine(grid: Grid, wish: str, size: int) -> dict[str, Any]:
    """As the Grid machine submits: from within a Map, with what went wrong caught."""
    job = {
        "Type": "Task",
        "Resource": "arn:aws:states:::batch:submitJob.sync",
        "Arguments": {
            "JobName": "job",
            "JobQueue": grid.queue,
            "JobDefinition": "child",
            "ArrayProperties": {"Size": size},
            "Tags": {"trainyard:grid": "g"},
            "PropagateTags": True,
            "ContainerOverrides": {"Environment": [{"Name": "WISH", "Value": wish}]},
        },
        "Catch": [{"ErrorEquals": ["States.ALL"], "Output": "{% $states.errorOutput %}", "Next": "Over"}],
        "Next": "Over",
    }
    states = {"Array": job, "Over": {"Type": "Pass", "End": True}}
    processor = {"StartAt": "Array", "States": states, "ProcessorConfig": {"Mode": "INLINE"}}
    submit = {"Type": "Map", "Items": "{% [1] %}", "ItemProcessor": processor, "End": True}
    return {"QueryLanguage": "JSONata", "StartAt": "Submit", "States": {"Submit": submit}}


def start(grid: Grid, wish: str, size: int) -> str:
    states = grid.aws.client("stepfunctions", HOME)
    arn = states.create_state_machine(
        name=f"m-{time.time_ns()}", definition=json.dumps(machine(grid, wish, size)), roleArn=grid.roles["m"]
    )["stateMachineArn"]
    return str(states.start_execution(stateMachineArn=arn, name="e", input="{}")["executionArn"])


def outcome(grid: Grid, execution: str) -> dict[str, Any]:
    states = grid.aws.client("stepfunctions", HOME)

    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = states.describe_execution(executionArn=execution)
        return found if found["status"] != "RUNNING" else None

    result: dict[str, Any] = until(look, 30.0)
    return result


def test_a_state_waits_for_the_array_and_has_its_description(grid: Grid, definition: str) -> None:  # noqa: ARG001
    ended = outcome(grid, start(grid, "75,0", 2))
    (job,) = json.loads(ended["output"])
    assert (job["Status"], job["ArrayProperties"]["Size"]) == ("SUCCEEDED", 2)
    assert grid.job(job["JobId"])["tags"] == {"trainyard:grid": "g"}


def test_an_array_that_failed_is_an_error_with_its_description(grid: Grid, definition: str) -> None:  # noqa: ARG001
    (problem,) = json.loads(outcome(grid, start(grid, "64", 2))["output"])
    assert problem["Error"] == "States.TaskFailed"
    assert json.loads(problem["Cause"])["StatusReason"] == "Array Child Job failed"


def test_an_execution_that_is_stopped_terminates_its_array(grid: Grid, definition: str) -> None:  # noqa: ARG001
    known = {one.submitted.id for one in batch_gap.jobs()}
    execution = start(grid, "wait", 2)
    job = until(lambda: next((one for one in batch_gap.jobs() if one.submitted.id not in known), None))
    grid.job_in(job.id, "RUNNING")
    grid.aws.client("stepfunctions", HOME).stop_execution(executionArn=execution)
    assert outcome(grid, execution)["status"] == "ABORTED"
    assert grid.job_in(job.submitted.id, "FAILED")["isTerminated"]
