"""Placement groups of a region, which moto lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from localaws.model import ACCOUNT, Refused

OPERATIONS = ("CreatePlacementGroup", "DescribePlacementGroups", "DeletePlacementGroup")
MOST = 500


class Groups:
    """`used` says whether a group has an instance that is not terminated."""

    def __init__(self, region: str, name: Callable[[str], str], used: Callable[[str], bool]) -> None:
        self._region, self._name, self._used = region, name, used
        self._found: dict[str, dict[str, Any]] = {}

    def strategy(self, name: str) -> str | None:
        return self._found[name]["Strategy"] if name in self._found else None

    def answer(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if operation == "DescribePlacementGroups":
            return self._describe(params)
        name = params["GroupName"]
        if operation == "CreatePlacementGroup":
            return {"PlacementGroup": self._create(name, params)}
        self._known(name)
        if self._used(name):
            raise Refused(
                "InvalidPlacementGroup.InUse", f"The placement group '{name}' is in use and may not be deleted."
            )
        del self._found[name]
        return {}

    def _create(self, name: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if name in self._found:
            raise Refused("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
        if len(self._found) >= MOST:
            raise Refused("PlacementGroupLimitExceeded", f"The maximum number of placement groups ({MOST}) is reached.")
        self._found[name] = {
            "GroupName": name,
            "State": "available",
            "Strategy": params.get("Strategy", "cluster"),
            "GroupId": self._name("pg"),
            "GroupArn": f"arn:aws:ec2:{self._region}:{ACCOUNT}:placement-group/{name}",
            "Tags": [tag for one in params.get("TagSpecifications", []) for tag in one["Tags"]],
        }
        return self._found[name]

    def _describe(self, params: Mapping[str, Any]) -> dict[str, Any]:
        named = [self._known(name) for name in params.get("GroupNames", [])] or list(self._found.values())
        filters = {one["Name"]: one["Values"] for one in params.get("Filters", [])}
        return {"PlacementGroups": [group for group in named if _passes(group, filters)]}

    def _known(self, name: str) -> dict[str, Any]:
        if name not in self._found:
            raise Refused("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
        return self._found[name]


def _passes(group: Mapping[str, Any], filters: Mapping[str, list[str]]) -> bool:
    values = {"group-name": group["GroupName"], "strategy": group["Strategy"], "state": group["State"]}
    values |= {f"tag:{tag['Key']}": tag["Value"] for tag in group["Tags"]}
    return all(values.get(name) in wanted for name, wanted in filters.items())
