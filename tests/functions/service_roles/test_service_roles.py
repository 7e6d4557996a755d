"""Roles of AWS's own services: made where an account lacks them, left where they stand, and a refusal says what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from stacks.parts.service_roles import ROLES
from tests.fakes.aws import Aws
from tests.fakes.cloudformation import CloudFormation, listening
from tests.fakes.faults import Kind, Mishap
from tests.fakes.functions import Functions
from tests.fakes.yard import deployed

MADE = "iam:CreateServiceLinkedRole"


@pytest.fixture(scope="module")
def cloudformation() -> Iterator[CloudFormation]:
    with listening() as server:
        yield server


@pytest.fixture
def aws(cloudformation: CloudFormation) -> Aws:
    cloudformation.answers.clear()
    cloudformation.refusals = 0
    return deployed()


def asked(aws: Aws, cloudformation: CloudFormation, kind: str, *mishaps: Mishap) -> str | None:
    """The reason of the answer, None for success."""
    functions = Functions(aws)
    request = {
        "RequestType": kind,
        "ResponseURL": cloudformation.url,
        "StackId": "arn:aws:cloudformation:eu-central-1:123456789012:stack/yard-foundation/1",
        "RequestId": "request-1",
        "LogicalResourceId": "Roles",
        "ResourceProperties": {"Roles": ROLES},
    }
    with functions.installed():
        assert functions.invoke("service_roles", request, mishaps).error == ""
    answer = cloudformation.answers[-1]
    assert answer["Status"] == ("FAILED" if answer["Reason"] else "SUCCESS")
    return answer["Reason"] or None


def made(aws: Aws) -> list[str]:
    return [call.params["AWSServiceName"] for call in aws.calls if call.name == MADE]


def test_a_new_account_gets_the_roles_that_it_lacks(aws: Aws, cloudformation: CloudFormation) -> None:
    assert asked(aws, cloudformation, "Create") is None
    assert aws.directory.roles == set(ROLES.values())


def test_a_role_that_stands_is_left_as_it_is(aws: Aws, cloudformation: CloudFormation) -> None:
    aws.directory.roles.add("AWSServiceRoleForECS")
    assert asked(aws, cloudformation, "Create") is None
    assert made(aws) == ["batch.amazonaws.com"]


def test_a_role_that_somebody_else_makes_meanwhile_is_no_failure(aws: Aws, cloudformation: CloudFormation) -> None:
    meanwhile = Mishap(MADE, times=2, meanwhile=lambda: aws.directory.roles.update(ROLES.values()))
    assert asked(aws, cloudformation, "Create", meanwhile) is None


def test_a_refusal_names_every_role_and_the_command_that_makes_it(aws: Aws, cloudformation: CloudFormation) -> None:
    reason = asked(aws, cloudformation, "Create", Mishap(MADE, times=math.inf, fault=Kind.DENIED))
    assert reason is not None
    for service in ROLES:
        assert f"aws iam create-service-linked-role --aws-service-name {service}" in reason


def test_roles_that_stand_need_no_right_to_make_them(aws: Aws, cloudformation: CloudFormation) -> None:
    aws.directory.roles.update(ROLES.values())
    assert asked(aws, cloudformation, "Create", Mishap(MADE, times=math.inf, fault=Kind.DENIED)) is None


def test_a_destroy_leaves_the_accounts_roles_alone(aws: Aws, cloudformation: CloudFormation) -> None:
    assert asked(aws, cloudformation, "Delete") is None
    assert [call for call in aws.calls if call.service == "iam"] == []
