"""Batch's stand-in: arrays, retries, the ways in which jobs end, and the state machine's own word for a job."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from localaws.services import batch
from localaws.services.sync_tasks import SyncTask
from localaws.testing.calm import over
from localaws.testing.grid import HOME, Grid, faults, trained_here
from localaws.testing.waiting import until

pytestmark = [pytest.mark.rehearsal]
RULES = [
    {"onExitCode": "75", "action": "RETRY"},
    {"onExitCode": "1*", "action": "RETRY"},
    {"onReason": "*", "action": "EXIT"},
]
STRATEGY = {"attempts": 3, "evaluateOnExit": RULES}


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with trained_here(tmp_path_factory.mktemp("images")) as made:
        yield made


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
    assert not [one for one in batch.jobs() if one.status == "RUNNING"]


def test_a_job_that_is_terminated_just_before_it_runs_ends(
    grid: Grid, definition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter = batch.Jobs._enter

    def late(jobs: batch.Jobs, job: batch.Job, status: str) -> None:
        if status == "RUNNING":
            grid.aws.client("batch", HOME).terminate_job(jobId=job.id, reason="enough")
        enter(jobs, job, status)

    monkeypatch.setattr(batch.Jobs, "_enter", late)
    ended = grid.job_in(grid.submit(definition, "wait"), "FAILED")
    assert (ended["isTerminated"], ended["statusReason"]) == (True, "enough")


def test_a_retired_task_comes_again_and_nobody_terminated_it(grid: Grid, definition: str) -> None:
    with faults(grid, "task-retired:after=400"):
        ended = grid.job_in(grid.submit(definition, "wait,0"), "SUCCEEDED", "FAILED")
    assert (ended["status"], ended["isTerminated"]) == ("SUCCEEDED", False)
    assert [one["container"]["exitCode"] for one in ended["attempts"]] == [75, 0]
    assert "maintenance" in ended["attempts"][0]["statusReason"]


@pytest.mark.parametrize("after", ["400", "0"], ids=["while it runs", "before its container has started"])
def test_a_killed_child_comes_again(grid: Grid, definition: str, after: str) -> None:
    with faults(grid, f"child-killed:after={after}"):
        ended = grid.job_in(grid.submit(definition, "wait,0"), "SUCCEEDED", "FAILED")
    assert [one["container"]["exitCode"] for one in ended["attempts"]] == [137, 0]


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
    """A machine that submits from within a Map, and catches what goes wrong."""
    job = {
        "Type": "Task",
        "Resource": "arn:aws:states:::batch:submitJob.sync",
        "Arguments": {
            "JobName": "job",
            "JobQueue": grid.queue,
            "JobDefinition": "child",
            "ArrayProperties": {"Size": size},
            "Tags": {"grid": "g"},
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
    return over(grid.aws.client("stepfunctions", HOME), execution)


def test_a_state_waits_for_the_array_and_has_its_description(grid: Grid, definition: str) -> None:  # noqa: ARG001
    ended = outcome(grid, start(grid, "75,0", 2))
    (job,) = json.loads(ended["output"])
    assert (job["Status"], job["ArrayProperties"]["Size"]) == ("SUCCEEDED", 2)
    assert grid.job(job["JobId"])["tags"] == job["Tags"] == {"grid": "g"}


def test_the_rule_that_tells_of_jobs_is_made_with_the_machines_role(grid: Grid, definition: str) -> None:  # noqa: ARG001
    outcome(grid, start(grid, "0", 2))
    calls = [call for call in grid.aws.recorder.of(role=grid.roles["m"]) if call.service == "events"]
    assert {call.action for call in calls} == {"DescribeRule", "PutRule", "PutTargets"}
    names = {call.parameters.get("Name") or call.parameters["Rule"] for call in calls}
    assert names == {"StepFunctionsGetEventsForBatchJobsRule"}


def test_an_array_that_failed_is_an_error_with_its_description(grid: Grid, definition: str) -> None:  # noqa: ARG001
    (problem,) = json.loads(outcome(grid, start(grid, "64", 2))["output"])
    assert problem["Error"] == "States.TaskFailed"
    assert json.loads(problem["Cause"])["StatusReason"] == "Array Child Job failed"


def test_an_execution_that_is_stopped_terminates_its_array(grid: Grid, definition: str) -> None:  # noqa: ARG001
    known = {one.submitted.id for one in batch.jobs()}
    execution = start(grid, "wait", 2)
    job = until(lambda: next((one for one in batch.jobs() if one.submitted.id not in known), None))
    grid.job_in(job.id, "RUNNING")
    grid.aws.client("stepfunctions", HOME).stop_execution(executionArn=execution)
    assert outcome(grid, execution)["status"] == "ABORTED"
    assert grid.job_in(job.submitted.id, "FAILED")["isTerminated"]


def test_an_array_whose_stop_is_lost_runs_on(
    grid: Grid,
    definition: str,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {one.submitted.id for one in batch.jobs()}
    decided: list[bool] = []
    decide = SyncTask._stop

    def noted(task: SyncTask, *given: Any) -> None:
        decide(task, *given)
        decided.append(True)

    monkeypatch.setattr(SyncTask, "_stop", noted)
    with faults(grid, "stop-lost"):
        execution = start(grid, "wait", 2)
        job = until(lambda: next((one for one in batch.jobs() if one.submitted.id not in known), None))
        grid.job_in(job.id, "RUNNING")
        grid.aws.client("stepfunctions", HOME).stop_execution(executionArn=execution)
        until(lambda: decided)
    found = grid.job(job.submitted.id)
    assert found["status"] not in {"SUCCEEDED", "FAILED"}
    assert not found["isTerminated"]
    grid.aws.client("batch", HOME).terminate_job(jobId=job.submitted.id, reason="enough")
    grid.job_in(job.submitted.id, "FAILED")
