"""DescribeAvailabilityZones as an account has it that opted in to a local zone: not every zone that EC2 names takes every instance."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.ec2.responses.availability_zones_and_regions import AvailabilityZonesAndRegions

from localaws.services.ec2_machines import Aws

FILTERS = {
    "group-name": "GroupName",
    "opt-in-status": "OptInStatus",
    "region-name": "RegionName",
    "state": "State",
    "zone-id": "ZoneId",
    "zone-name": "ZoneName",
    "zone-type": "ZoneType",
}
"""Those of EC2 to fields of its answer; EC2 has three more, about messages and parents. moto lets one pass that it does not know."""


def install(aws: Aws) -> None:
    aws.patch(AvailabilityZonesAndRegions, "describe_availability_zones", _describe)


def _describe(self: Any) -> Any:
    self.error_on_dryrun()
    filters = self._filters_from_querystring()
    if unknown := sorted(filters.keys() - FILTERS.keys()):
        raise EC2ClientError("InvalidParameterValue", f"The filter '{unknown[0]}' is invalid")
    everywhere = self._get_bool_param("AllAvailabilityZones", False)
    named, ids = self._get_param("ZoneNames", []), self._get_param("ZoneIds", [])
    found = [
        zone
        for zone in zones(self.region)
        if (everywhere or zone["OptInStatus"] != "not-opted-in")
        and (not named or zone["ZoneName"] in named)
        and (not ids or zone["ZoneId"] in ids)
        and all(zone[FILTERS[name]] in values for name, values in filters.items())
    ]
    return ActionResult({"AvailabilityZones": found})


def zones(region: str) -> list[dict[str, str]]:
    """moto's own zones, a local zone that the account opted in to, and a Wavelength zone that it did not."""
    own = [_zone(region, one.name, one.zone_id, region) for one in RegionsAndZonesBackend.zones.get(region, [])]
    local, wavelength = f"{region}-loc-1", f"{region}-wl1-loc-wlz1"
    return [
        _zone(region, f"{local}a", f"{local}-az1", local, "local-zone", "opted-in"),
        *own,
        _zone(region, f"{wavelength}-1", f"{wavelength}-az1", wavelength, "wavelength-zone", "not-opted-in"),
    ]


def _zone(
    region: str,
    name: str,
    identity: str,
    group: str,
    kind: str = "availability-zone",
    opted: str = "opt-in-not-required",
) -> dict[str, str]:
    return {
        "RegionName": region,
        "ZoneName": name,
        "ZoneId": identity,
        "ZoneType": kind,
        "GroupName": group,
        "NetworkBorderGroup": group,
        "OptInStatus": opted,
        "State": "available",
    }
