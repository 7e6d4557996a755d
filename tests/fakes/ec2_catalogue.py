"""What there is in a region of the fake EC2 before anything is launched: zones, types, images, templates, groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Kind:
    """An instance type."""

    name: str
    architecture: str = "x86_64"
    cluster: bool = True
    """Cluster placement groups take it; T types they do not."""
    gpus: int = 0
    vcpus: int = 4

    def shown(self) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "InstanceType": self.name,
            "ProcessorInfo": {"SupportedArchitectures": [self.architecture]},
            "PlacementGroupInfo": {
                "SupportedStrategies": ["partition", "spread", *(["cluster"] if self.cluster else [])]
            },
            "VCpuInfo": {"DefaultVCpus": self.vcpus},
        }
        if self.gpus:
            entry["GpuInfo"] = {"Gpus": [{"Count": self.gpus, "Manufacturer": "NVIDIA"}]}
        return entry


KINDS = (
    Kind("g5.xlarge", gpus=1),
    Kind("g5.12xlarge", gpus=4, vcpus=48),
    Kind("g4dn.xlarge", gpus=1),
    Kind("p3.2xlarge", gpus=1, vcpus=8),
    Kind("p4d.24xlarge", gpus=8, vcpus=96),
    Kind("g4dn.metal", gpus=8, vcpus=96),
    Kind("c7i.xlarge"),
    Kind("c7g.xlarge", architecture="arm64"),
    Kind("t3.medium", cluster=False, vcpus=2),
)


@dataclass(frozen=True)
class Zone:
    """As DescribeAvailabilityZones shows it."""

    name: str
    kind: str = "availability-zone"
    state: str = "available"
    opt_in: str = "opt-in-not-required"

    def fits(self, filters: dict[str, list[str]]) -> bool:
        shown = {"zone-type": self.kind, "state": self.state, "opt-in-status": self.opt_in}
        return all(shown[name] in values for name, values in filters.items())

    def shown(self) -> dict[str, str]:
        return {"ZoneName": self.name, "ZoneType": self.kind, "State": self.state, "OptInStatus": self.opt_in}


@dataclass
class Template:
    """A launch template with one version that matters."""

    version: str
    data: dict[str, Any]


@dataclass
class Catalogue:
    """A region. Tests change it at will."""

    zones: tuple[str, ...]
    subnets: dict[str, str]
    """Subnet to its zone."""
    groups: set[str]
    """Names of cluster placement groups. A group lives in the zone of its first instance."""
    security_groups: set[str]
    templates: dict[str, Template]
    profiles: set[str]
    """ARNs of instance profiles."""
    images: dict[str, tuple[str, int]]
    """Image to root device (by OS: /dev/xvda or /dev/sda1) and the GB of its snapshot."""
    kinds: dict[str, Kind] = field(default_factory=lambda: {kind.name: kind for kind in KINDS})
    not_offered: set[tuple[str, str]] = field(default_factory=set)
    """Type and zone."""
    further: tuple[Zone, ...] = ()
    """Zones that EC2 names beside `zones`: local ones, or such as have an outage."""

    def described(self, filters: dict[str, list[str]]) -> list[dict[str, str]]:
        every = [*map(Zone, self.zones), *self.further]
        return [zone.shown() for zone in every if zone.fits(filters)]
