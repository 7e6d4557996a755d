"""Security groups for nodes, one a job: members of one reach each other, and nothing reaches them from outside of it."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from constructs import Construct


def make_node_groups(scope: Construct, vpc: ec2.IVpc, count: int) -> list[ec2.SecurityGroup]:
    """Makes the groups. No rule of one names another or an address, so nodes of different groups cannot reach each other."""
    return [_make(scope, vpc, number) for number in range(1, count + 1)]


def _make(scope: Construct, vpc: ec2.IVpc, number: int) -> ec2.SecurityGroup:
    """Makes a group whose members reach each other on every port. EFA needs exactly these rules: in both directions, for all
    protocols, naming the group itself; "everything out" would not do.

    The first one has the name that the only one had, so that nodes and admitted jobs of a version before keep theirs.
    """
    group = ec2.SecurityGroup(
        scope,
        f"NodeSecurityGroup{number if number > 1 else ''}",
        vpc=vpc,
        description="Nodes: each other, and TCP 443 out",
        allow_all_outbound=False,
    )
    group.add_ingress_rule(group, ec2.Port.all_traffic(), "From nodes")
    group.add_egress_rule(group, ec2.Port.all_traffic(), "To nodes")
    group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "S3, package indexes, AWS services")
    return group
