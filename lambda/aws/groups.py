"""Every call about security groups of the functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws.clients import client

if TYPE_CHECKING:
    from types_boto3_ec2.client import EC2Client


def close(region: str, group: str) -> int:
    """Revokes every rule of a security group, in both directions, and returns how many there were. Raises ClientError."""
    ec2: EC2Client = client("ec2", region)
    (found,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    inbound, outbound = found["IpPermissions"], found["IpPermissionsEgress"]
    if inbound:
        ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=inbound)
    if outbound:
        ec2.revoke_security_group_egress(GroupId=group, IpPermissions=outbound)
    return len(inbound) + len(outbound)
