"""DescribeInstances of the model of EC2: filters, pages, and reads that lag behind."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from localaws.model import ACCOUNT, Refused
from localaws.services.ec2_instance import Machine
from localaws.services.ec2_state import Ec2State

NAMES = frozenset({"instance-id", "instance-state-name", "tag-key", "iam-instance-profile.arn"})
FILTER_VALUES = 200
MOST = 1000


def describe_instances(ec2: Ec2State, params: Mapping[str, Any]) -> dict[str, Any]:
    """DescribeInstances.

    One unknown id fails the call; a filter on ids does not. MaxResults excludes InstanceIds. A filter takes 200 values, with
    `*` and `?`. Pages are cut before they are filtered, so one may be empty and still have a next one; tokens expire.
    What is read may lag: new instances are invisible for about a second, and states are those of a moment ago.
    """
    ids, most = params.get("InstanceIds"), params.get("MaxResults")
    if ids and most:
        raise Refused("InvalidParameterCombination", "The parameter instancesSet cannot be used with maxResults")
    if most is not None and not 5 <= most <= MOST:
        raise Refused(
            "InvalidParameterValue", f"Value ( {most} ) for parameter maxResults is invalid. Expecting 5 to 1000."
        )
    filters = params.get("Filters") or []
    for one in filters:
        _check(one)
    if ids:
        found = [ec2.known(identity) for identity in ids]
        return _page(ec2, found, filters, None)
    every, token = list(ec2.machines.values()), params.get("NextToken")
    shown, following = ec2.pages.cut_seen(every, ec2.sees, token, most or MOST, ec2.now)
    return _page(ec2, shown, filters, following)


def describe_profiles(ec2: Ec2State, params: Mapping[str, Any]) -> dict[str, Any]:
    """DescribeIamInstanceProfileAssociations. Supports only the filter `instance-id`, in one page, and forgets no instance."""
    filters = {one["Name"]: one["Values"] for one in params.get("Filters", [])}
    if unknown := filters.keys() ^ {"instance-id"}:
        raise Refused(
            "InvalidParameterValue", f"The model takes the filter instance-id and no other: {sorted(unknown)}"
        )
    found = (ec2.machines.get(identity) for identity in filters["instance-id"])
    return {
        "IamInstanceProfileAssociations": [
            {"InstanceId": machine.id, "IamInstanceProfile": {"Arn": machine.profile}, "State": "associated"}
            for machine in found
            if machine is not None and machine.profile
        ]
    }


def _check(one: dict[str, Any]) -> None:
    name, values = one["Name"], one.get("Values") or []
    if name not in NAMES and not name.startswith("tag:"):
        raise Refused("InvalidParameterValue", f"The filter '{name}' is invalid")
    if len(values) > FILTER_VALUES:
        raise Refused("FilterLimitExceeded", f"The maximum number of filter values is {FILTER_VALUES}")


def _page(
    ec2: Ec2State, machines: list[Machine], filters: list[dict[str, Any]], following: str | None
) -> dict[str, Any]:
    then = ec2.now - ec2.lag_s
    reservations: dict[str, list[dict[str, Any]]] = {}
    for machine in machines:
        if all(_fits(machine, one, then) for one in filters):
            reservations.setdefault(machine.reservation, []).append(ec2.shown(machine, max(then, machine.launched_at)))
    return {
        "Reservations": [
            {"ReservationId": identity, "OwnerId": ACCOUNT, "Instances": instances}
            for identity, instances in reservations.items()
        ],
        "NextToken": following,
    }


def _fits(machine: Machine, one: dict[str, Any], now: float) -> bool:
    name, values = one["Name"], one.get("Values") or []
    if name == "instance-id":
        return machine.id in values
    if name == "iam-instance-profile.arn":
        return machine.profile in values
    if name == "instance-state-name":
        return machine.state(now) in values
    if name == "tag-key":
        return any(fnmatchcase(key, value) for key in machine.tags for value in values)
    mark = machine.tags.get(name.removeprefix("tag:"))
    return mark is not None and any(mark == value or fnmatchcase(mark, value) for value in values)
