"""The region check of a deploy: fails one that removes a region while its stack exists, or whose network nodes cannot run in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk

from contract.codec import encode
from contract.environments import RegionCheckEnvironment
from contract.networks import NamedFileSystem, NamedNetwork
from stacks.parts import item_rights
from stacks.parts.custom_resource import add_custom_resource
from stacks.parts.function import Function, Layer
from stacks.parts.right import Right
from stacks.parts.rights import Rights

CHECK_TIMEOUT = cdk.Duration.minutes(5)
"""How long CloudFormation waits for the check, which asks each region once."""
LOOKS = (
    "ec2:DescribeVpcs",
    "ec2:DescribeVpcAttribute",
    "ec2:DescribeSubnets",
    "ec2:DescribeRouteTables",
    "ec2:DescribeVpcEndpoints",
    "ec2:DescribeNetworkInterfaces",
)
"""What is asked about networks that the account has already."""
FILE_LOOKS = (
    "elasticfilesystem:DescribeMountTargets",
    "fsx:DescribeFileSystems",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeRouteTables",
    "ec2:DescribeVpcs",
)
"""What is asked about file systems, and the way to those in another network."""
KEY_LOOKS = ("kms:DescribeKey", "kms:ListGrants")
"""What is asked about keys for disks, of these keys alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """What the settings name that the account has already, or another one."""

    networks: Sequence[NamedNetwork]
    file_systems: Sequence[NamedFileSystem]
    volume_keys: Sequence[str]
    """ARNs of the keys under which disks of nodes are encrypted."""


def check_regions(
    stack: cdk.Stack,
    *,
    rights: Rights,
    table: str,
    layer: Layer,
    log_retention_days: int,
    regions: Sequence[str],
    existing: Existing,
) -> None:
    """Adds the function, and what makes CloudFormation ask it: each change of `regions`, all of the settings, or of `existing`.

    A removed region's stack would be updated and destroyed by no later deploy.
    """
    networks, file_systems, volume_keys = existing.networks, existing.file_systems, existing.volume_keys
    function = Function(
        stack,
        "RegionCheck",
        package="region_check",
        description="Rejects removing a region while its stack exists",
        environment=RegionCheckEnvironment(deployment=rights.deployment, table=table),
        layer=layer,
        timeout=cdk.Duration.minutes(2),
        log_retention_days=log_retention_days,
        rights=[
            item_rights.query_regions(rights),
            rights.descriptions(),
            rights.own_stack(stack.stack_name),
            *([rights.look_at("DescribeNetworks", *LOOKS)] if networks else []),
            *([rights.look_at("DescribeFileSystems", *FILE_LOOKS)] if file_systems else []),
            *([Right("DescribeVolumeKeys", KEY_LOOKS, volume_keys)] if volume_keys else []),
        ],
    )
    add_custom_resource(
        stack,
        "Regions",
        kind="Regions",
        function_arn=function.function_arn,
        wait=CHECK_TIMEOUT,
        properties={
            "Regions": list(regions),
            # As text: CloudFormation hands numbers and booleans over as strings.
            **({"Networks": [encode(one).decode() for one in networks]} if networks else {}),
            **({"FileSystems": [encode(one).decode() for one in file_systems]} if file_systems else {}),
            **({"VolumeKeys": list(volume_keys)} if volume_keys else {}),
        },
    )
