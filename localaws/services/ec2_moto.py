"""Reads from moto what launches need of a region: network, placement groups, launch templates, profiles, images, types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moto.ec2.models import ec2_backends
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES
from moto.iam import iam_backends

from localaws.model import ACCOUNT, Refused
from localaws.services.ec2_catalogue import Card, Image, Kind
from localaws.services.ec2_groups import Groups
from localaws.services.ec2_images import snapshot_gb
from localaws.services.ec2_zones import zone_shown


class MotoCatalogue:
    """One region."""

    def __init__(self, region: str, groups: Groups) -> None:
        self._region, self._groups, self._backend = region, groups, ec2_backends[ACCOUNT][region]

    def kind(self, name: str) -> Kind | None:
        found = INSTANCE_TYPES.get(name)
        if found is None:
            return None
        network = found["NetworkInfo"]
        return Kind(
            name,
            tuple(found["ProcessorInfo"]["SupportedArchitectures"]),
            tuple(found.get("PlacementGroupInfo", {}).get("SupportedStrategies", ())),
            found["VCpuInfo"]["DefaultVCpus"],
            tuple(
                Card(one["NetworkCardIndex"], one["MaximumNetworkInterfaces"], tuple(one["InterfaceTypes"]))
                for one in network["NetworkCards"]
            ),
            network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        )

    def zone(self, subnet: str) -> str | None:
        found = self._subnet(subnet)
        return str(found.availability_zone) if found else None

    def network(self, identity: str) -> str | None:
        found = self._subnet(identity) or self._backend.get_security_group_from_id(identity)
        return str(found.vpc_id) if found else None

    def _subnet(self, identity: str) -> Any:
        found = (subnets[identity] for subnets in self._backend.subnets.values() if identity in subnets)
        return next(found, None)

    def strategy(self, placement_group: str) -> str | None:
        return self._groups.strategy(placement_group)

    def profile(self, named: Mapping[str, str]) -> str:
        for profile in iam_backends[ACCOUNT]["aws"].instance_profiles.values():
            if named.get("Arn") in {None, profile.arn} and named.get("Name") in {None, profile.name}:
                return str(profile.arn)
        return ""

    def template(self, named: Mapping[str, Any]) -> Mapping[str, Any]:
        templates, identity = self._backend.launch_templates, named.get("LaunchTemplateId")
        if identity is None:
            identity = self._backend.launch_template_name_to_ids.get(named.get("LaunchTemplateName"))
        found = templates.get(identity)
        if found is None:
            raise Refused(
                "InvalidLaunchTemplateId.NotFound",
                f"The specified launch template, with template ID {identity}, does not exist.",
            )
        version = str(named.get("Version") or "$Default")
        if not version.startswith("$") and not (version.isdecimal() and 1 <= int(version) <= len(found.versions)):
            raise Refused(
                "InvalidLaunchTemplateId.VersionNotFound",
                f"Could not find launch template version {version} for {identity}.",
            )
        data: Mapping[str, Any] = found.get_version(version).data
        return data

    def image(self, identity: str) -> Image | None:
        found = self._backend.amis.get(identity)
        return Image(found.root_device_name, snapshot_gb(found), found.architecture) if found else None

    def offers(self, kind: str, zone: str) -> bool:
        offered = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(self._region, [])
        return any(one["InstanceType"] == kind and one["Location"] == zone for one in offered)


def zones(region: str) -> list[dict[str, str]]:
    """Returns moto's zones, a local zone that the account opted in to, and a Wavelength zone that it did not."""
    own = [
        zone_shown(region, ZoneName=one.name, ZoneId=one.zone_id)
        for one in RegionsAndZonesBackend.zones.get(region, [])
    ]
    local, wavelength = f"{region}-loc-1", f"{region}-wl1-loc-wlz1"
    opted, out = (
        {"GroupName": local, "OptInStatus": "opted-in"},
        {"GroupName": wavelength, "OptInStatus": "not-opted-in"},
    )
    return [
        zone_shown(region, ZoneName=f"{local}a", ZoneType="local-zone", **opted),
        *own,
        zone_shown(region, ZoneName=f"{wavelength}-1", ZoneType="wavelength-zone", **out),
    ]


def gpus_of(instance_type: str) -> int:
    """Returns how many whole NVIDIA GPUs a machine of the type has."""
    found = INSTANCE_TYPES.get(instance_type, {}).get("GpuInfo", {}).get("Gpus", [])
    return sum(int(one["Count"]) for one in found if one.get("Manufacturer") == "NVIDIA")


def role_of(profile: str) -> tuple[str, str]:
    """Returns name and ARN of an instance profile's role, by the profile's ARN; empty if it has none."""
    for one in iam_backends[ACCOUNT]["aws"].instance_profiles.values():
        if one.arn == profile and one.roles:
            return str(one.roles[0].name), str(one.roles[0].arn)
    return "", ""
