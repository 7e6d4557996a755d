"""The roles of grids, each for its service alone, and what a grid that ends badly is told to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contract import names
from contract.environments import GridCleanupEnvironment
from contract.timing import Timing
from tests.stacks.synth import plain, resources

# The roles


def trusted(role: Mapping[str, Any]) -> tuple[str, Any]:
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    return statement["Principal"]["Service"], statement["Condition"]


def test_every_role_of_the_grids_is_for_its_service_in_this_account_alone(grid: dict[str, Any]) -> None:
    found = resources(grid, "AWS::IAM::Role")
    own = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    for begin, service in (
        ("TrainingRole", "sagemaker.amazonaws.com"),
        ("ChildRole", "ecs-tasks.amazonaws.com"),
        ("ChildrenStartRole", "ecs-tasks.amazonaws.com"),
        ("GridRole", "states.amazonaws.com"),
    ):
        (role,) = [one for name, one in found.items() if name.startswith(begin)]
        assert trusted(role) == (service, own), begin


def test_the_trainings_role_has_the_contracts_name(grid: dict[str, Any]) -> None:
    found = resources(grid, "AWS::IAM::Role")
    (role,) = [one for name, one in found.items() if name.startswith("TrainingRole")]
    assert role["RoleName"] == names.training_role("trainyard", "eu-central-1")


def test_nobody_but_a_child_creates_trainings_or_passes_their_role(grid: dict[str, Any]) -> None:
    may = {
        policy["Roles"][0]["Ref"].rstrip("0123456789ABCDEF")
        for policy in resources(grid, "AWS::IAM::Policy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if {"sagemaker:CreateTrainingJob", "iam:PassRole"} & set(listed(statement["Action"]))
    }
    assert may == {"ChildRole"}


def test_tags_are_set_at_creation_alone(grid: dict[str, Any]) -> None:
    (statement,) = [
        one
        for policy in resources(grid, "AWS::IAM::Policy").values()
        for one in policy["PolicyDocument"]["Statement"]
        if "sagemaker:AddTags" in listed(one["Action"])
    ]
    assert statement["Condition"]["StringEquals"]["sagemaker:TaggingAction"] == "CreateTrainingJob"


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


# Bad ends


def test_every_end_but_a_good_one_is_told_to_the_grids_own_queue(grid: dict[str, Any]) -> None:
    (rule,) = resources(grid, "AWS::Events::Rule").values()
    (machine_id,) = resources(grid, "AWS::StepFunctions::StateMachine")
    assert rule["EventPattern"]["detail"] == {
        "stateMachineArn": [{"Ref": machine_id}],
        "status": ["FAILED", "TIMED_OUT", "ABORTED"],
    }
    (target,) = rule["Targets"]
    assert plain(target["Arn"]).startswith("<GridQueue")
    assert target["DeadLetterConfig"]


def test_a_message_comes_back_more_often_than_the_patience_of_a_stop_needs(grid: dict[str, Any]) -> None:
    (queue,) = [one for one in resources(grid, "AWS::SQS::Queue").values() if "RedrivePolicy" in one]
    timing = Timing()
    looks = timing.grid_stop_patience_s / timing.grid_collect_again_s
    assert queue["RedrivePolicy"]["maxReceiveCount"] > looks
    (function,) = [
        one for one in resources(grid, "AWS::Lambda::Function").values() if one["Handler"].startswith("grid_cleanup")
    ]
    assert queue["VisibilityTimeout"] >= 6 * function["Timeout"]


def test_the_cleanup_has_everything_that_it_imports(grid: dict[str, Any]) -> None:
    (function,) = [
        one for one in resources(grid, "AWS::Lambda::Function").values() if one["Handler"].startswith("grid_cleanup")
    ]
    variables = {name: plain(value) for name, value in function["Environment"]["Variables"].items()}
    environment = GridCleanupEnvironment.read(variables)
    assert environment.queue == names.grid_queue("trainyard")
    assert environment.machine.endswith(f":stateMachine:{names.grid_machine('trainyard')}")
