"""The roles of grids, each for its service alone, and what a grid that ends badly is told to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contract import names
from contract.environments import GridCleanupEnvironment
from contract.timing import Timing
from tests.stacks.synth import function, logical_id, only, plain, resources, rights, variables

# The roles


def trusted(role: Mapping[str, Any]) -> tuple[str, Any]:
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    return statement["Principal"]["Service"], statement["Condition"]


def test_every_role_of_the_grids_is_for_its_service_in_this_account_alone(grid: dict[str, Any]) -> None:
    own = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    for begin, service in (
        ("TrainingRole", "sagemaker.amazonaws.com"),
        ("ChildRole", "ecs-tasks.amazonaws.com"),
        ("ChildrenStartRole", "ecs-tasks.amazonaws.com"),
        ("GridRole", "states.amazonaws.com"),
    ):
        assert trusted(only(grid, "AWS::IAM::Role", begin)) == (service, own), begin


def test_the_trainings_role_has_the_contracts_name(grid: dict[str, Any]) -> None:
    assert only(grid, "AWS::IAM::Role", "TrainingRole")["RoleName"] == names.training_role("trainyard", "eu-central-1")


def test_nobody_but_a_child_creates_trainings_or_passes_their_role(grid: dict[str, Any]) -> None:
    creating = {"sagemaker:CreateTrainingJob", "iam:PassRole"}
    may = {one.role.rstrip("0123456789ABCDEF") for one in rights(grid) if creating & {*one.actions}}
    assert may == {"ChildRole"}


def test_tags_are_set_at_creation_alone(grid: dict[str, Any]) -> None:
    (adding,) = [one for one in rights(grid) if "sagemaker:AddTags" in one.actions]
    assert adding.conditions["StringEquals"]["sagemaker:TaggingAction"] == "CreateTrainingJob"


# Bad ends


def test_every_end_but_a_good_one_is_told_to_the_grids_own_queue(grid: dict[str, Any]) -> None:
    rule = only(grid, "AWS::Events::Rule")
    machine = {"Ref": logical_id(grid, "AWS::StepFunctions::StateMachine")}
    told = {"stateMachineArn": [machine], "status": ["FAILED", "TIMED_OUT", "ABORTED"]}
    assert rule["EventPattern"]["detail"] == told
    (target,) = rule["Targets"]
    assert plain(target["Arn"]).startswith("<GridQueue")
    assert target["DeadLetterConfig"]


def test_a_message_comes_back_more_often_than_the_patience_of_a_stop_needs(grid: dict[str, Any]) -> None:
    (queue,) = [one for one in resources(grid, "AWS::SQS::Queue").values() if "RedrivePolicy" in one]
    timing = Timing()
    looks = timing.grid_stop_patience_s / timing.grid_collect_again_s
    assert queue["RedrivePolicy"]["maxReceiveCount"] > looks


def test_the_cleanup_has_everything_that_it_imports(grid: dict[str, Any]) -> None:
    environment = GridCleanupEnvironment.read(variables(function(grid, "grid_cleanup")))
    assert environment.queue == names.grid_queue("trainyard")
    assert environment.machine.endswith(f":stateMachine:{names.grid_machine('trainyard')}")
