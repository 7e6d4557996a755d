"""What policies look like: named, without wildcards where they matter. What they allow is asked in tests/security."""

from __future__ import annotations

import pytest

from tests.stacks.synth import Right, Synthesised, resources, rights


@pytest.fixture(scope="session")
def granted(deployment: Synthesised) -> list[Right]:
    return list(rights(deployment))


def test_no_action_has_a_wildcard(granted: list[Right]) -> None:
    assert [right for right in granted for action in right.actions if "*" in action] == []


def test_nothing_that_changes_anything_is_allowed_on_everything(granted: list[Right]) -> None:
    on_everything = {action for right in granted if "*" in right.resources for action in right.actions}
    assert {action for action in on_everything if not action.startswith("ec2:Describe")} == set()
    assert [right.name for right in granted if "*" in right.resources and not right.conditions] == []


def test_no_right_crosses_accounts_or_regions_by_a_wildcard(granted: list[Right]) -> None:
    wild = [
        resource
        for right in granted
        for resource in right.resources
        if resource.startswith("arn:") and "*" in "".join(resource.split(":")[2:5])
    ]
    assert wild == []


def test_every_right_has_a_name_but_those_that_cdk_grants(granted: list[Right]) -> None:
    unnamed = {action for right in granted if not right.name for action in right.actions}
    assert unnamed == {"logs:CreateLogStream", "logs:PutLogEvents"}


def test_no_role_can_be_taken_by_anybody_but_its_service(deployment: Synthesised) -> None:
    for template in deployment.stacks.values():
        for name, role in resources(template, "AWS::IAM::Role").items():
            (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
            assert statement["Principal"].keys() == {"Service"}, name
            assert "ManagedPolicyArns" not in role, name


def test_no_function_of_ours_is_open_to_other_rules(deployment: Synthesised) -> None:
    permissions = resources(deployment.template("workflow"), "AWS::Lambda::Permission").values()
    assert [one for one in permissions if "SourceArn" not in one or one["Principal"] != "events.amazonaws.com"] == []
