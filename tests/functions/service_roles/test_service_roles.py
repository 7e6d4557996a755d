"""Roles of AWS's own services: made where an account lacks them, left where they stand, and a refusal says what to do."""

from __future__ import annotations

import math

import pytest

from stacks.parts.service_roles import ROLES
from tests.fakes.aws import Aws
from tests.fakes.cloudformation import CloudFormation
from tests.fakes.faults import Kind, Mishap
from tests.fakes.functions import Functions
from tests.fakes.yard import deployed

MADE = "iam:CreateServiceLinkedRole"


@pytest.fixture
def aws() -> Aws:
    return deployed()


def send_request(aws: Aws, cloudformation: CloudFormation, kind: str, *mishaps: Mishap) -> str:
    """The reason of the answer, empty for success."""
    functions = Functions(aws)
    request = cloudformation.request(kind, {"Roles": ROLES}, stack="yard-foundation")
    with functions.installed():
        assert functions.invoke("service_roles", request, mishaps).error == ""
    answer = cloudformation.answers[-1]
    assert answer["Status"] == ("FAILED" if answer["Reason"] else "SUCCESS")
    return str(answer["Reason"])


def list_created_roles(aws: Aws) -> list[str]:
    return [call.params["AWSServiceName"] for call in aws.calls if call.name == MADE]


def test_a_new_account_gets_the_roles_that_it_lacks(aws: Aws, cloudformation: CloudFormation) -> None:
    assert send_request(aws, cloudformation, "Create") == ""
    assert aws.directory.roles == set(ROLES.values())


def test_a_role_that_stands_is_left_as_it_is(aws: Aws, cloudformation: CloudFormation) -> None:
    aws.directory.roles.add("AWSServiceRoleForECS")
    assert send_request(aws, cloudformation, "Create") == ""
    assert list_created_roles(aws) == ["batch.amazonaws.com"]


def test_a_role_that_somebody_else_makes_meanwhile_is_no_failure(aws: Aws, cloudformation: CloudFormation) -> None:
    meanwhile = Mishap(MADE, times=2, meanwhile=lambda: aws.directory.roles.update(ROLES.values()))
    assert send_request(aws, cloudformation, "Create", meanwhile) == ""


def test_a_refusal_names_every_role_and_the_command_that_makes_it(aws: Aws, cloudformation: CloudFormation) -> None:
    reason = send_request(aws, cloudformation, "Create", Mishap(MADE, times=math.inf, fault=Kind.DENIED))
    for service in ROLES:
        assert f"aws iam create-service-linked-role --aws-service-name {service}" in reason


def test_roles_that_stand_need_no_right_to_make_them(aws: Aws, cloudformation: CloudFormation) -> None:
    aws.directory.roles.update(ROLES.values())
    assert send_request(aws, cloudformation, "Create", Mishap(MADE, times=math.inf, fault=Kind.DENIED)) == ""


def test_a_destroy_leaves_the_accounts_roles_alone(aws: Aws, cloudformation: CloudFormation) -> None:
    assert send_request(aws, cloudformation, "Delete") == ""
    assert [call for call in aws.calls if call.service == "iam"] == []
