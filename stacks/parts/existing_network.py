"""A network that the account has already: nothing is made in it but security groups for nodes, and nothing of it is changed."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from stacks.parts.node_groups import make_node_groups


class ExistingNetwork(Construct):
    """`vpc`, `node_subnets` and `security_groups`, as Network has them. Subnets, routes, endpoints and the default security group stay as
    their owners made them."""

    def __init__(
        self, scope: Construct, name: str, *, vpc: str, subnets: Mapping[str, str], security_groups: int
    ) -> None:
        """`vpc` is the id of the VPC; `subnets` has the id of a private subnet for each availability zone."""
        super().__init__(scope, name)
        self.vpc = ec2.Vpc.from_vpc_attributes(self, "Vpc", vpc_id=vpc, availability_zones=list(subnets))
        self.node_subnets = [self._find(zone, subnet) for zone, subnet in subnets.items()]
        self.security_groups = make_node_groups(self, self.vpc, security_groups)

    def _find(self, zone: str, subnet: str) -> ec2.ISubnet:
        found = ec2.Subnet.from_subnet_attributes(self, f"Subnet-{zone}", subnet_id=subnet, availability_zone=zone)
        # The CDK warns whoever asks for the route table, which nothing here does.
        cdk.Annotations.of(found).acknowledge_warning("@aws-cdk/aws-ec2:noSubnetRouteTableId")
        return found
