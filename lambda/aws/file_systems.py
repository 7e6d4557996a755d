"""Every call about file systems that jobs mount."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from aws.clients import BRISK, client
from aws.network_facts import PlacedFileSystem
from contract.aws_errors import code_of
from contract.mounts import Kind

if TYPE_CHECKING:
    from types_boto3_ec2.client import EC2Client

GONE = "FileSystemNotFound"


def place_file_system(region: str, kind: Kind, id: str) -> PlacedFileSystem | None:
    """Returns where a file system of EFS or FSx lies; None where there is none. Raises ClientError or BotoCoreError."""
    try:
        return _efs(region, id) if kind is Kind.EFS else _fsx(region, id)
    except ClientError as problem:
        if code_of(problem) == GONE:
            return None
        raise


def _efs(region: str, id: str) -> PlacedFileSystem:
    efs = client("efs", region, BRISK)
    found = efs.describe_mount_targets(FileSystemId=id)["MountTargets"]
    return PlacedFileSystem(
        vpcs=tuple(sorted({one["VpcId"] for one in found})),
        addresses=tuple(one["IpAddress"] for one in found if one.get("IpAddress")),
    )


def _fsx(region: str, id: str) -> PlacedFileSystem:
    fsx = client("fsx", region, BRISK)
    (found,) = fsx.describe_file_systems(FileSystemIds=[id])["FileSystems"]
    ec2: EC2Client = client("ec2", region, BRISK)
    ids = found.get("NetworkInterfaceIds", [])[:200]
    shown = ec2.describe_network_interfaces(Filters=[{"Name": "network-interface-id", "Values": ids}]) if ids else None
    return PlacedFileSystem(
        vpcs=(found["VpcId"],),
        addresses=tuple(one["PrivateIpAddress"] for one in shown["NetworkInterfaces"]) if shown else (),
    )
