"""Who can open a connection to whom: nodes of one group to each other, and to nobody else's."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from contract.names import region_stack
from stacks.network_settings import MOST_SECURITY_GROUPS
from tests.stacks.regions import synthesise_regions
from tests.stacks.synth import every, place_of, plain, resources
from tools.synthesis import Synthesised

REGION = "region-eu-central-1"
INGRESS, EGRESS = "AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress"
EVERYTHING = {"IpProtocol": "-1"}


@pytest.fixture(scope="module")
def groups(deployment: Synthesised) -> tuple[str, ...]:
    """Ids of the pool, as the region publishes them."""
    return place_of(deployment, "eu-central-1").security_groups


def rules(deployment: Synthesised, kind: str) -> list[dict[str, Any]]:
    """Rules that are resources of their own."""
    return [one for _, one in every(deployment, kind)]


def test_no_security_group_lets_anything_in_but_from_itself(deployment: Synthesised) -> None:
    for name, group in every(deployment, "AWS::EC2::SecurityGroup"):
        assert "SecurityGroupIngress" not in group, name
    for rule in rules(deployment, INGRESS):
        assert not {"CidrIp", "CidrIpv6", "SourcePrefixListId"} & rule.keys()
        assert rule["SourceSecurityGroupId"] == rule["GroupId"]


def test_no_group_of_a_job_has_a_way_to_that_of_another(deployment: Synthesised, groups: tuple[str, ...]) -> None:
    """Nodes may open TCP 443 to every address, so the other side's ingress must not let them in."""
    allowed = {(plain(one["SourceSecurityGroupId"]), plain(one["GroupId"])) for one in rules(deployment, INGRESS)}
    named = {(plain(one["GroupId"]), plain(one["DestinationSecurityGroupId"])) for one in rules(deployment, EGRESS)}
    ways = set(permutations(groups, 2))
    assert len(ways) == 16 * 15
    assert ways & (allowed | named) == set()


def test_all_protocols_pass_within_each_group_by_rules_that_name_it(
    deployment: Synthesised, groups: tuple[str, ...]
) -> None:
    """EFA wants the same: "everything out" does not do."""
    for kind, other in ((INGRESS, "SourceSecurityGroupId"), (EGRESS, "DestinationSecurityGroupId")):
        own = [one for one in rules(deployment, kind) if one["IpProtocol"] == "-1"]
        assert sorted(plain(one["GroupId"]) for one in own) == sorted(groups)
        assert all(one[other] == one["GroupId"] for one in own)
        assert not any({"FromPort", "ToPort"} & one.keys() for one in own)


def test_nothing_goes_out_to_anywhere_but_tls(deployment: Synthesised) -> None:
    found = [one for _, group in every(deployment, "AWS::EC2::SecurityGroup") for one in group["SecurityGroupEgress"]]
    assert {(one["IpProtocol"], one["FromPort"], one["ToPort"]) for one in found} == {("tcp", 443, 443)}
    assert len(found) == 17, "one of each group for nodes, and the children's"


def test_a_group_is_the_networks_own_and_the_one_of_a_version_before_stays(
    deployment: Synthesised, groups: tuple[str, ...]
) -> None:
    """CloudFormation replaces a group whose name or description changes, under the nodes that have it."""
    found = resources(deployment.template(REGION), "AWS::EC2::SecurityGroup")
    assert {f"<{name}.GroupId>" for name in found} == set(groups)
    assert len({plain(one["VpcId"]) for one in found.values()}) == 1
    assert {one["GroupDescription"] for one in found.values()} == {"Nodes: each other, and TCP 443 out"}
    assert re.fullmatch(r"<NetworkNodeSecurityGroup[0-9A-F]{8}\.GroupId>", groups[0]), (
        "the number of a later one follows the name"
    )


def test_endpoints_let_in_each_group_on_tcp_443_and_nobody_else(tmp_path: Path) -> None:
    network = {"interface_endpoints": ["logs"], "security_groups_per_region": 3}
    with_endpoints = synthesise_regions(tmp_path, network=network)
    groups = place_of(with_endpoints, "eu-central-1").security_groups
    found = [one for one in rules(with_endpoints, INGRESS) if one["IpProtocol"] == "tcp"]
    assert sorted(plain(one["SourceSecurityGroupId"]) for one in found) == sorted(groups)
    assert {(one["FromPort"], one["ToPort"]) for one in found} == {(443, 443)}
    assert {plain(one["GroupId"]).startswith("<NetworkEndpointSecurityGroup") for one in found} == {True}
    assert not any({"CidrIp", "CidrIpv6", "SourcePrefixListId"} & one.keys() for one in rules(with_endpoints, INGRESS))


def test_the_smallest_and_the_largest_pool_are_deployed_whole(tmp_path: Path) -> None:
    for count in (1, MOST_SECURITY_GROUPS):
        endpoints = [
            "ec2messages",
            "ecr.api",
            "ecr.dkr",
            "logs",
            "monitoring",
            "secretsmanager",
            "ssm",
            "ssmmessages",
            "sts",
        ]
        network = {"security_groups_per_region": count, "interface_endpoints": endpoints}
        made = synthesise_regions(tmp_path / str(count), network=network, placement_groups_per_zone=10, compliance=True)
        assert len(place_of(made, "eu-central-1").security_groups) == count
        template = made.stacks[region_stack("trainyard", "eu-central-1")]
        assert len(template["Resources"]) < 500, "CloudFormation takes no more in a template"
