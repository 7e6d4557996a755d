"""The setting `workbench`: what it adds to which template, and what it never adds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from contract.codec import decode
from contract.networks import NamedNetwork
from tests.stacks.synth import every, only, resources, rights
from tools.configurations import EXISTING, THREE
from tools.synthesis import Synthesised, masked, synthesise_once

FOUNDATION = "foundation"
POLICY, OUTPUT = "AWS::IAM::ManagedPolicy", "WorkbenchPolicy"
FIVE = {
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
}


@pytest.fixture(scope="module")
def opened() -> Synthesised:
    return synthesise_once(workbench=True)


@pytest.fixture(scope="module")
def everywhere() -> Synthesised:
    """Benches in a network that the account has, in one of ours, and in a region for grids."""
    return synthesise_once(workbench=True, regions=[*EXISTING, THREE[2]])


def changed(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Lists where two templates differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from changed(before.get(key), after.get(key), f"{path}/{key}")
    elif before != after:
        yield path


def test_off_is_what_a_deployment_without_the_setting_has(deployment: Synthesised) -> None:
    off = synthesise_once(workbench=False)
    assert [stack for stack in named(off) if masked(off.text(stack)) != masked(deployment.text(stack))] == []


def named(one: Synthesised) -> list[str]:
    return [stack.removeprefix("trainyard-") for stack in one.stacks]


def test_off_no_template_names_session_manager(deployment: Synthesised) -> None:
    for stack in deployment.stacks.values():
        text = json.dumps(stack)
        assert not any(one in text for one in ("ssmmessages:", "ssm:UpdateInstance", "StartSession", OUTPUT))


def test_on_the_foundation_has_two_statements_one_policy_and_one_output_more(
    deployment: Synthesised, opened: Synthesised
) -> None:
    before, after = (json.loads(masked(one.text(FOUNDATION))) for one in (deployment, opened))
    (policy,) = set(resources(after, POLICY)) - set(resources(before, POLICY))
    nodes = next(one for one in resources(before, "AWS::IAM::Policy") if one.startswith("NodeRole"))
    assert list(changed(before, after)) == [
        f"/Outputs/{OUTPUT}",
        f"/Resources/{nodes}/Properties/PolicyDocument/Statement",
        f"/Resources/{policy}",
    ]
    was, now = (one["Resources"][nodes]["Properties"]["PolicyDocument"]["Statement"] for one in (before, after))
    assert [one for one in now if one not in was] == now[len(was) :]
    assert [one["Sid"] for one in now[len(was) :]] == ["RegisterWithSessionManager", "AnswerSessions"]


def test_on_a_node_gets_five_actions_and_no_more(deployment: Synthesised, opened: Synthesised) -> None:
    def actions(one: Synthesised) -> set[str]:
        return {action for right in rights(one.template(FOUNDATION), "NodeRole") for action in right.actions}

    assert actions(opened) - actions(deployment) == FIVE
    assert not actions(deployment) - actions(opened)


def test_on_the_readers_of_requests_learn_of_it_and_nothing_else_changes(
    deployment: Synthesised, opened: Synthesised
) -> None:
    found = {
        stack: [*changed(*(json.loads(masked(one.text(stack))) for one in (deployment, opened)))]
        for stack in named(opened)
        if stack != FOUNDATION
    }
    assert {stack for stack, places in found.items() if places} == {"grid", "search", "workflow"}
    assert all(place.endswith("/Variables/TRAINYARD_RULES") for places in found.values() for place in places)


def test_nothing_lets_anything_in(opened: Synthesised, everywhere: Synthesised, deployment: Synthesised) -> None:
    for kind in ("AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupIngress", "AWS::EC2::NetworkAclEntry"):
        assert list(every(opened, kind)) == list(every(deployment, kind))
    for one in (opened, everywhere):
        groups = [group for _, group in every(one, "AWS::EC2::SecurityGroup")]
        assert not any("SecurityGroupIngress" in group for group in groups)
        for _, rule in every(one, "AWS::EC2::SecurityGroupIngress"):
            assert rule["SourceSecurityGroupId"] == rule["GroupId"] or rule["FromPort"] == 443
            assert not {"CidrIp", "CidrIpv6", "SourcePrefixListId"} & rule.keys()


def test_there_is_no_key_pair_and_no_public_address(opened: Synthesised, everywhere: Synthesised) -> None:
    for one in (opened, everywhere):
        assert not list(every(one, "AWS::EC2::KeyPair"))
        for name, template in every(one, "AWS::EC2::LaunchTemplate"):
            data = template["LaunchTemplateData"]
            assert "KeyName" not in data, name
            for interface in data.get("NetworkInterfaces", []):
                assert interface.get("AssociatePublicIpAddress") in (None, False), name
        public = [subnet for _, subnet in every(one, "AWS::EC2::Subnet") if subnet.get("MapPublicIpOnLaunch")]
        assert all("Public" in json.dumps(subnet["Tags"]) for subnet in public)


def test_a_deploy_asks_whether_a_network_of_the_account_reaches_session_manager(everywhere: Synthesised) -> None:
    (asked,) = only(everywhere.template("workflow"), "Custom::Regions")["Networks"]
    assert decode(NamedNetwork, asked).workbench


def test_a_network_of_the_account_without_benches_is_asked_for_as_before() -> None:
    (asked,) = only(synthesise_once(regions=EXISTING).template("workflow"), "Custom::Regions")["Networks"]
    assert "workbench" not in asked
