"""DescribeAvailabilityZones: returns zones by filters, names and the account's opt-ins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from localaws.model import Refused

FILTERS = {
    "group-name": "GroupName",
    "opt-in-status": "OptInStatus",
    "region-name": "RegionName",
    "state": "State",
    "zone-id": "ZoneId",
    "zone-name": "ZoneName",
    "zone-type": "ZoneType",
}
"""Fields of the answer by filter; EC2 has three more filters, about messages and parents. moto ignores unknown filters."""


def described(zones: Iterable[Mapping[str, str]], params: Mapping[str, Any]) -> list[Mapping[str, str]]:
    """Returns the zones of a region that DescribeAvailabilityZones is asked for. Raises Refused."""
    filters = {one["Name"]: one["Values"] for one in params.get("Filters", [])}
    if unknown := sorted(filters.keys() - FILTERS.keys()):
        raise Refused("InvalidParameterValue", f"The filter '{unknown[0]}' is invalid")
    named, ids = params.get("ZoneNames", []), params.get("ZoneIds", [])
    return [
        zone
        for zone in zones
        if (params.get("AllAvailabilityZones") or zone["OptInStatus"] != "not-opted-in")
        and (not named or zone["ZoneName"] in named)
        and (not ids or zone["ZoneId"] in ids)
        and all(zone[FILTERS[name]] in values for name, values in filters.items())
    ]


def zone_shown(region: str, **fields: str) -> dict[str, str]:
    """Returns a zone as DescribeAvailabilityZones shows it: open to every account, except for the given fields."""
    usual = {
        "RegionName": region,
        "ZoneId": f"{fields['ZoneName']}-id",
        "ZoneType": "availability-zone",
        "GroupName": region,
        "OptInStatus": "opt-in-not-required",
        "State": "available",
    } | fields
    return usual | {"NetworkBorderGroup": usual["GroupName"]}
