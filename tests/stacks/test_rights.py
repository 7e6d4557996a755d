"""What policies look like: named, without wildcards where they matter. What they allow is asked in tests/security."""

from __future__ import annotations

import pytest

from contract import tags
from tests.stacks.synth import Right, Synthesised, resources, rights

ACCOUNT = "111122223333"


@pytest.fixture(scope="session")
def granted(deployment: Synthesised) -> list[Right]:
    return list(rights(deployment))


def test_no_action_has_a_wildcard(granted: list[Right]) -> None:
    assert [right for right in granted for action in right.actions if "*" in action] == []


def test_nothing_that_changes_anything_is_allowed_on_everything(granted: list[Right]) -> None:
    on_everything = {action for right in granted if "*" in right.resources for action in right.actions}
    figures = {"cloudwatch:GetMetricData", "pricing:GetProducts"}
    assert {action for action in on_everything if not action.startswith("ec2:Describe")} == figures


def test_nobody_looks_outside_of_our_regions_but_who_ends_what_is_left_there(granted: list[Right]) -> None:
    everywhere = [right for right in granted if "*" in right.resources and not right.conditions]
    assert {(right.stack, right.name) for right in everywhere} == {("trainyard-reaper", "LookEverywhere")}
    assert {action.partition(":")[2][:8] for right in everywhere for action in right.actions} == {"Describe"}


def test_no_right_crosses_accounts_by_a_wildcard(granted: list[Right]) -> None:
    assert [one for one in arns(granted) if "*" in one[4]] == []
    assert {one[4] for one in arns(granted)} <= {"", ACCOUNT, "aws"}


def test_no_right_crosses_regions_by_a_wildcard_but_to_end_what_is_ours(granted: list[Right]) -> None:
    wild = [right for right in granted if any("*" in one[2] + one[3] for one in arns([right]))]
    assert {right.stack for right in wild} == {"trainyard-reaper"}
    assert {action for right in wild for action in right.actions} == {
        "ec2:TerminateInstances",
        "ec2:DeleteVolume",
        "ec2:DeleteNetworkInterface",
        "ec2:CancelSpotInstanceRequests",
    }


def test_whatever_ends_something_wants_our_mark_on_it_and_keeps_what_is_protected(granted: list[Right]) -> None:
    ending = {"Terminate", "Delete", "Cancel"}
    ours = {"StringEquals": {f"aws:ResourceTag/{tags.DEPLOYMENT}": "trainyard"}}
    checked = 0
    for right in granted:
        if any(action.startswith(tuple(f"ec2:{verb}" for verb in ending)) for action in right.actions):
            assert right.conditions["Null"][f"aws:ResourceTag/{tags.PROTECTED}"] == "true", right.name
            by_tag = right.conditions.get("StringEquals") == ours["StringEquals"]
            by_profile = (
                "ec2:InstanceProfile" in right.conditions.get("ArnEquals", {})
                and right.conditions["Null"][f"aws:ResourceTag/{tags.DEPLOYMENT}"] == "true"
            )
            assert by_tag or by_profile, right.name
            checked += 1
    assert checked == 8


def test_no_control_plane_function_tags_or_untags_what_exists_but_the_master(granted: list[Right]) -> None:
    tagging = {right.name for right in granted for action in right.actions if "Tags" in action and "ec2:" in action}
    assert tagging == {"TagWhileLaunching", "NameTheMaster"}


def test_every_right_has_a_name_but_those_that_cdk_grants(granted: list[Right]) -> None:
    unnamed = {action for right in granted if not right.name for action in right.actions}
    assert unnamed == {"logs:CreateLogStream", "logs:PutLogEvents"}


def arns(granted: list[Right]) -> list[list[str]]:
    return [one.split(":", 5) for right in granted for one in right.resources if one.startswith("arn:")]


def test_no_role_can_be_taken_by_anybody_but_its_service(deployment: Synthesised) -> None:
    for template in deployment.stacks.values():
        for name, role in resources(template, "AWS::IAM::Role").items():
            (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
            assert statement["Principal"].keys() == {"Service"}, name
            assert "ManagedPolicyArns" not in role, name


def test_no_function_of_ours_is_open_to_other_rules(deployment: Synthesised) -> None:
    permissions = [
        one
        for template in deployment.stacks.values()
        for one in resources(template, "AWS::Lambda::Permission").values()
    ]
    assert len(permissions) == 3
    assert [one for one in permissions if "SourceArn" not in one or one["Principal"] != "events.amazonaws.com"] == []
