"""Subnets without a route for the catalogue's database, in the network of the home region."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from stacks.parts.existing_network import ExistingNetwork
from stacks.parts.network import Network, database_blocks


def find_database_subnets(scope: Construct, network: Network | ExistingNetwork, cidr: str) -> Sequence[str]:
    """Returns the ids of the subnets for a database: of a network that the account has those of the nodes, which the settings name. In
    one of our own they are made, and belong to the stack of `scope`, so that they come and go with the database."""
    if isinstance(network, ExistingNetwork):
        return [one.subnet_id for one in network.node_subnets]
    return [
        ec2.Subnet(
            scope,
            f"DatabaseSubnet{number}",
            vpc_id=network.vpc.vpc_id,
            availability_zone=place.availability_zone,
            cidr_block=str(block),
            map_public_ip_on_launch=False,
        ).subnet_id
        for number, (place, block) in enumerate(zip(network.node_subnets, database_blocks(cidr), strict=False), start=1)
    ]
