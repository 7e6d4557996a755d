"""A region's network: private subnets in three zones, a way out and no way in."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from stacks.parts.acknowledged import acknowledge

ZONES = 3
PUBLIC_PREFIX = 28
"""A public subnet holds a NAT gateway and nothing else: 11 addresses are more than enough."""


class Network(Construct):
    """`vpc` and `security_group`. The default security group stays as AWS makes it: closing it takes a function in every
    region, and no node is ever in it."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        region: str,
        cidr: str,
        nat_gateways: int,
        interface_endpoints: Sequence[str],
    ) -> None:
        super().__init__(scope, name)
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr(cidr),
            # Without an account CDK knows two zones; every region of the settings has three.
            availability_zones=[cdk.Fn.select(index, cdk.Fn.get_azs(region)) for index in range(ZONES)],
            nat_gateways=nat_gateways,
            restrict_default_security_group=False,
            subnet_configuration=[
                ec2.SubnetConfiguration(
                    name="Nodes",
                    subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS,
                    # Three quarters for nodes; the public subnets share the fourth.
                    cidr_mask=IPv4Network(cidr).prefixlen + 2,
                ),
                ec2.SubnetConfiguration(
                    name="Nat",
                    subnet_type=ec2.SubnetType.PUBLIC,
                    cidr_mask=PUBLIC_PREFIX,
                    map_public_ip_on_launch=False,
                ),
            ],
            # Bytes of the region's bucket pass here for nothing; through a NAT gateway each gigabyte costs.
            gateway_endpoints={"S3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3)},
        )
        acknowledge(
            self.vpc,
            "Flow logs cost by the gigabyte, gradients are gigabytes, and no way leads in.",
            "AwsSolutions-VPC7",
        )
        self.security_group = ec2.SecurityGroup(
            self,
            "NodeSecurityGroup",
            vpc=self.vpc,
            description="Nodes: each other, and TCP 443 out",
            allow_all_outbound=False,
        )
        # Nodes reach each other on every port. EFA, which no launch asks for yet, would want just these rules: both ways, for all
        # protocols, naming the group itself; "everything out" would not do.
        self.security_group.add_ingress_rule(self.security_group, ec2.Port.all_traffic(), "From nodes")
        self.security_group.add_egress_rule(self.security_group, ec2.Port.all_traffic(), "To nodes")
        self.security_group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "S3, package indexes, AWS services")
        if interface_endpoints:
            self._endpoints(interface_endpoints)

    @property
    def node_subnets(self) -> list[ec2.ISubnet]:
        """One a zone, all private."""
        return self.vpc.private_subnets

    def _endpoints(self, services: Sequence[str]) -> None:
        group = ec2.SecurityGroup(
            self,
            "EndpointSecurityGroup",
            vpc=self.vpc,
            description="Endpoints: TCP 443 from nodes",
            allow_all_outbound=False,
        )
        group.add_ingress_rule(self.security_group, ec2.Port.tcp(443), "From nodes")
        for service in services:
            self.vpc.add_interface_endpoint(
                f"{service.title().replace('.', '')}Endpoint",
                service=ec2.InterfaceVpcEndpointAwsService(service),
                subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
                security_groups=[group],
                # "Open" is to everything in the network.
                open=False,
            )
