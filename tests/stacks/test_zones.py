"""Zones of a region's network: those that the settings name, as many as there are, and none of the first three ever moves."""

from __future__ import annotations

from ipaddress import IPv4Network
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from contract.codec import decode, encode
from contract.places import Place, Zone
from stacks.parts.network import zones_of
from stacks.settings import BLOCK, BadSettings, Settings
from tests.stacks.synth import CONTEXT, Synthesised, plain, resources, synthesise

HOME, AWAY = "eu-central-1", "us-east-1"
SIX = [f"{AWAY}{letter}" for letter in "abcdef"]
REGIONS: list[dict[str, Any]] = [
    {"region": HOME, "cidr": "10.70.0.0/16"},
    {"region": AWAY, "cidr": "10.71.0.0/16", "zones": SIX},
    {"region": "us-west-1", "cidr": "10.72.0.0/16", "zones": ["us-west-1a", "us-west-1c"]},
]


@pytest.fixture(scope="module")
def zoned(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    return synthesise(tmp_path_factory.mktemp("zoned"), regions=REGIONS, network={"nat_gateways": 2})


def subnets(deployment: Synthesised, region: str) -> dict[str, tuple[str, str]]:
    """Logical id to zone and block."""
    found = resources(deployment.template(f"region-{region}"), "AWS::EC2::Subnet")
    return {name: (plain(one["AvailabilityZone"]), one["CidrBlock"]) for name, one in found.items()}


def place(deployment: Synthesised, region: str) -> Place:
    (parameter,) = resources(deployment.template(f"region-{region}"), "AWS::SSM::Parameter").values()
    return decode(Place, plain(parameter["Value"]))


def test_every_zone_of_the_settings_has_a_subnet_and_placement_groups_and_no_other_has(zoned: Synthesised) -> None:
    assert [zone.name for zone in place(zoned, AWAY).zones] == SIX
    assert [zone.name for zone in place(zoned, "us-west-1").zones] == ["us-west-1a", "us-west-1c"]
    assert {len(zone.placement_groups) for zone in place(zoned, AWAY).zones} == {2}
    assert "Fn::GetAZs" not in zoned.text(f"region-{AWAY}")
    assert [zone.name for zone in place(zoned, HOME).zones] == ["eu-central-1a", "eu-central-1b", "eu-central-1c"]


def test_zones_that_are_named_change_no_subnet_of_before(deployment: Synthesised, zoned: Synthesised) -> None:
    """CloudFormation makes the new subnet before it takes the old one away, and their blocks would overlap."""
    before = {name: block for name, (_, block) in subnets(deployment, HOME).items()}
    for region, cidr in ((AWAY, "10.71"), ("us-west-1", "10.72")):
        after = {name: block.replace(cidr, "10.70") for name, (_, block) in subnets(zoned, region).items()}
        common = before.keys() & after.keys()
        assert len(common) == (6 if region == AWAY else 4)
        assert {name: before[name] for name in common} == {name: after[name] for name in common}


@pytest.mark.parametrize("prefix", range(16, 25))
def test_no_two_subnets_overlap_and_all_lie_in_the_network(prefix: int, tmp_path: Path) -> None:
    cidr = f"10.71.0.0/{prefix}"
    zones = SIX[: zones_of(cidr)]
    assert len(zones) == {24: 4, 23: 5}.get(prefix, 6)
    here = {"region": HOME, "cidr": "10.70.0.0/16"}
    made = synthesise(tmp_path, regions=[here, {"region": AWAY, "cidr": cidr, "zones": zones}])
    blocks = [IPv4Network(block) for _, block in subnets(made, AWAY).values()]
    assert [pair for pair in combinations(blocks, 2) if pair[0].overlaps(pair[1])] == []
    assert [one for one in blocks if not one.subnet_of(IPv4Network(cidr))] == []


def test_every_subnet_of_nodes_goes_out_by_a_gateway_and_reaches_s3_without_it(zoned: Synthesised) -> None:
    template = zoned.template(f"region-{AWAY}")
    tables = {
        plain(one["SubnetId"]): plain(one["RouteTableId"])
        for one in resources(template, "AWS::EC2::SubnetRouteTableAssociation").values()
    }
    out = {
        plain(one["RouteTableId"]) for one in resources(template, "AWS::EC2::Route").values() if "NatGatewayId" in one
    }
    (endpoint,) = resources(template, "AWS::EC2::VPCEndpoint").values()
    to_s3 = {plain(one) for one in endpoint["RouteTableIds"]}
    nodes = {tables[zone.subnet] for zone in place(zoned, AWAY).zones}
    assert len(nodes) == 6
    assert nodes <= out
    assert nodes <= to_s3


def test_nobody_gets_a_public_address_in_a_further_zone(zoned: Synthesised) -> None:
    found = resources(zoned.template(f"region-{AWAY}"), "AWS::EC2::Subnet").values()
    assert {one["MapPublicIpOnLaunch"] for one in found} == {False}


def test_six_zones_of_the_default_groups_fit_into_the_parameter() -> None:
    stack = "a" * 20 + "-region-ap-southeast-1"
    zone = Zone(
        name="ap-southeast-1a",
        subnet="subnet-" + "0" * 17,
        placement_groups=tuple(f"{stack}-Zone3Group{number}-{'A' * 13}" for number in range(1, 6)),
    )
    assert len(encode(Place(region="ap-southeast-1", bucket="b" * 63, zones=(zone,) * 6))) < 4096


@pytest.mark.parametrize(
    ("place_", "problem"),
    [
        ({"cidr": "10.71.0.0/16", "zones": ["us-east-1"]}, "allowed: the name of an availability zone"),
        ({"cidr": "10.71.0.0/16", "zones": ["use1-az1"]}, "allowed: the name of an availability zone"),
        ({"cidr": "10.71.0.0/16", "zones": ["us-east-1-bos-1a"]}, "allowed: the name of an availability zone"),
        ({"cidr": "10.71.0.0/16", "zones": ["us-west-2a"]}, "has us-west-2a, which is in another region"),
        ({"cidr": "10.71.0.0/16", "zones": ["us-east-1a", "us-east-1a"]}, "names us-east-1a twice"),
        ({"zones": ["us-east-1a"]}, "allowed: zones beside a cidr"),
        ({"cidr": "10.71.0.0/24", "zones": SIX}, "are 6; allowed: 4 at most in 10.71.0.0/24, or a larger network"),
        ({"cidr": "10.71.0.0/16", "zones": ["us-east-1a"]}, "are 1, and network.nat_gateways is 2"),
    ],
)
def test_zones_that_make_no_network_are_refused(place_: dict[str, Any], problem: str) -> None:
    regions = [{"region": HOME, "cidr": "10.70.0.0/16"}, {"region": AWAY, **place_}]
    with pytest.raises(BadSettings, match=problem):
        Settings.parse(CONTEXT[BLOCK] | {"regions": regions, "network": {"nat_gateways": 2}})


def test_as_many_zones_as_groups_fit_into_the_parameter() -> None:
    regions = [{"region": HOME, "cidr": "10.70.0.0/16"}, {"region": AWAY, "cidr": "10.71.0.0/16", "zones": SIX}]
    with pytest.raises(
        BadSettings, match="placement_groups_per_zone is 6, with 6 zones in us-east-1; allowed: 5 at most"
    ):
        Settings.parse(CONTEXT[BLOCK] | {"regions": regions, "placement_groups_per_zone": 6})
