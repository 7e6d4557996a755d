"""Placement groups, which moto lacks."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response

if TYPE_CHECKING:
    from localaws.server import LocalAws

_numbers = itertools.count(1)


@dataclass
class PlacementGroup:
    """One group, with the fields of EC2's answer."""

    name: str
    strategy: str
    region: str
    account: str
    tags: dict[str, str] = field(default_factory=dict)
    number: int = field(default_factory=lambda: next(_numbers))

    def described(self) -> dict[str, Any]:
        return {
            "GroupName": self.name,
            "State": "available",
            "Strategy": self.strategy,
            "GroupId": f"pg-{self.number:017x}",
            "GroupArn": f"arn:aws:ec2:{self.region}:{self.account}:placement-group/{self.name}",
            "Tags": [{"Key": key, "Value": value} for key, value in self.tags.items()],
        }


def groups(backend: Any) -> dict[str, PlacementGroup]:
    """Returns the groups of one account and region, kept in moto's back end so that a reset deletes them."""
    found: dict[str, PlacementGroup] = backend.__dict__.setdefault("placement_groups", {})
    return found


def create(backend: Any, name: str, strategy: str, tags: dict[str, str]) -> PlacementGroup:
    """Creates a group; raises InvalidPlacementGroup.Duplicate, InvalidParameterValue or PlacementGroupLimitExceeded as EC2 does."""
    if name in groups(backend):
        raise EC2ClientError("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
    if strategy not in {"cluster", "spread", "partition"}:
        raise EC2ClientError("InvalidParameterValue", f"Value ({strategy}) for parameter strategy is invalid.")
    if len(groups(backend)) >= 500:
        raise EC2ClientError("PlacementGroupLimitExceeded", "The maximum number of placement groups (500) is reached.")
    group = groups(backend)[name] = PlacementGroup(name, strategy, backend.region_name, backend.account_id, tags)
    return group


def delete(backend: Any, name: str, *, in_use: bool) -> None:
    """Deletes a group; raises InvalidPlacementGroup.Unknown, or .InUse while it has instances that are not terminated."""
    if name not in groups(backend):
        raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    if in_use:
        raise EC2ClientError(
            "InvalidPlacementGroup.InUse", f"The placement group '{name}' is in use and may not be deleted."
        )
    del groups(backend)[name]


def _create_placement_group(self: Any) -> Any:
    self.error_on_dryrun()
    tags = self._parse_tag_specification("placement-group").get("placement-group", {})
    name, strategy = self._get_param("GroupName"), self._get_param("Strategy", "cluster")
    return ActionResult({"PlacementGroup": create(self.ec2_backend, name, strategy, tags).described()})


def _describe_placement_groups(self: Any) -> Any:
    known, wanted = groups(self.ec2_backend), self._get_param("GroupNames", [])
    for name in wanted:
        if name not in known:
            raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    filters = self._filters_from_querystring()
    found = [group for group in known.values() if (not wanted or group.name in wanted) and _passes(group, filters)]
    return ActionResult({"PlacementGroups": [group.described() for group in found]})


def _passes(group: PlacementGroup, filters: dict[str, Any]) -> bool:
    values = {"group-name": group.name, "strategy": group.strategy, "state": "available"}
    values |= {f"tag:{key}": value for key, value in group.tags.items()}
    return all(values.get(name) in wanted for name, wanted in filters.items())


def install(aws: LocalAws, used: Callable[[str, str], bool]) -> None:
    """Adds the three actions to EC2. `used` says whether a group (region, name) has an instance that is not terminated."""

    def _delete_placement_group(self: Any) -> Any:
        self.error_on_dryrun()
        backend, name = self.ec2_backend, self._get_param("GroupName")
        delete(backend, name, in_use=used(backend.region_name, name))
        return EmptyResult()

    aws.patch(EC2Response, "create_placement_group", _create_placement_group)
    aws.patch(EC2Response, "describe_placement_groups", _describe_placement_groups)
    aws.patch(EC2Response, "delete_placement_group", _delete_placement_group)
