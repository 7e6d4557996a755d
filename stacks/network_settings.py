"""Settings of regions and their networks, and what keeps several of them from making sense together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network
from itertools import combinations
from typing import Literal

from pydantic import Field

from stacks.blocks import Block
from stacks.forms import KeyArn, Network, Region, Subnet, Vpc, Zone
from stacks.parts.network import ZONES, database_blocks, zones_of
from stacks.parts.zones import looked_up

MOST_GROUPS = 30
"""The most placement groups of a region: their names go into one SSM parameter, which holds 4 KB."""
LEAST_DATABASE_ZONES = 2
"""Zones that RDS wants of a subnet group."""
MOST_SECURITY_GROUPS = 40
"""The most security groups for nodes in a region: their ids go into the same parameter. EC2 allows 60 rules in the group of interface
endpoints, which has one for each, and 2,500 groups in a region."""
MOST_REGIONS = 40
"""The most regions. AWS has 30-odd; policies, variables and templates hold this many, which a test measures."""
SUBNET_CHARACTERS, KEY_CHARACTERS = 66, 180
"""What a subnet and a key of the settings take of the policies of the launcher's role: IAM takes 10,240 characters of all together, and the
CDK moves what is beyond 10,000 into policies of its own."""
LEAST_CHARACTERS, REGION_CHARACTERS = 900, 50
"""What these may take beside the most regions, and what each region takes of it."""
Endpoint = Literal[
    "ec2messages", "ecr.api", "ecr.dkr", "logs", "monitoring", "secretsmanager", "ssm", "ssmmessages", "sts"
]


class RegionSettings(Block):
    """A region. Jobs train in a region with a network; a region without one serves grids only, and costs nothing while idle."""

    region: Region
    """Its name."""
    cidr: Network | None = None
    """The region's own network: a /16 holds 16,379 nodes a zone, a /24 holds 59. Without one, and without `vpc`, jobs do not train
    there."""
    zones: tuple[Zone, ...] = Field(default=(), max_length=6)
    """Availability zones in which nodes run, by name; without it, those that every account has there, looked up at deploy."""
    vpc: Vpc = ""
    """The id of a VPC that is there already, for nodes to run in; empty where `cidr` makes one (docs/guides/landing-zones.md)."""
    subnets: dict[Zone, Subnet] = Field(default={}, max_length=6)
    """Availability zone to the id of the private subnet of `vpc` in which its nodes run."""
    volume_key: KeyArn = ""
    """The ARN of the KMS key under which disks of nodes are encrypted: the account's default for EBS, where that is a key of its own. Empty
    for `alias/aws/ebs`, or with `compliance` for the deployment's key (docs/guides/landing-zones.md)."""

    @property
    def trains(self) -> bool:
        """Whether jobs train there."""
        return bool(self.cidr or self.vpc)

    @property
    def zone_count(self) -> int:
        """The number of zones in which nodes run."""
        if self.vpc:
            return len(self.subnets)
        return len(self.zones) or (looked_up(self.region, self.cidr) if self.cidr else 0)


class NetworkSettings(Block):
    """The network of every region."""

    nat_gateways: int = Field(default=1, ge=1, le=3)
    """NAT gateways of a region. One is enough; one in each zone survives the loss of a zone and costs three times as much. A region with
    a `vpc` uses those that it has."""
    security_groups_per_region: int = Field(default=16, ge=1, le=MOST_SECURITY_GROUPS)
    """Security groups for nodes of a region. So many jobs each have their own, and no path to each other. Further jobs share one with a
    job that runs, and Launch says so. At most 40: an SSM parameter holds 4 KB."""
    interface_endpoints: tuple[Endpoint, ...] = ()
    """Short names of AWS services that nodes reach without the NAT gateway; each costs an address a zone. A region with a `vpc` uses those
    that it has."""


def list_twice(where: str, listed: Sequence[str]) -> Iterator[str]:
    """Yields a line for each entry that is listed twice."""
    return (f"{where} names {name} twice" for name in sorted({one for one in listed if listed.count(one) > 1}))


def problems(regions: Sequence[RegionSettings], network: NetworkSettings, groups_per_zone: int) -> Iterator[str]:
    """Says what does not fit."""
    for one in regions:
        yield from _zone_problems(one, network)
        yield from _vpc_problems(one)
        yield from _key_problems(one)
        if one.zone_count * groups_per_zone > MOST_GROUPS:
            yield (
                f"placement_groups_per_zone is {groups_per_zone}, with {one.zone_count} zones in {one.region}; "
                f"allowed: {MOST_GROUPS // one.zone_count} at most, or fewer zones, by name"
            )
    for (one, cidr), (other, another) in combinations([(r.region, r.cidr) for r in regions if r.cidr], 2):
        if IPv4Network(cidr).overlaps(IPv4Network(another)):
            yield f"regions: {cidr} of {one} overlaps {another} of {other}"
    yield from list_twice("regions: vpc", [one.vpc for one in regions if one.vpc])
    yield from list_twice("regions: subnets", [subnet for one in regions for subnet in one.subnets.values()])
    yield from _role_problems(regions)
    if network.interface_endpoints and regions and not any(one.cidr for one in regions):
        yield (
            "network.interface_endpoints is for networks that Trainyard makes, and no region has a cidr; allowed: none, because "
            "a vpc has its own"
        )


def catalogue_problems(home: RegionSettings | None) -> Iterator[str]:
    """Says why the catalogue's database has no place in the home region's network."""
    if home is None or not home.trains:
        return  # said already
    if home.zone_count < LEAST_DATABASE_ZONES:
        yield (
            f"catalogue is true, and nodes of {home.region} have {home.zone_count} zone; allowed: {LEAST_DATABASE_ZONES} zones or more, "
            "because RDS puts no database into fewer"
        )
    if home.cidr and not database_blocks(home.cidr):
        yield (
            f"catalogue is true, and the cidr {home.cidr} of {home.region} has no room for its {ZONES} subnets; allowed: a /21 or larger, "
            "or a vpc"
        )


def _zone_problems(place: RegionSettings, network: NetworkSettings) -> Iterator[str]:
    where = f"regions: zones of {place.region}"
    if place.cidr and not place.zones and place.region == "us-west-1":
        yield (
            "regions has a cidr for us-west-1, where accounts see two zones; allowed: only grids there (no cidr), "
            "zones with the names of the two, or a vpc with its subnets"
        )
    if place.zones and not place.cidr and not place.vpc:
        yield f"{where}: nodes need a network; allowed: zones beside a cidr, or a vpc with its subnets"
    yield from _elsewhere(where, place, place.zones)
    yield from list_twice(where, place.zones)
    if place.zones and len(place.zones) < network.nat_gateways:
        yield f"{where} are {len(place.zones)}, and network.nat_gateways is {network.nat_gateways}; allowed: as many gateways at most"
    if place.zones and place.cidr and len(place.zones) > (most := zones_of(place.cidr)):
        yield f"{where} are {len(place.zones)}; allowed: {most} at most in {place.cidr}, or a larger network"


def _vpc_problems(place: RegionSettings) -> Iterator[str]:
    where = f"regions: {place.region}"
    if place.vpc and place.cidr:
        yield f"{where} has a cidr and a vpc; allowed: a cidr for a new network, or the vpc that is there already"
    if place.vpc and place.zones:
        yield f"{where} has zones and a vpc; allowed: no zones, because subnets names the zones of a vpc"
    if place.vpc and not place.subnets:
        yield f"{where} has a vpc and no subnets; allowed: a private subnet of {place.vpc} for each zone in which nodes may run"
    if place.subnets and not place.vpc:
        yield f"{where} has subnets and no vpc; allowed: the vpc to which they belong"
    yield from _elsewhere(f"regions: subnets of {place.region}", place, tuple(place.subnets))


def _role_problems(regions: Sequence[RegionSettings]) -> Iterator[str]:
    """The launcher's role names each subnet and each key."""
    training = sum(one.trains for one in regions)
    room = LEAST_CHARACTERS + REGION_CHARACTERS * max(0, MOST_REGIONS - training)
    subnets, keys = sum(len(one.subnets) for one in regions), sum(bool(one.volume_key) for one in regions)
    if (taken := SUBNET_CHARACTERS * subnets + KEY_CHARACTERS * keys) > room:
        yield (
            f"regions: {subnets} subnets and {keys} keys take {taken} characters of the launcher's role; allowed: {room} with {training} "
            f"regions that train, {SUBNET_CHARACTERS} for a subnet and {KEY_CHARACTERS} for a volume_key"
        )


def _key_problems(place: RegionSettings) -> Iterator[str]:
    if not place.volume_key:
        return
    if not place.trains:
        yield f"regions: {place.region} has a volume_key and no nodes; allowed: a volume_key beside a cidr or a vpc"
    if (of := place.volume_key.split(":")[3]) != place.region:
        yield f"regions: the volume_key of {place.region} is of {of}; allowed: a key of {place.region}"


def _elsewhere(where: str, place: RegionSettings, zones: Sequence[str]) -> Iterator[str]:
    return (
        f"{where} has {zone}, which is in another region; allowed: {place.region}a and the like"
        for zone in zones
        if zone[:-1] != place.region
    )
