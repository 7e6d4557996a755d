"""Every call about Capacity Reservations of the functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import ClientError

from aws.clients import PATIENT, client
from aws.facts import Reservation
from contract import tags
from contract.aws_errors import code_of

if TYPE_CHECKING:
    from types_boto3_ec2.client import EC2Client
    from types_boto3_ec2.type_defs import CapacityReservationTypeDef

ENDING_S = 1800.0
"""So long before its end EC2 begins to end the nodes of a Capacity Block (EC2 user guide, "Work with Capacity Blocks")."""
ABSENT = "InvalidCapacityReservationId"
"""How the codes begin of an id that EC2 does not know, or that is none."""
NO_GROUP = frozenset({"NotFoundException", "BadRequestException"})


def found(region: str, name: str, config: Config = PATIENT) -> list[Reservation]:
    """The reservation of that id in the region, or all of the resource group of that ARN; none where there is no such thing."""
    if not name.startswith("arn:"):
        return _described(region, [name], config)
    if name.split(":")[3] != region:
        return []
    every = _members(region, name, config)
    return [
        one for start in range(0, len(every), 100) for one in _described(region, every[start : start + 100], config)
    ]


def tagged(region: str, deployment: str, config: Config = PATIENT) -> list[tuple[Reservation, int]]:
    """All of the region with the deployment's tag, each with how many instances could start in it. Raises ClientError and botocore's
    errors."""
    ec2: EC2Client = client("ec2", region, config)
    ours: Any = [{"Name": f"tag:{tags.DEPLOYMENT}", "Values": [deployment]}]
    pages = ec2.get_paginator("describe_capacity_reservations").paginate(Filters=ours)
    entries = [one for page in pages for one in page["CapacityReservations"]]
    return list(zip(_read(region, entries), (one["AvailableInstanceCount"] for one in entries), strict=True))


def _members(region: str, group: str, config: Config) -> list[str]:
    """Ids of the reservations of a group, which may hold other things besides."""
    groups = client("resource-groups", region, config)
    try:
        pages = groups.get_paginator("list_group_resources").paginate(Group=group)
        named = [one["Identifier"]["ResourceArn"] for page in pages for one in page["Resources"]]
    except ClientError as problem:
        if code_of(problem) in NO_GROUP:
            return []
        raise
    return [arn.rpartition("/")[2] for arn in named if ":capacity-reservation/" in arn]


def _described(region: str, ids: Sequence[str], config: Config) -> list[Reservation]:
    """One unknown id fails the whole call, so it is repeated with each half: groups go on naming what is long gone."""
    ec2: EC2Client = client("ec2", region, config)
    try:
        answer = ec2.describe_capacity_reservations(CapacityReservationIds=list(ids))
    except ClientError as problem:
        if not code_of(problem).startswith(ABSENT):
            raise
        if len(ids) == 1:
            return []
        middle = len(ids) // 2
        return _described(region, ids[:middle], config) + _described(region, ids[middle:], config)
    return list(_read(region, answer["CapacityReservations"]))


def _read(region: str, entries: Sequence[CapacityReservationTypeDef]) -> Iterator[Reservation]:
    for one in entries:
        marks = {tag["Key"]: tag["Value"] for tag in one.get("Tags", [])}
        block = one.get("ReservationType") == "capacity-block"
        yield Reservation(
            id=one["CapacityReservationId"],
            region=region,
            zone=one["AvailabilityZone"],
            instance_type=one["InstanceType"],
            state=one["State"],
            total=one["TotalInstanceCount"],
            owner=one["OwnerId"],
            platform=one["InstancePlatform"],
            tenancy=one["Tenancy"],
            deployment=marks.get(tags.DEPLOYMENT, ""),
            block=block,
            interruptible=bool(one.get("Interruptible")),
            begins_at=one["StartDate"].timestamp() if "StartDate" in one else 0.0,
            ends_at=one["EndDate"].timestamp() - ENDING_S if block and "EndDate" in one else None,
        )
