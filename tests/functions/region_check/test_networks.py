"""A network that the account has already: what keeps nodes from running in it ends the deploy, and what cannot be seen does not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from aws.network_facts import GATEWAY, INTERFACE, Endpoint, NetworkFacts, Route, RouteTable, Subnet
from contract.codec import encode
from contract.networks import NamedNetwork
from region_check.networks import FOR_BENCHES, NEEDED, list_doubts, refuse_network
from tests.builders import PLACE
from tests.fakes.aws import ACCOUNT, Aws
from tests.fakes.cloudformation import CloudFormation
from tests.fakes.faults import Kind, Mishap
from tests.fakes.functions import Functions
from tests.fakes.yard import deployed, home

VPC, OTHER = "vpc-0a", "vpc-0b"
WANTED = NamedNetwork(
    region="eu-central-1",
    vpc=VPC,
    subnets={"eu-central-1a": "subnet-0a", "eu-central-1b": "subnet-0b"},
    most_nodes=16,
    home=True,
)
AWAY = replace(WANTED, home=False)
LOCAL = Route(to="10.0.0.0/16", by="local", active=True)
NAT = Route(to="0.0.0.0/0", by="nat-1", active=True)
HUB = Route(to="10.0.0.0/8", by="tgw-1", active=True)
TABLE = RouteTable(id="rtb-1", subnets=("subnet-0a", "subnet-0b"), main=False, routes=(LOCAL, NAT))
S3 = Endpoint(id="vpce-s3", service="s3", kind=GATEWAY, available=True, route_tables=("rtb-1",), private_dns=False)
SUBNETS = tuple(
    Subnet(id=one, vpc=VPC, zone=zone, free=200, ours=0, gives_public=False) for zone, one in WANTED.subnets.items()
)
GOOD = NetworkFacts(vpc=VPC, owner=ACCOUNT, dns_support=True, subnets=SUBNETS, route_tables=(TABLE,), endpoints=(S3,))
CLOSED = replace(TABLE, routes=(LOCAL,))


def endpoint(service: str, **changes: Any) -> Endpoint:
    found = Endpoint(
        id=f"vpce-{service}", service=service, kind=INTERFACE, available=True, route_tables=(), private_dns=True
    )
    return replace(found, **changes)


EVERY = tuple(map(endpoint, NEEDED))
"""Endpoints with which nodes at home need no way to the internet."""


def with_subnet(**changes: Any) -> NetworkFacts:
    """The good network with its second subnet changed."""
    return replace(GOOD, subnets=(SUBNETS[0], replace(SUBNETS[1], **changes)))


def refusal(network: NetworkFacts | None, wanted: NamedNetwork = WANTED) -> str:
    return "\n".join(refuse_network(wanted, network, ACCOUNT))


# What is let through


@pytest.mark.parametrize("wanted", [WANTED, AWAY])
@pytest.mark.parametrize(
    "way",
    [
        NAT,
        replace(NAT, by="tgw-1"),
        replace(NAT, by="eni-1"),
        replace(NAT, by="vpce-firewall"),
        replace(NAT, by="arn:aws:networkmanager::1:core-network/core-network-1"),
        HUB,
        replace(HUB, by="pcx-1"),
    ],
)
def test_a_network_whose_private_subnets_lead_somewhere_is_let_through(wanted: NamedNetwork, way: Route) -> None:
    assert refusal(replace(GOOD, route_tables=(replace(TABLE, routes=(LOCAL, way)),)), wanted) == ""


def test_a_subnet_that_names_no_table_has_the_main_one() -> None:
    main = replace(TABLE, subnets=(), main=True)
    other = replace(CLOSED, id="rtb-2", subnets=("subnet-0z",))
    assert refusal(replace(GOOD, route_tables=(other, main))) == ""


def test_nodes_at_home_need_no_way_to_the_internet_where_every_endpoint_is_there() -> None:
    assert refusal(replace(GOOD, route_tables=(CLOSED,), endpoints=(S3, *EVERY))) == ""


def test_s3_may_have_an_interface_endpoint_and_dynamodb_a_gateway() -> None:
    dynamodb = endpoint("dynamodb", kind=GATEWAY, private_dns=False, route_tables=("rtb-1",))
    others = [one for one in EVERY if one.service != "dynamodb"]
    assert refusal(replace(GOOD, route_tables=(CLOSED,), endpoints=(endpoint("s3"), dynamodb, *others))) == ""


def test_addresses_that_our_own_nodes_use_count_as_room_so_that_running_jobs_keep_no_deploy_back() -> None:
    assert refusal(with_subnet(free=0, ours=16)) == ""


def test_what_a_shared_network_does_not_show_is_a_doubt_and_no_refusal() -> None:
    shared = replace(GOOD, owner="444455556666", endpoints=())
    assert refusal(shared) == ""
    (doubt,) = list_doubts(WANTED, shared, ACCOUNT)
    assert "belongs to account 444455556666, so its endpoints were not checked" in doubt
    hidden = replace(shared, route_tables=())
    assert refusal(hidden) == ""
    assert len(list_doubts(WANTED, hidden, ACCOUNT)) == 3
    assert list_doubts(WANTED, GOOD, ACCOUNT) == list_doubts(WANTED, None, ACCOUNT) == []


# What is refused, with the id and what to do

REFUSED: dict[str, tuple[NetworkFacts | None, str]] = {
    "a network that there is not": (None, f"there is no VPC {VPC} in this account"),
    "no names": (replace(GOOD, dns_support=False), f"{VPC} resolves no names; switch on its DNS resolution"),
    "a subnet that there is not": (replace(GOOD, subnets=SUBNETS[:1]), "there is no subnet subnet-0b in this account"),
    "a subnet of another network": (with_subnet(vpc=OTHER), f"subnet-0b belongs to {OTHER}; name a subnet of {VPC}"),
    "another zone": (
        with_subnet(zone="eu-central-1c"),
        "subnet-0b lies in eu-central-1c, and the settings name it for eu-central-1b",
    ),
    "public addresses": (with_subnet(gives_public=True), "subnet-0b gives public addresses to what starts in it"),
    "too few addresses": (with_subnet(free=10, ours=5), "subnet-0b has 15 addresses for nodes, and a job may have 16"),
    "a route that leads nowhere": (
        replace(GOOD, route_tables=(replace(TABLE, routes=(LOCAL, replace(NAT, active=False))),)),
        "the default route of subnet-0a leads nowhere: nat-1 is gone; mend rtb-1",
    ),
    "a public subnet": (
        replace(GOOD, route_tables=(replace(TABLE, routes=(LOCAL, replace(NAT, by="igw-1"))),)),
        "the default route of subnet-0a leads to igw-1, and nodes have no public address",
    ),
    "no endpoint of S3": (replace(GOOD, endpoints=()), "subnet-0a has no S3 endpoint of vpc-0a"),
    "an endpoint of S3 for another table": (
        replace(GOOD, endpoints=(replace(S3, route_tables=("rtb-2",)),)),
        "add the gateway endpoint of S3 to rtb-1, which costs nothing",
    ),
    "an endpoint of S3 that is not there yet": (
        replace(GOOD, endpoints=(replace(S3, available=False),)),
        "subnet-0a has no S3 endpoint of vpc-0a",
    ),
    "an interface endpoint of S3 that no name leads to": (
        replace(GOOD, endpoints=(endpoint("s3", private_dns=False),)),
        "subnet-0a has no S3 endpoint of vpc-0a",
    ),
    "no way out and no endpoints": (
        replace(GOOD, route_tables=(CLOSED,)),
        "subnet-0a has no route out of vpc-0a, and no endpoint for dynamodb, ecr.api, ecr.dkr, logs",
    ),
    "no way out and one endpoint missing": (
        replace(GOOD, route_tables=(CLOSED,), endpoints=(S3, *(one for one in EVERY if one.service != "logs"))),
        "and no endpoint for logs; add a default route (0.0.0.0/0) to rtb-1",
    ),
    "a way to another network that is gone": (
        replace(GOOD, route_tables=(replace(TABLE, routes=(LOCAL, replace(HUB, active=False))),)),
        "subnet-0a has no route out of vpc-0a",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_keeps_nodes_from_running_is_refused_with_its_id(what: str) -> None:
    network, words = REFUSED[what]
    assert refusal(network).startswith("eu-central-1: ")
    assert words in refusal(network)


def test_where_jobs_may_be_workbenches_session_manager_needs_a_way_too() -> None:
    benches = replace(WANTED, workbench=True)
    closed = replace(GOOD, route_tables=(CLOSED,), endpoints=(S3, *EVERY))
    assert "and no endpoint for ssm, ssmmessages; add a default route" in refusal(closed, benches)
    assert refusal(replace(closed, endpoints=(S3, *EVERY, *map(endpoint, FOR_BENCHES))), benches) == ""
    assert refusal(GOOD, benches) == ""


def test_away_from_home_endpoints_alone_are_not_enough() -> None:
    """Table, home bucket and log lie in another region, which endpoints do not reach."""
    closed = replace(GOOD, route_tables=(CLOSED,), endpoints=(S3, *EVERY))
    assert "its nodes write to table, bucket and log of the home region" in refusal(closed, AWAY)
    assert "no endpoint for" not in refusal(closed, AWAY)


def test_every_subnet_has_lines_of_its_own() -> None:
    assert refusal(replace(GOOD, endpoints=())).count("has no S3 endpoint") == len(WANTED.subnets)


# The function


@dataclass
class Yard:
    """An account with a network of its own, and a CloudFormation that waits for answers."""

    aws: Aws
    functions: Functions
    cloudformation: CloudFormation

    def ask(self, kind: str, *mishaps: Mishap, status: str = "UPDATE_IN_PROGRESS") -> str:
        properties = {"Regions": [PLACE.region], "Networks": [encode(WANTED).decode()]}
        request = self.cloudformation.request(kind, properties, stack="yard-workflow")
        self.aws.directory.stacks[request["StackId"]] = status
        assert self.functions.invoke("region_check", request, mishaps).error == ""
        return str(self.cloudformation.answers[-1]["Reason"])


def answers() -> dict[str, dict[str, Any]]:
    """What EC2 says of the good network."""
    subnets = [
        {
            "SubnetId": one.id,
            "VpcId": one.vpc,
            "AvailabilityZone": one.zone,
            "AvailableIpAddressCount": 8,
            "MapPublicIpOnLaunch": False,
        }
        for one in SUBNETS
    ]
    table = {
        "RouteTableId": "rtb-1",
        "Associations": [{"SubnetId": one, "Main": False} for one in WANTED.subnets.values()],
        "Routes": [
            {"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local", "State": "active"},
            {"DestinationPrefixListId": "pl-1", "GatewayId": "vpce-s3", "State": "active"},
            {"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-1", "State": "active"},
        ],
    }
    s3 = {
        "VpcEndpointId": "vpce-s3",
        "ServiceName": "com.amazonaws.eu-central-1.s3",
        "VpcEndpointType": "Gateway",
        "State": "available",
        "RouteTableIds": ["rtb-1"],
    }
    return {
        "DescribeVpcs": {"Vpcs": [{"VpcId": VPC, "OwnerId": ACCOUNT}]},
        "DescribeVpcAttribute": {"VpcId": VPC, "EnableDnsSupport": {"Value": True}},
        "DescribeSubnets": {"Subnets": subnets},
        "DescribeRouteTables": {"RouteTables": [table]},
        "DescribeVpcEndpoints": {"VpcEndpoints": [s3]},
        "DescribeNetworkInterfaces": {
            "NetworkInterfaces": [{"SubnetId": one} for one in WANTED.subnets.values() for _ in range(8)]
        },
    }


@pytest.fixture
def yard(cloudformation: CloudFormation) -> Iterator[Yard]:
    aws = deployed()
    home(aws).described = answers()
    found = Yard(aws, Functions(aws), cloudformation)
    with found.functions.installed():
        yield found


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_a_deploy_into_a_network_that_nodes_can_use_goes_on(yard: Yard, kind: str) -> None:
    assert yard.ask(kind) == ""
    assert yard.aws.changes == []


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_a_deploy_into_a_network_that_nodes_cannot_use_fails_with_every_reason(yard: Yard, kind: str) -> None:
    there = home(yard.aws).described
    there["DescribeVpcEndpoints"]["VpcEndpoints"] = []
    there["DescribeSubnets"]["Subnets"][0]["MapPublicIpOnLaunch"] = True
    there["DescribeNetworkInterfaces"]["NetworkInterfaces"] = []
    reason = yard.ask(kind)
    for words in ("subnet-0a has no S3 endpoint", "subnet-0a gives public addresses", "subnet-0b has 8 addresses"):
        assert words in reason


def test_a_network_that_there_is_not_is_asked_nothing_further(yard: Yard) -> None:
    home(yard.aws).described["DescribeVpcs"] = {"Vpcs": []}
    assert f"there is no VPC {VPC}" in yard.ask("Create")
    assert [one.operation for one in yard.aws.calls if one.service == "ec2"] == ["DescribeVpcs"]


@pytest.mark.parametrize("fault", [Kind.DENIED, Kind.UNREACHABLE, Kind.ERROR])
def test_a_network_that_cannot_be_read_is_not_taken_for_a_good_one(yard: Yard, fault: Kind) -> None:
    reason = yard.ask("Update", Mishap("ec2:DescribeRouteTables", times=math.inf, fault=fault))
    assert f"eu-central-1: {VPC} could not be checked" in reason
    assert "Deploy again once the region answers" in reason


def test_neither_a_rollback_nor_a_destroy_looks_at_a_network(yard: Yard) -> None:
    home(yard.aws).described["DescribeVpcs"] = {"Vpcs": []}
    assert yard.ask("Update", status="UPDATE_ROLLBACK_IN_PROGRESS") == ""
    assert yard.ask("Delete") == ""
    assert [one for one in yard.aws.calls if one.service == "ec2"] == []
