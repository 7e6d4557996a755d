"""The default security group of a network is closed at deploy, in both directions, and stays closed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.fakes.aws import Aws
from tests.fakes.cloudformation import CloudFormation
from tests.fakes.faults import Kind, Mishap
from tests.fakes.functions import Functions
from tests.fakes.yard import deployed, home

GROUP, OTHER = "sg-0default", "sg-0nodes"
FROM_ITSELF = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": GROUP}], "IpRanges": []}
EVERYTHING_OUT = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}], "UserIdGroupPairs": []}


@dataclass
class Yard:
    aws: Aws
    cloudformation: CloudFormation

    def ask(self, kind: str, group: str = GROUP, *mishaps: Mishap) -> dict[str, Any]:
        known = {"PhysicalResourceId": GROUP} if kind != "Create" else {}
        request = self.cloudformation.request(kind, {"Group": group}, stack="yard-region-eu-central-1") | known
        functions = Functions(self.aws)
        with functions.installed():
            assert functions.invoke("default_group", request, mishaps).error == ""
        return self.cloudformation.answers[-1]

    @property
    def rules(self) -> dict[str, Any]:
        return home(self.aws).rules


@pytest.fixture
def yard(cloudformation: CloudFormation) -> Yard:
    made = Yard(deployed(), cloudformation)
    for group in (GROUP, OTHER):
        made.rules[group] = {"Ingress": [dict(FROM_ITSELF)], "Egress": [dict(EVERYTHING_OUT)]}
    return made


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_every_rule_goes_in_both_directions_and_no_other_group_is_touched(yard: Yard, kind: str) -> None:
    before = yard.rules[OTHER]
    answer = yard.ask(kind)
    assert (answer["Status"], answer["PhysicalResourceId"], answer["Reason"]) == ("SUCCESS", GROUP, "")
    assert yard.rules == {GROUP: {"Ingress": [], "Egress": []}, OTHER: before}


def test_a_group_that_is_closed_already_is_asked_for_nothing(yard: Yard) -> None:
    yard.ask("Create")
    changes = len(yard.aws.changes)
    assert yard.ask("Create")["Status"] == "SUCCESS"
    assert len(yard.aws.changes) == changes


def test_a_group_that_somebody_opened_again_is_closed_by_the_next_change(yard: Yard) -> None:
    yard.ask("Create")
    yard.rules[GROUP]["Ingress"].append({"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22})
    yard.ask("Update")
    assert yard.rules[GROUP] == {"Ingress": [], "Egress": []}


def test_a_deletion_opens_nothing_closes_nothing_and_never_fails(yard: Yard) -> None:
    yard.aws.faults.add(Kind.DENIED, "ec2:DescribeSecurityGroups")
    assert yard.ask("Delete")["Status"] == "SUCCESS"
    assert yard.rules[GROUP]["Ingress"] == [FROM_ITSELF]


def test_a_group_that_cannot_be_closed_fails_the_deploy_with_ec2s_words(yard: Yard) -> None:
    answer = yard.ask("Create", "sg-0gone")
    assert answer["Status"] == "FAILED"
    assert "InvalidGroup.NotFound" in answer["Reason"]


@pytest.mark.parametrize("call", ["Ingress", "Egress"])
def test_a_denied_call_fails_the_deploy_and_a_second_try_finishes_it(yard: Yard, call: str) -> None:
    yard.aws.faults.add(Kind.DENIED, f"ec2:RevokeSecurityGroup{call}")
    assert yard.ask("Create")["Status"] == "FAILED"
    assert yard.ask("Create")["Status"] == "SUCCESS"
    assert yard.rules[GROUP] == {"Ingress": [], "Egress": []}
