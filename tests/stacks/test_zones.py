"""Zones of a region's network: those that the settings name, as many as there are, and none of the first three ever moves."""

from __future__ import annotations

import json
from ipaddress import IPv4Network
from itertools import combinations
from typing import Any

import pytest

from contract.environments import ZoneLookupEnvironment
from stacks.parts.network import zones_of
from stacks.parts.zones import looked_up
from stacks.settings import BLOCK, BadSettings, Settings
from tests.stacks.regions import synthesise_regions
from tests.stacks.synth import function, logical_id, only, place_of, plain, resources, variables
from tools.synthesis import CONTEXT, Synthesised

HOME, AWAY = "eu-central-1", "us-east-1"
SIX = [f"{AWAY}{letter}" for letter in "abcdef"]
REGIONS: list[dict[str, Any]] = [
    {"region": HOME, "cidr": "10.70.0.0/16"},
    {"region": AWAY, "cidr": "10.71.0.0/16", "zones": SIX},
    {"region": "us-west-1", "cidr": "10.72.0.0/16", "zones": ["us-west-1a", "us-west-1c"]},
    {"region": "ap-south-1"},
]


@pytest.fixture(scope="module")
def zoned(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    return synthesise_regions(tmp_path_factory.mktemp("zoned"), regions=REGIONS, network={"nat_gateways": 2})


def subnets(deployment: Synthesised, region: str) -> dict[str, tuple[str, str]]:
    """Logical id to zone and block."""
    found = resources(deployment.template(f"region-{region}"), "AWS::EC2::Subnet")
    return {name: (plain(one["AvailabilityZone"]), one["CidrBlock"]) for name, one in found.items()}


def test_every_zone_of_the_settings_has_a_subnet_and_placement_groups_and_no_other_has(zoned: Synthesised) -> None:
    assert [zone.name for zone in place_of(zoned, AWAY).zones] == SIX
    assert [zone.name for zone in place_of(zoned, "us-west-1").zones] == ["us-west-1a", "us-west-1c"]
    assert {len(zone.placement_groups) for zone in place_of(zoned, AWAY).zones} == {2}
    assert [zone.name for zone in place_of(zoned, HOME).zones] == ["eu-central-1a", "eu-central-1b", "eu-central-1c"]


@pytest.fixture(scope="module")
def looked_for(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """Regions without `zones`, large and small."""
    networks = {HOME: 16, AWAY: 16, "us-west-2": 16, "ap-northeast-2": 24, "us-east-2": 24, "eu-west-1": 23}
    regions = [
        {"region": region, "cidr": f"10.{number}.0.0/{prefix}"}
        for number, (region, prefix) in enumerate(networks.items(), start=70)
    ]
    return synthesise_regions(tmp_path_factory.mktemp("looked-for"), regions=regions)


COUNTS = {HOME: 3, AWAY: 6, "us-west-2": 4, "ap-northeast-2": 4, "us-east-2": 3, "eu-west-1": 3}


@pytest.mark.parametrize("region", COUNTS)
def test_a_region_without_named_zones_has_all_that_every_account_has_there(
    looked_for: Synthesised, region: str
) -> None:
    template = looked_for.template(f"region-{region}")
    assert only(template, "Custom::Zones")["Count"] == COUNTS[region]
    described = place_of(looked_for, region).zones
    assert [zone.name[-1] for zone in described] == list("abcdef"[: COUNTS[region]])
    groups = [group for zone in described for group in zone.placement_groups]
    assert len(set(groups)) == 2 * COUNTS[region]


@pytest.mark.parametrize(("prefix", "count"), [(16, 6), (22, 6), (23, 5), (24, 4)])
def test_a_small_network_asks_for_as_many_zones_as_it_has_room_for(prefix: int, count: int) -> None:
    assert looked_up(AWAY, f"10.71.0.0/{prefix}") == count
    assert looked_up(HOME, f"10.71.0.0/{prefix}") == 3


def test_a_look_up_changes_no_subnet_of_the_first_three_zones(looked_for: Synthesised, zoned: Synthesised) -> None:
    """Nor would naming the zones that a look-up answered."""
    named, answered = subnets(zoned, AWAY), subnets(looked_for, AWAY)
    assert {name: block for name, (_, block) in named.items()} == {name: block for name, (_, block) in answered.items()}
    assert [zone.subnet for zone in place_of(zoned, AWAY).zones] == [
        zone.subnet for zone in place_of(looked_for, AWAY).zones
    ]


def test_every_zone_of_a_look_up_is_asked_of_the_functions_answer_once(looked_for: Synthesised) -> None:
    template = looked_for.template(f"region-{AWAY}")
    name = logical_id(template, "Custom::Zones")
    zones = [one["AvailabilityZone"]["Fn::GetAtt"] for one in resources(template, "AWS::EC2::Subnet").values()]
    assert {(source, attribute) for source, attribute in zones} == {(name, f"Zone{n}") for n in range(1, 7)}


def test_no_template_leaves_the_zones_to_cloudformation(looked_for: Synthesised, deployment: Synthesised) -> None:
    """Its own list has only zones with a default subnet."""
    for synthesised in (looked_for, deployment):
        assert [name for name, one in synthesised.stacks.items() if "Fn::GetAZs" in json.dumps(one)] == []


def test_a_look_up_runs_in_its_own_region_and_takes_nothing_from_home(looked_for: Synthesised) -> None:
    for region in COUNTS:
        template = looked_for.template(f"region-{region}")
        assert ZoneLookupEnvironment.read(variables(function(template, "zone_lookup"))).region == region
        assert "Fn::ImportValue" not in json.dumps(template)


def test_a_look_up_that_died_keeps_a_deploy_waiting_for_five_minutes(looked_for: Synthesised) -> None:
    assert only(looked_for.template(f"region-{AWAY}"), "Custom::Zones")["ServiceTimeout"] == "300"


def test_a_function_may_look_before_it_is_asked(looked_for: Synthesised) -> None:
    template = looked_for.template(f"region-{AWAY}")
    (asked,) = template["Resources"][logical_id(template, "Custom::Zones")]["DependsOn"]
    assert resources(template, "AWS::IAM::Policy").keys() <= set(template["Resources"][asked]["DependsOn"])


def test_named_zones_and_regions_of_the_grid_alone_need_no_look_up(zoned: Synthesised) -> None:
    for region in (AWAY, "ap-south-1"):
        template = zoned.template(f"region-{region}")
        kinds = {one["Type"] for one in template["Resources"].values()}
        assert not kinds & {"Custom::Zones", "AWS::Lambda::Function", "AWS::IAM::Role"}


def test_zones_that_are_named_change_no_subnet_of_before(deployment: Synthesised, zoned: Synthesised) -> None:
    """CloudFormation makes the new subnet before it takes the old one away, and their blocks would overlap."""
    before = {name: block for name, (_, block) in subnets(deployment, HOME).items()}
    for region, cidr in ((AWAY, "10.71"), ("us-west-1", "10.72")):
        after = {name: block.replace(cidr, "10.70") for name, (_, block) in subnets(zoned, region).items()}
        common = before.keys() & after.keys()
        assert len(common) == (6 if region == AWAY else 4)
        assert {name: before[name] for name in common} == {name: after[name] for name in common}


SIZES = dict(
    enumerate(
        (HOME, AWAY, "us-west-2", "us-east-2", "eu-west-1", "eu-west-2", "eu-north-1", "ca-central-1", "sa-east-1"), 16
    )
)
"""A region for each prefix of a network that the settings take."""


@pytest.fixture(scope="module")
def sized(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """Networks of every size, with as many zones as fit."""
    networks = {region: f"10.{prefix}.0.0/{prefix}" for prefix, region in SIZES.items()}
    regions = [
        {"region": region, "cidr": cidr, "zones": [f"{region}{letter}" for letter in "abcdef"[: zones_of(cidr)]]}
        for region, cidr in networks.items()
    ]
    return synthesise_regions(tmp_path_factory.mktemp("sized"), regions=regions)


@pytest.mark.parametrize("prefix", SIZES)
def test_no_two_subnets_overlap_and_all_lie_in_the_network(sized: Synthesised, prefix: int) -> None:
    cidr = f"10.{prefix}.0.0/{prefix}"
    found = subnets(sized, SIZES[prefix]).values()
    assert len({zone for zone, _ in found}) == zones_of(cidr) == {24: 4, 23: 5}.get(prefix, 6)
    blocks = [IPv4Network(block) for _, block in found]
    assert [pair for pair in combinations(blocks, 2) if pair[0].overlaps(pair[1])] == []
    assert [one for one in blocks if not one.subnet_of(IPv4Network(cidr))] == []


def test_every_subnet_of_nodes_goes_out_by_a_gateway_and_reaches_s3_and_the_table_without_it(
    zoned: Synthesised,
) -> None:
    template = zoned.template(f"region-{AWAY}")
    tables = {
        plain(one["SubnetId"]): plain(one["RouteTableId"])
        for one in resources(template, "AWS::EC2::SubnetRouteTableAssociation").values()
    }
    out = {
        plain(one["RouteTableId"]) for one in resources(template, "AWS::EC2::Route").values() if "NatGatewayId" in one
    }
    endpoints = {
        plain(one["ServiceName"]).rpartition(".")[2]: {plain(table) for table in one["RouteTableIds"]}
        for one in resources(template, "AWS::EC2::VPCEndpoint").values()
    }
    nodes = {tables[zone.subnet] for zone in place_of(zoned, AWAY).zones}
    assert len(nodes) == 6
    assert nodes <= out
    assert endpoints.keys() == {"s3", "dynamodb"}
    assert [name for name, to_it in endpoints.items() if not nodes <= to_it] == []


def test_nobody_gets_a_public_address_in_a_further_zone(zoned: Synthesised) -> None:
    found = resources(zoned.template(f"region-{AWAY}"), "AWS::EC2::Subnet").values()
    assert {one["MapPublicIpOnLaunch"] for one in found} == {False}


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ({"cidr": "10.71.0.0/16", "zones": ["us-east-1"]}, "allowed: the name of an availability zone"),
        ({"cidr": "10.71.0.0/16", "zones": ["use1-az1"]}, "allowed: the name of an availability zone"),
        ({"cidr": "10.71.0.0/16", "zones": ["us-east-1-bos-1a"]}, "allowed: the name of an availability zone"),
        ({"cidr": "10.71.0.0/16", "zones": ["us-west-2a"]}, "has us-west-2a, which is in another region"),
        ({"cidr": "10.71.0.0/16", "zones": ["us-east-1a", "us-east-1a"]}, "names us-east-1a twice"),
        ({"zones": ["us-east-1a"]}, "allowed: zones beside a cidr, or a vpc with its subnets"),
        ({"cidr": "10.71.0.0/24", "zones": SIX}, "are 6; allowed: 4 at most in 10.71.0.0/24, or a larger network"),
        ({"cidr": "10.71.0.0/16", "zones": ["us-east-1a"]}, "are 1, and network.nat_gateways is 2"),
    ],
)
def test_zones_that_make_no_network_are_refused(place: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadSettings, match=problem):
        parsed(place, network={"nat_gateways": 2})


def parsed(away: dict[str, Any], **changes: Any) -> Settings:
    """The settings of a deployment whose second region is so."""
    regions = [{"region": HOME, "cidr": "10.70.0.0/16"}, {"region": AWAY, **away}]
    return Settings.parse(CONTEXT[BLOCK] | {"regions": regions, **changes})


def test_as_many_zones_as_groups_fit_into_the_parameter() -> None:
    problem = "placement_groups_per_zone is 6, with 6 zones in us-east-1; allowed: 5 at most"
    with pytest.raises(BadSettings, match=problem):
        parsed({"cidr": "10.71.0.0/16", "zones": SIX}, placement_groups_per_zone=6)


@pytest.mark.parametrize(("cidr", "most"), [("10.71.0.0/16", 5), ("10.71.0.0/23", 6), ("10.71.0.0/24", 7)])
def test_zones_that_are_looked_up_count_as_much(cidr: str, most: int) -> None:
    parsed({"cidr": cidr}, placement_groups_per_zone=most)
    with pytest.raises(BadSettings, match=f"zones in us-east-1; allowed: {most} at most, or fewer zones, by name"):
        parsed({"cidr": cidr}, placement_groups_per_zone=most + 1)
