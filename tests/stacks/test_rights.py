"""What policies look like: named, without wildcards where they matter. What they allow is asked in tests/security."""

from __future__ import annotations

import pytest

from contract import tags
from tests.stacks.synth import Right, every, plain, rights
from tools.synthesis import Synthesised

ACCOUNT = "111122223333"
CONTAINERS = "763104351884"
"""AWS's account of Deep Learning Containers."""
PSEUDO_ACCOUNT = {"Ref": "AWS::AccountId"}
OF_A_LAUNCH = {
    "MakeEncryptedVolumes",
    "MakePrivateInterfaces",
    "LaunchIntoOurNetwork",
    "LaunchFromImages",
    "RequestSpot",
    "TagWhileLaunching",
}
"""Rights that a launch needs beside the one on its instance, which alone names our regions."""


@pytest.fixture(scope="session")
def granted(deployment: Synthesised) -> list[Right]:
    return [one for stack, template in deployment.stacks.items() for one in rights(template, stack=stack)]


def test_no_action_has_a_wildcard(granted: list[Right]) -> None:
    assert [right for right in granted for action in right.actions if "*" in action] == []


def test_nothing_that_changes_anything_is_allowed_on_everything(granted: list[Right]) -> None:
    on_everything = {action for right in granted if "*" in right.resources for action in right.actions}
    knowing_none = {
        "cloudwatch:GetMetricData",
        "ec2:GetEbsDefaultKmsKeyId",
        "cloudwatch:PutMetricData",
        "pricing:GetProducts",
        "ecr:GetAuthorizationToken",
        "sagemaker:ListTrainingJobs",
        "batch:ListJobs",
        "batch:DescribeJobs",
        "dynamodb:ListStreams",
    }
    assert {action for action in on_everything if not action.startswith("ec2:Describe")} == knowing_none


def test_nobody_looks_outside_of_our_regions_but_who_ends_what_is_left_there(granted: list[Right]) -> None:
    unbound = [right for right in granted if "*" in right.resources and not right.conditions]
    everywhere = [right for right in unbound if right.name != "LogInToRegistries"]
    assert {(right.stack, right.name) for right in everywhere} == {
        ("trainyard-reaper", "DescribeInEveryRegion"),
        ("trainyard-reaper", "ListTrainings"),
    }
    looking = {action for right in everywhere for action in right.actions}
    assert {one for one in looking if not one.startswith("ec2:Describe")} == {"sagemaker:ListTrainingJobs"}


def test_no_right_crosses_accounts_by_a_wildcard(granted: list[Right]) -> None:
    assert [one for one in arns(granted) if "*" in one[4]] == []
    foreign = {(right.name, one[4]) for right in granted for one in arns([right]) if one[4] not in {"", ACCOUNT, "aws"}}
    reading = ("PullBaseImages", "PullImages", "CheckImages", "LookAtImages", "ListContainers")
    assert foreign == {(name, CONTAINERS) for name in reading}


def test_a_launch_is_bound_to_our_regions_by_its_instance(granted: list[Right]) -> None:
    of_a_launch = [right for right in granted if {"ec2:RunInstances", "ec2:CreateTags"} & set(right.actions)]
    bound = {right.name for right in of_a_launch if requested_regions(right) == ["eu-central-1"]}
    assert bound == {"LaunchWithOurTags", "TagTheMaster"}
    assert {right.name for right in of_a_launch} - bound == OF_A_LAUNCH
    with_instance = [right for right in of_a_launch if any(one.endswith(":instance/*") for one in right.resources)]
    assert {right.name for right in with_instance} == {*bound, "TagWhileLaunching"}


def test_no_right_crosses_regions_but_to_end_what_is_ours_and_to_ask_what_stands(granted: list[Right]) -> None:
    wild = [right for right in granted if any("*" in one[2] + one[3] for one in arns([right]))]
    free = [
        right
        for right in wild
        # Admit reads what an image says of itself: a list of regions would be too long for its role.
        if requested_regions(right) != ["eu-central-1"]
        and right.name not in {*OF_A_LAUNCH, "LookAtImages", "ListContainers"}
    ]
    assert {action for right in free for action in right.actions} == {
        "ec2:TerminateInstances",
        "ec2:DeleteVolume",
        "ec2:DeleteNetworkInterface",
        "ec2:CancelSpotInstanceRequests",
        "ssm:GetParameter",
        "sagemaker:DescribeTrainingJob",
        "sagemaker:ListTags",
        "sagemaker:StopTrainingJob",
    }
    assert {right.name for right in free if "ssm:GetParameter" in right.actions} == {"ReadRegionParameters"}
    assert {right.stack for right in free if right.name != "ReadRegionParameters"} == {"trainyard-reaper"}


def test_a_pattern_of_buckets_is_of_this_account_alone(granted: list[Right]) -> None:
    buckets = [right for right in granted for one in arns([right]) if one[2] == "s3" and "*" in one[5].split("/")[0]]
    assert len(buckets) >= 5
    assert [one for one in buckets if one.conditions["StringEquals"] != {"aws:ResourceAccount": PSEUDO_ACCOUNT}] == []


def test_whatever_ends_something_wants_our_mark_on_it_and_keeps_what_is_protected(granted: list[Right]) -> None:
    ending = {"Terminate", "Delete", "Cancel"}
    ours = (f"aws:ResourceTag/{tags.DEPLOYMENT}", "trainyard")
    checked = 0
    for right in granted:
        if any(action.startswith(tuple(f"ec2:{verb}" for verb in ending)) for action in right.actions):
            assert right.conditions["Null"][f"aws:ResourceTag/{tags.PROTECTED}"] == "true", right.name
            by_tag = ours in right.conditions.get("StringEquals", {}).items()
            untagged = right.conditions["Null"].get(f"aws:ResourceTag/{tags.DEPLOYMENT}") == "true"
            by_profile = "ec2:InstanceProfile" in right.conditions.get("ArnEquals", {})
            instances = any(resource.endswith(":instance/*") for resource in right.resources)
            assert by_profile == instances, right.name  # other things have no profile
            assert by_tag or (untagged and by_profile), right.name
            checked += 1
    assert checked == 9


def test_no_control_plane_function_tags_or_untags_what_exists_but_the_master(granted: list[Right]) -> None:
    tagging = {right.name for right in granted for action in right.actions if "Tags" in action and "ec2:" in action}
    assert tagging == {"TagWhileLaunching", "TagTheMaster"}


def test_every_right_has_a_name_but_those_that_cdk_grants(granted: list[Right]) -> None:
    unnamed = {action for right in granted if not right.name for action in right.actions}
    assert unnamed == {"logs:CreateLogStream", "logs:PutLogEvents"}


def requested_regions(right: Right) -> list[str]:
    found = right.conditions.get("StringEquals", {}).get("aws:RequestedRegion", [])
    return found if isinstance(found, list) else [found]


def arns(granted: list[Right]) -> list[list[str]]:
    return [one.split(":", 5) for right in granted for one in right.resources if one.startswith("arn:")]


def test_no_role_can_be_taken_by_anybody_but_its_service(deployment: Synthesised) -> None:
    for name, role in every(deployment, "AWS::IAM::Role"):
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        if name.partition("/")[2].startswith("JobRole"):
            assert plain(statement["Principal"]["AWS"]).startswith("<AttendantRole"), (
                "sessions of jobs begin with the attendant"
            )
        else:
            assert statement["Principal"].keys() == {"Service"}, name
        assert "ManagedPolicyArns" not in role, name


def test_no_function_of_ours_is_open_to_other_rules(deployment: Synthesised) -> None:
    permissions = [one for _, one in every(deployment, "AWS::Lambda::Permission")]
    assert len(permissions) == 3  # the clocks of the attendant, of the launcher and of the cleanup
    assert [one for one in permissions if "SourceArn" not in one or one["Principal"] != "events.amazonaws.com"] == []
