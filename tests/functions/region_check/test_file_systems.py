"""File systems of the settings: one that is not there, or to which no route leads, ends a deploy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from aws.network_facts import PlacedFileSystem, Route, RouteTable
from contract.codec import encode
from contract.mounts import Kind
from contract.networks import NamedFileSystem
from region_check.file_systems import list_unseen, refuse_file_system
from tests.builders import PLACE
from tests.fakes import faults
from tests.fakes.aws import Aws
from tests.fakes.cloudformation import CloudFormation
from tests.fakes.faults import Mishap
from tests.fakes.functions import Functions
from tests.fakes.yard import deployed, home

VPC, OTHER, ADDRESS = "vpc-ours", "vpc-theirs", "10.9.1.7"
EFS = NamedFileSystem(region="eu-central-1", name="efs:home", kind=Kind.EFS, id="fs-01234567", vpc="")
FSX = replace(EFS, name="fsx:corpus", kind=Kind.FSX)
HERE = PlacedFileSystem(vpcs=(VPC,), addresses=("10.70.1.7",))
AWAY = PlacedFileSystem(vpcs=(OTHER,), addresses=(ADDRESS,))
LOCAL = Route(to="10.70.0.0/16", by="local", active=True)
NAT = Route(to="0.0.0.0/0", by="nat-1", active=True)
PEERING = Route(to="10.9.0.0/16", by="pcx-1", active=True)


def table(*routes: Route) -> RouteTable:
    return RouteTable(id="rtb-1", subnets=(), main=True, routes=(LOCAL, NAT, *routes))


def refusal(found: PlacedFileSystem | None, *tables: RouteTable) -> str:
    return "\n".join(refuse_file_system(EFS, found, VPC, tables))


def test_a_file_system_in_the_network_of_its_nodes_is_let_through() -> None:
    assert refusal(HERE, table()) == ""
    assert list_unseen(EFS, HERE, VPC) == []


@pytest.mark.parametrize(
    "route",
    [
        PEERING,
        replace(PEERING, by="tgw-1"),
        replace(PEERING, to=f"{ADDRESS}/32"),
        replace(PEERING, by="arn:aws:networkmanager::1:core-network/core-network-1"),
        replace(NAT, to="0.0.0.0/0", by="tgw-1"),
    ],
)
def test_one_in_another_network_to_which_a_route_leads_is_let_through_with_a_doubt(route: Route) -> None:
    with_route = replace(table(), routes=(LOCAL, route))
    assert refusal(AWAY, with_route) == ""
    (doubt,) = list_unseen(EFS, AWAY, VPC)
    assert "whether its name resolves in vpc-ours" in doubt


def test_one_table_with_the_route_is_enough() -> None:
    assert refusal(AWAY, table(), table(PEERING)) == ""


def test_routes_that_are_not_shown_are_not_judged() -> None:
    assert refusal(AWAY) == ""


WRONG = {
    "none": (),
    "one that is gone": (replace(PEERING, active=False),),
    "one to another network": (replace(PEERING, to="10.8.0.0/16"),),
    "a narrower one that is gone": (PEERING, replace(PEERING, to="10.9.1.0/24", active=False)),
    "a list of prefixes": (replace(PEERING, to="pl-1"),),
}


@pytest.mark.parametrize("what", WRONG)
def test_one_in_another_network_to_which_no_route_leads_is_refused(what: str) -> None:
    said = refusal(AWAY, table(*WRONG[what]))
    assert (
        "eu-central-1: efs:home: fs-01234567 lies in vpc-theirs, and no route of vpc-ours leads to its address" in said
    )
    assert ADDRESS in said
    assert "a peering or a transit gateway" in said


def test_one_that_there_is_not_is_refused() -> None:
    assert "there is no file system fs-01234567 in this account" in refusal(None, table())


def test_one_of_efs_without_mount_targets_is_refused() -> None:
    assert "fs-01234567 has no mount target; make one in each zone" in refusal(PlacedFileSystem(vpcs=(), addresses=()))


# The function


@dataclass
class Yard:
    aws: Aws
    functions: Functions
    cloudformation: CloudFormation

    def ask(self, *asked: NamedFileSystem, mishaps: tuple[Mishap, ...] = ()) -> str:
        properties = {"Regions": [PLACE.region], "FileSystems": [encode(one).decode() for one in asked]}
        request = self.cloudformation.request("Create", properties, stack="yard-workflow")
        assert self.functions.invoke("region_check", request, mishaps).error == ""
        return str(self.cloudformation.answers[-1]["Reason"])


def answers(vpc: str) -> dict[str, Any]:
    target = {
        "MountTargetId": "fsmt-1",
        "FileSystemId": EFS.id,
        "SubnetId": "subnet-9",
        "LifeCycleState": "available",
        "VpcId": vpc,
        "IpAddress": ADDRESS,
    }
    return {
        "DescribeMountTargets": {"MountTargets": [target]},
        "DescribeFileSystems": {"FileSystems": [{"VpcId": vpc, "NetworkInterfaceIds": ["eni-1"]}]},
    }


@pytest.fixture
def yard(cloudformation: CloudFormation) -> Iterator[Yard]:
    aws = deployed()
    routes = [{"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-1", "State": "active"}]
    home(aws).described = {
        "DescribeVpcs": {"Vpcs": [{"VpcId": VPC}]},
        "DescribeRouteTables": {"RouteTables": [{"RouteTableId": "rtb-1", "Associations": [], "Routes": routes}]},
        "DescribeNetworkInterfaces": {"NetworkInterfaces": [{"PrivateIpAddress": ADDRESS}]},
    }
    aws.file_systems = answers(VPC)
    found = Yard(aws, Functions(aws), cloudformation)
    with found.functions.installed():
        yield found


def test_file_systems_in_our_network_are_looked_up_and_let_through(yard: Yard) -> None:
    assert yard.ask(EFS, FSX) == ""
    assert yard.aws.changes == []


@pytest.mark.parametrize("which", [EFS, FSX])
def test_a_file_system_in_another_network_without_a_route_fails_the_deploy(yard: Yard, which: NamedFileSystem) -> None:
    yard.aws.file_systems = answers(OTHER)
    assert f"{which.id} lies in {OTHER}, and no route of {VPC} leads to its address {ADDRESS}" in yard.ask(which)


def test_one_in_the_network_that_the_settings_name_needs_no_route(yard: Yard) -> None:
    yard.aws.file_systems = answers(OTHER)
    assert yard.ask(replace(EFS, vpc=OTHER), replace(FSX, vpc=OTHER)) == ""


@pytest.mark.parametrize("which", [EFS, FSX])
def test_a_file_system_that_is_gone_fails_the_deploy(yard: Yard, which: NamedFileSystem) -> None:
    yard.aws.file_systems = {}
    assert f"there is no file system {which.id}" in yard.ask(which)


@pytest.mark.parametrize("call", ["efs:DescribeMountTargets", "ec2:DescribeVpcs"])
def test_one_that_cannot_be_looked_up_is_not_taken_for_a_good_one(yard: Yard, call: str) -> None:
    mishap = Mishap(call, times=math.inf, fault=faults.Kind.DENIED)
    assert "efs:home could not be checked" in yard.ask(EFS, mishaps=(mishap,))
