"""Every call about networks: those that the account has already, and what lies in those of a deployment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from aws.clients import BRISK, client
from aws.network_facts import Endpoint, NetworkFacts, PlacedInterface, Route, RouteTable, Subnet
from contract import names, tags

if TYPE_CHECKING:
    from types_boto3_ec2.client import EC2Client

TARGETS = (
    "GatewayId",
    "NatGatewayId",
    "TransitGatewayId",
    "VpcPeeringConnectionId",
    "NetworkInterfaceId",
    "LocalGatewayId",
    "CarrierGatewayId",
    "CoreNetworkArn",
    "EgressOnlyInternetGatewayId",
    "InstanceId",
)
"""Where DescribeRouteTables says by what a route leads."""
STACK = "aws:cloudformation:stack-name"
"""Tag by which CloudFormation marks what it makes."""
OF_A_DATABASE = "RDSNetworkInterface"
"""The description of every interface that RDS makes."""
OF_A_FUNCTION, OF_AN_API = "AWS Lambda VPC ENI-", "Amazon EKS "
"""How descriptions of interfaces begin that Lambda and EKS make; EKS's has the cluster's name behind it."""
OF_A_MACHINE = "eks:eks-cluster-name"
"""The tag that EKS's Auto Mode gives to all that it makes for a machine."""
FILTER_VALUES = 200
"""The most values that a filter takes."""


class Networks:
    """EC2 in one region. Every call raises ClientError or BotoCoreError."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._client: EC2Client = client("ec2", region, BRISK)

    def read(self, vpc: str, subnets: Sequence[str], deployment: str) -> NetworkFacts | None:
        """Returns the facts about a VPC and those of the subnets that there are; None where there is no such VPC. Filters and not ids,
        because one unknown id fails a call."""
        found = self._client.describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Vpcs"]
        if not found:
            return None
        return NetworkFacts(
            vpc=vpc,
            owner=found[0]["OwnerId"],
            dns_support=self._client.describe_vpc_attribute(VpcId=vpc, Attribute="enableDnsSupport")
            .get("EnableDnsSupport", {})
            .get("Value", False),
            subnets=tuple(self._subnets(subnets, deployment)),
            route_tables=self.tables_of(vpc),
            endpoints=tuple(map(_endpoint, self._every("describe_vpc_endpoints", "VpcEndpoints", vpc))),
        )

    def tables_of(self, vpc: str) -> tuple[RouteTable, ...]:
        return tuple(map(_table, self._every("describe_route_tables", "RouteTables", vpc)))

    def find_own(self, deployment: str) -> list[str]:
        """Returns the ids of the networks that the deployment made."""
        ours: Any = [{"Name": f"tag:{tags.DEPLOYMENT}", "Values": [deployment]}]
        return [one["VpcId"] for one in self._client.describe_vpcs(Filters=ours)["Vpcs"]]

    def placed(self, deployment: str) -> list[PlacedInterface]:
        """Returns every network interface in the deployment's own networks, and in others those with one of its security groups: none of
        these networks and groups can be deleted before."""
        ours: Any = [{"Name": f"tag:{tags.DEPLOYMENT}", "Values": [deployment]}]
        networks = self.find_own(deployment)
        pages = self._client.get_paginator("describe_security_groups").paginate(Filters=ours)
        known = [one for page in pages for one in page["SecurityGroups"]]
        groups = {one["GroupId"]: one["VpcId"] for one in known}
        elsewhere = [group for group, network in groups.items() if network not in networks]
        found = [
            one
            for name, values in (("vpc-id", networks), ("group-id", elsewhere))
            for one in self._interfaces(name, values)
        ]
        own = set[str]()
        if found:
            own = self._own_interfaces(ours) | _of_the_catalogue(found, known, deployment)
            own |= _of_the_cluster(found, known, deployment)
        return [_placed(one, self._region, deployment, groups.keys(), own) for one in found]

    def _own_interfaces(self, ours: Any) -> set[str]:
        """Returns the ids of the interfaces of the deployment's NAT gateways and endpoints. A gateway that is being made has none yet,
        and a gateway endpoint never has one."""
        gateways = self._client.get_paginator("describe_nat_gateways").paginate(Filters=ours)
        endpoints = self._client.get_paginator("describe_vpc_endpoints").paginate(Filters=ours)
        return {
            address.get("NetworkInterfaceId", "")
            for page in gateways
            for one in page["NatGateways"]
            for address in one.get("NatGatewayAddresses", [])
        } | {id_ for page in endpoints for one in page["VpcEndpoints"] for id_ in one.get("NetworkInterfaceIds", [])}

    def _interfaces(self, name: str, values: Sequence[str]) -> Iterator[Any]:
        for start in range(0, len(values), FILTER_VALUES):
            wanted: Any = [{"Name": name, "Values": list(values[start : start + FILTER_VALUES])}]
            for page in self._client.get_paginator("describe_network_interfaces").paginate(Filters=wanted):
                yield from page["NetworkInterfaces"]

    def _subnets(self, ids: Sequence[str], deployment: str) -> list[Subnet]:
        found = self._client.describe_subnets(Filters=[{"Name": "subnet-id", "Values": list(ids)}])["Subnets"]
        ours = self._count_ours(ids, deployment)
        return [
            Subnet(
                id=one["SubnetId"],
                vpc=one["VpcId"],
                zone=one["AvailabilityZone"],
                free=one["AvailableIpAddressCount"],
                ours=ours[one["SubnetId"]],
                gives_public=one["MapPublicIpOnLaunch"],
            )
            for one in found
        ]

    def _count_ours(self, subnets: Sequence[str], deployment: str) -> Counter[str]:
        """Counts the interfaces of the deployment's nodes in each subnet."""
        pages = self._client.get_paginator("describe_network_interfaces").paginate(
            Filters=[
                {"Name": "subnet-id", "Values": list(subnets)},
                {"Name": f"tag:{tags.DEPLOYMENT}", "Values": [deployment]},
            ]
        )
        return Counter(one["SubnetId"] for page in pages for one in page["NetworkInterfaces"])

    def _every(self, operation: Any, key: str, vpc: str) -> list[Any]:
        pages = self._client.get_paginator(operation).paginate(Filters=[{"Name": "vpc-id", "Values": [vpc]}])
        return [one for page in pages for one in page[key]]


def _of_the_catalogue(found: Sequence[Any], groups: Sequence[Any], deployment: str) -> set[str]:
    """Returns the ids of the interfaces of the catalogue's database, which RDS does not tag: RDS made them, and they are in the security
    group that CloudFormation made for the catalogue's stack."""
    stack = {"Key": STACK, "Value": names.catalogue_stack(deployment)}
    its = {one["GroupId"] for one in groups if stack in one.get("Tags", [])}
    return {
        one["NetworkInterfaceId"]
        for one in found
        if one.get("Description") == OF_A_DATABASE and its & {group["GroupId"] for group in one.get("Groups", [])}
    }


def _of_the_cluster(found: Sequence[Any], groups: Sequence[Any], deployment: str) -> set[str]:
    """Returns the ids of the interfaces of the cluster of Kubernetes: those of its machines, which EKS tags with the cluster's name, and
    those of its API and of functions, which are untagged in security groups that CloudFormation made for the cluster's stack."""
    cluster, stack = names.eks_cluster(deployment), {"Key": STACK, "Value": names.kubernetes_stack(deployment)}
    its = {one["GroupId"] for one in groups if stack in one.get("Tags", [])}
    beginnings = (OF_A_FUNCTION, f"{OF_AN_API}{cluster}")
    return {
        one["NetworkInterfaceId"]
        for one in found
        if {"Key": OF_A_MACHINE, "Value": cluster} in one.get("TagSet", [])
        or (
            str(one.get("Description", "")).startswith(beginnings)
            and its & {group["GroupId"] for group in one.get("Groups", [])}
        )
    }


def _table(raw: Any) -> RouteTable:
    associations = raw.get("Associations", [])
    return RouteTable(
        id=raw["RouteTableId"],
        subnets=tuple(one["SubnetId"] for one in associations if one.get("SubnetId")),
        main=any(one.get("Main") for one in associations),
        routes=tuple(map(_route, raw.get("Routes", []))),
    )


def _route(raw: Any) -> Route:
    return Route(
        to=raw.get("DestinationCidrBlock") or raw.get("DestinationPrefixListId") or "",
        by=next((raw[name] for name in TARGETS if raw.get(name)), ""),
        active=raw.get("State") == "active",
    )


def _endpoint(raw: Any) -> Endpoint:
    return Endpoint(
        id=raw["VpcEndpointId"],
        # com.amazonaws.eu-central-1.ecr.dkr, in China cn.com.amazonaws.cn-north-1.ecr.dkr
        service=raw["ServiceName"].partition("amazonaws.")[2].partition(".")[2],
        kind=raw["VpcEndpointType"],
        available=raw.get("State", "").lower() == "available",
        route_tables=tuple(raw.get("RouteTableIds", [])),
        private_dns=bool(raw.get("PrivateDnsEnabled")),
    )


def _placed(raw: Any, region: str, deployment: str, groups: Collection[str], own: Collection[str]) -> PlacedInterface:
    marks = {tag["Key"]: tag.get("Value", "") for tag in raw.get("TagSet", [])}
    return PlacedInterface(
        id=raw["NetworkInterfaceId"],
        region=region,
        subnet=raw.get("SubnetId", ""),
        description=raw.get("Description", ""),
        instance=raw.get("Attachment", {}).get("InstanceId", ""),
        tagged=marks.get(tags.DEPLOYMENT) == deployment or raw["NetworkInterfaceId"] in own,
        in_our_group=any(one["GroupId"] in groups for one in raw.get("Groups", [])),
    )
