"""Roles of the local AWS, which several stacks make at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.iam.models import IAMBackend, iam_backends

from localaws.model import ACCOUNT
from localaws.server import LocalAws
from localaws.testing.calm import CALM

pytestmark = pytest.mark.rehearsal


@pytest.fixture
def roles(tmp_path: Path) -> Iterator[IAMBackend]:
    with LocalAws(CALM, gaps=("iam",), work=tmp_path):
        yield iam_backends[ACCOUNT]["aws"]


def make(roles: IAMBackend, name: str) -> None:
    roles.create_role(name, json.dumps({}), "/", None, "", {}, 3600)


def test_roles_can_be_listed_while_another_stack_makes_one(roles: IAMBackend) -> None:
    make(roles, "first")
    make(roles, "second")
    seen = []
    for number, role in enumerate(roles.get_roles()):
        make(roles, f"other-{number}")
        seen.append(role.name)
    assert seen == ["first", "second"]


def test_a_stack_that_goes_takes_its_managed_policies_along(tmp_path: Path) -> None:
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}
    template = {
        "Resources": {
            "Role": {"Type": "AWS::IAM::Role", "Properties": {"RoleName": "one", "AssumeRolePolicyDocument": policy}},
            "Rights": {
                "Type": "AWS::IAM::ManagedPolicy",
                "Properties": {"PolicyDocument": policy, "Roles": [{"Ref": "Role"}]},
            },
        }
    }
    with LocalAws(CALM, gaps=("iam",), work=tmp_path) as aws:
        stacks, iam = aws.client("cloudformation", "eu-central-1"), aws.client("iam", "eu-central-1")
        stacks.create_stack(StackName="rights", TemplateBody=json.dumps(template))
        assert len(iam.list_attached_role_policies(RoleName="one")["AttachedPolicies"]) == 1
        stacks.delete_stack(StackName="rights")
        assert iam.list_policies(Scope="Local")["Policies"] == []
        assert [one["RoleName"] for one in iam.list_roles()["Roles"] if one["RoleName"] == "one"] == []
