"""Rights to mount file systems: of each what its kind asks for, by its ARN, through its access point where it has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk

from contract import mounts
from contract.mounts import Kind
from stacks.parts.right import Right

POLICY = "Mounts"
"""The policy of the role in which they stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mountable:
    """A file system as IAM sees it."""

    name: str
    kind: Kind
    region: str
    id: str
    access_point: str = ""


def mount(file_systems: Sequence[Mountable]) -> list[Right]:
    """Allows to mount and to write each file system. A session's own policy keeps it to what its job mounts, and to reading where the
    request says so. There is no right to be root there: the file system treats root as its anonymous user, or as the user of the access
    point."""
    return [_right(one) for one in file_systems if one.kind.service]


def _right(one: Mountable) -> Right:
    arn = mounts.arn(one.kind, one.id, partition=cdk.Aws.PARTITION, region=one.region, account=cdk.Aws.ACCOUNT_ID)
    point = f"arn:{cdk.Aws.PARTITION}:{_of_points(one, arn)}"
    through = {"StringEquals": {f"{one.kind.service}:AccessPointArn": point}} if one.access_point else {}
    name = "".join(word.title() for word in one.name.split("-"))
    return Right(f"Mount{name}", one.kind.actions(read_only=False), [arn], conditions=through, apart=POLICY)


def _of_points(one: Mountable, arn: str) -> str:
    """What follows the partition in the ARN of its access point: EFS's stand beside file systems, those of S3 Files below them."""
    if one.kind is Kind.EFS:
        return f"elasticfilesystem:{one.region}:{cdk.Aws.ACCOUNT_ID}:access-point/{one.access_point}"
    return f"{arn.partition(':')[2].partition(':')[2]}/access-point/{one.access_point}"
