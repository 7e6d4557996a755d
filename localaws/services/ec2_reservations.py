"""Capacity Reservations and Capacity Blocks of the model of EC2: who may launch into one, how much is left, and how a block ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from localaws.model import Refused
from localaws.services.ec2_capacity import BLOCK, MARKETS, CapacityReservation, full
from localaws.services.ec2_instance import Machine
from localaws.services.ec2_request import target
from localaws.services.ec2_state import Ec2State

ENDING_S = 1800.0
"""So long before its end EC2 begins to end the nodes of a block (EC2 user guide, "Work with Capacity Blocks")."""
FORM = re.compile(r"cr-[0-9a-f]{8}([0-9a-f]{9})?")
ENDED = "Server.CapacityBlockEnded"
"""A made-up code: AWS's documentation does not say which one it is."""


def reserve(
    ec2: Ec2State, instance_type: str, zone: str, total: int, *, begins_at: float | None = None, **more: Any
) -> CapacityReservation:
    """What a person does in the console: makes a reservation, or buys a block. Nodes of a block are ended half an hour before its end."""
    made = CapacityReservation(
        id=ec2.name("cr"),
        instance_type=instance_type,
        zone=zone,
        total=total,
        begins_at=ec2.now if begins_at is None else begins_at,
        **more,
    )
    ec2.reservations[made.id] = made
    if made.kind == BLOCK and made.ends_at is not None:
        ec2.at(made.ends_at - ENDING_S, lambda: end_nodes(ec2, made))
    return made


def end_nodes(ec2: Ec2State, reservation: CapacityReservation) -> None:
    """Ends what runs in a block, without a notice in instance metadata: there is none for blocks, only an event."""
    for machine in ec2.running():
        if target(machine.request) == reservation.id:
            ec2.end(machine, ENDED, "The Capacity Block has reached its end")


def check_reservation(ec2: Ec2State, request: Mapping[str, Any], zone: str) -> None:
    """Raises Refused where the reservation that the request names does not take all of its instances. What is reserved is there, so that
    nobody asks for other capacity."""
    wanted, market = target(request), (request.get("InstanceMarketOptions") or {}).get("MarketType", "")
    found = _known(ec2, wanted)
    if market == "spot":
        raise Refused("InvalidParameterCombination", "Spot instances cannot be launched into a Capacity Reservation.")
    if found.market != (market if market in MARKETS else ""):
        raise Refused(
            "InvalidParameterCombination",
            f"The market type of the request does not match the Capacity Reservation {found.id}.",
        )
    if (request["InstanceType"], zone) != (found.instance_type, found.zone):
        raise Refused(
            "InvalidParameterValue",
            f"The instance type and Availability Zone do not match those of the Capacity Reservation {found.id}.",
        )
    if found.state(ec2.now) == "scheduled":
        raise Refused("InsufficientInstanceCapacity", f"The Capacity Reservation {found.id} has not begun.", 500)
    if found.state(ec2.now) != "active":
        raise Refused("InvalidCapacityReservationState", f"The Capacity Reservation {found.id} is not active.")
    if used(ec2, found) + request["MinCount"] > found.total:
        raise full(found.id)


def used(ec2: Ec2State, reservation: CapacityReservation) -> int:
    """Instances that hold a place: an ending one holds its own until it has been cleaned up."""
    every: list[Machine] = list(ec2.machines.values())
    return sum(
        target(one.request) == reservation.id and one.state(ec2.now) not in {"terminated", "stopped"} for one in every
    )


def describe_reservations(ec2: Ec2State, params: Mapping[str, Any]) -> dict[str, Any]:
    """DescribeCapacityReservations, by ids or all, in one page; one unknown id fails the call."""
    ids = params.get("CapacityReservationIds") or list(ec2.reservations)
    return {"CapacityReservations": [_shown(ec2, _known(ec2, identity)) for identity in ids]}


def _known(ec2: Ec2State, identity: str) -> CapacityReservation:
    if not FORM.fullmatch(identity):
        raise Refused("InvalidCapacityReservationId.Malformed", f"The id '{identity}' is malformed")
    if identity not in ec2.reservations:
        raise Refused(
            "InvalidCapacityReservationId.NotFound", f"The capacity reservation ID '{identity}' does not exist"
        )
    return ec2.reservations[identity]


def _shown(ec2: Ec2State, one: CapacityReservation) -> dict[str, Any]:
    ends = {} if one.ends_at is None else {"EndDate": datetime.fromtimestamp(one.ends_at, UTC)}
    return {
        "CapacityReservationId": one.id,
        "OwnerId": one.owner,
        "CapacityReservationArn": f"arn:aws:ec2:{ec2.region}:{one.owner}:capacity-reservation/{one.id}",
        "InstanceType": one.instance_type,
        "InstancePlatform": one.platform,
        "AvailabilityZone": one.zone,
        "Tenancy": one.tenancy,
        "TotalInstanceCount": one.total,
        "AvailableInstanceCount": one.total - used(ec2, one),
        "State": one.state(ec2.now),
        "StartDate": datetime.fromtimestamp(one.begins_at, UTC),
        "EndDateType": "unlimited" if one.ends_at is None else "limited",
        "InstanceMatchCriteria": "targeted",
        "ReservationType": one.kind,
        "Interruptible": one.interruptible,
        "Tags": [{"Key": key, "Value": value} for key, value in one.tags.items()],
        **ends,
    }
