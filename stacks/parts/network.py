"""A region's network: a private subnet per zone; nodes can open connections to the internet, and nothing outside can connect to them."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from stacks.parts import interfaces
from stacks.parts.acknowledged import acknowledge
from stacks.parts.node_groups import make_node_groups

ZONES = 3
"""Zones that share three quarters of the network, even where there are fewer."""
MOST_ZONES = 6
"""us-east-1 has six zones, and no region has more."""
PUBLIC_PREFIX = 28
"""A public subnet holds a NAT gateway and nothing else: 11 addresses are more than enough."""

GATEWAYS = {"S3": ec2.GatewayVpcEndpointAwsService.S3, "DynamoDb": ec2.GatewayVpcEndpointAwsService.DYNAMODB}
"""Gateway endpoints. Each serves its own region alone: nodes elsewhere reach the table through their NAT gateway."""


class Network(Construct):
    """`vpc` and `security_groups`, one a job. The default security group stays as AWS makes it: closing it takes a function in every
    region, and no node is ever in it."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        cidr: str,
        zones: Sequence[str],
        nat_gateways: int,
        interface_endpoints: Sequence[str],
        security_groups: int,
    ) -> None:
        """`zones` are names, at most as many as `zones_of` returns.

        Adding a name at the end of `zones` does not change any other subnet.
        """
        super().__init__(scope, name)
        first = zones[:ZONES]
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr(cidr),
            availability_zones=list(first),
            reserved_azs=ZONES - len(first),
            nat_gateways=nat_gateways,
            restrict_default_security_group=False,
            subnet_configuration=[
                ec2.SubnetConfiguration(
                    name="Nodes",
                    subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS,
                    # Nodes have three quarters; the public subnets are in the fourth.
                    cidr_mask=IPv4Network(cidr).prefixlen + 2,
                ),
                ec2.SubnetConfiguration(
                    name="Nat",
                    subnet_type=ec2.SubnetType.PUBLIC,
                    cidr_mask=PUBLIC_PREFIX,
                    map_public_ip_on_launch=False,
                ),
            ],
            # Traffic to the region's bucket, and in the home region to the table of state, is free through these endpoints, which cost
            # nothing; through a NAT gateway each gigabyte costs.
            gateway_endpoints={
                name: ec2.GatewayVpcEndpointOptions(service=service) for name, service in GATEWAYS.items()
            },
        )
        acknowledge(
            self.vpc,
            "Flow logs cost by the gigabyte, gradients are gigabytes, and no way leads in.",
            "AwsSolutions-VPC7",
        )
        self.node_subnets = [*self.vpc.private_subnets, *self._more(zones[ZONES:], cidr)]
        """Private subnets, one per zone."""
        self.security_groups = make_node_groups(self, self.vpc, security_groups)
        if interface_endpoints:
            self._endpoints(interface_endpoints)

    def _more(self, zones: Sequence[str], cidr: str) -> list[ec2.ISubnet]:
        """Makes the subnets of further zones. They use the NAT gateways and the gateway endpoints of the first zones."""
        subnets = [
            ec2.PrivateSubnet(
                self.vpc,
                f"NodesSubnet{number}",
                vpc_id=self.vpc.vpc_id,
                availability_zone=zone,
                cidr_block=str(block),
                map_public_ip_on_launch=False,
            )
            for number, (zone, block) in enumerate(zip(zones, _further(cidr), strict=False), start=ZONES + 1)
        ]
        gateways = [one for one in self.vpc.node.find_all() if isinstance(one, ec2.CfnNatGateway)]
        for index, subnet in enumerate(subnets):
            subnet.add_default_nat_route(gateways[index % len(gateways)].ref)
        every = [*self.vpc.private_subnets, *self.vpc.public_subnets, *subnets]
        for name in GATEWAYS if subnets else ():
            endpoint = self.vpc.node.find_child(name).node.default_child
            assert isinstance(endpoint, ec2.CfnVPCEndpoint)
            endpoint.route_table_ids = list(dict.fromkeys(one.route_table.route_table_id for one in every))
        return [*map(interfaces.subnet, subnets)]

    def _endpoints(self, services: Sequence[str]) -> None:
        group = ec2.SecurityGroup(
            self,
            "EndpointSecurityGroup",
            vpc=self.vpc,
            description="Endpoints: TCP 443 from nodes",
            allow_all_outbound=False,
        )
        for nodes in self.security_groups:
            group.add_ingress_rule(nodes, ec2.Port.tcp(443), "From nodes")
        for service in services:
            self.vpc.add_interface_endpoint(
                f"{service.title().replace('.', '')}Endpoint",
                service=ec2.InterfaceVpcEndpointAwsService(service),
                subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
                security_groups=[group],
                # "Open" means open to everything in the network.
                open=False,
            )


def zones_of(cidr: str) -> int:
    """Returns the number of zones that a network of this size has room for."""
    return min(MOST_ZONES, ZONES + len(_further(cidr)))


def database_blocks(cidr: str) -> list[IPv4Network]:
    """Returns a block for a database in each of the first zones; none where the network is too small. They lie behind the public subnets,
    where no subnet of a further zone ever lies."""
    *_, last = IPv4Network(cidr).subnets(prefixlen_diff=2)
    small = last.subnets(new_prefix=PUBLIC_PREFIX) if last.prefixlen <= PUBLIC_PREFIX else iter(())
    blocks = [block for _, block in zip(range(2 * ZONES), small, strict=False)][ZONES:]
    taken = _further(cidr)
    return blocks if len(blocks) == ZONES and not any(one.overlaps(other) for one in blocks for other in taken) else []


def _further(cidr: str) -> list[IPv4Network]:
    """Returns blocks for subnets of the fourth and further zones: the rest of the last quarter, which has the public subnets, in
    sixteenths of the network."""
    *_, last = IPv4Network(cidr).subnets(prefixlen_diff=2)
    public = [block for _, block in zip(range(ZONES), last.subnets(new_prefix=PUBLIC_PREFIX), strict=False)]
    return [block for block in last.subnets(prefixlen_diff=2) if not any(block.overlaps(one) for one in public)]
