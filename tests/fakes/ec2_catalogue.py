"""What there is in a region of the fake EC2 before anything is launched: zones, types, images, templates, groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from localaws.model import Refused
from localaws.services import ec2_catalogue
from localaws.services.ec2_catalogue import Card, Image
from localaws.services.ec2_interfaces import TYPES
from localaws.services.ec2_zones import zone_shown

WITHOUT_CLUSTER = ("partition", "spread")


@dataclass(frozen=True, slots=True)
class Kind(ec2_catalogue.Kind):
    """An instance type, and its accelerators."""

    gpu: str = ""
    """Name of its GPUs, empty for none."""
    neuron: str = ""
    """Name of its Neuron devices, empty for none."""
    count: int = 0
    """How many accelerators it has."""
    cores: int = 2
    """Of each Neuron device."""

    def shown(self) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "InstanceType": self.name,
            "ProcessorInfo": {"SupportedArchitectures": self.architectures},
            "PlacementGroupInfo": {"SupportedStrategies": self.strategies},
            "VCpuInfo": {"DefaultVCpus": self.vcpus},
            "NetworkInfo": self._network(),
        }
        if self.gpu:
            entry["GpuInfo"] = {"Gpus": [{"Name": self.gpu, "Count": self.count, "Manufacturer": "NVIDIA"}]}
        if self.neuron:
            device = {"Name": self.neuron, "Count": self.count, "CoreInfo": {"Count": self.cores}}
            entry["NeuronInfo"] = {"NeuronDevices": [device]}
        return entry

    def _network(self) -> dict[str, Any]:
        cards = [
            {"NetworkCardIndex": card.index, "MaximumNetworkInterfaces": card.most, "InterfaceTypes": card.types}
            for card in self.cards
        ]
        shown = {"EfaSupported": self.efas > 0, "MaximumNetworkCards": len(cards), "NetworkCards": cards}
        return {**shown, **({"EfaInfo": {"MaximumEfaInterfaces": self.efas}} if self.efas else {})}


def cards(number: int, most: int) -> tuple[Card, ...]:
    """Network cards that take every type of interface."""
    return tuple(Card(index, most, TYPES) for index in range(number))


# As DescribeInstanceTypes describes them in November 2026, but for what nobody here reads.
KINDS = (
    Kind("g5.xlarge", gpu="A10G", count=1),
    Kind("g5.12xlarge", gpu="A10G", count=4, vcpus=48, cards=cards(1, 15), efas=1),
    Kind("g4dn.xlarge", gpu="T4", count=1),
    Kind("g4ad.xlarge", gpu="Radeon Pro V520", count=1),
    Kind("g6.8xlarge", gpu="L4", count=1, vcpus=32, cards=cards(1, 8), efas=1),
    Kind("g6.xlarge", gpu="L4", count=1),
    Kind("g6f.large", gpu="L4", count=0, vcpus=2),
    Kind("p3.2xlarge", gpu="V100", count=1, vcpus=8),
    Kind("p4d.24xlarge", gpu="A100", count=8, vcpus=96, cards=cards(4, 15), efas=4),
    Kind("p4de.24xlarge", gpu="A100", count=8, vcpus=96, cards=cards(4, 15), efas=4),
    Kind("p5.48xlarge", gpu="H100", count=8, vcpus=192, cards=cards(32, 2), efas=32),
    Kind("p6-b300.48xlarge", gpu="B300", count=8, vcpus=192, cards=(Card(), *cards(17, 4)[1:]), efas=16),
    Kind("g4dn.metal", gpu="T4", count=8, vcpus=96, cards=cards(1, 15), efas=1),
    Kind("trn1.2xlarge", neuron="Trainium", count=1, vcpus=8),
    Kind("trn1.32xlarge", neuron="Trainium", count=16, vcpus=128, cards=cards(8, 5), efas=8),
    Kind("inf2.xlarge", neuron="Inferentia2", count=1),
    Kind("c7i.xlarge"),
    Kind("c7g.xlarge", architectures=("arm64",)),
    Kind("t4g.large", architectures=("arm64",), strategies=WITHOUT_CLUSTER, vcpus=2),
    Kind("t3.medium", strategies=WITHOUT_CLUSTER, vcpus=2),
)


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
    """Image to root device and the GB of its snapshot."""
    kinds: dict[str, Kind] = field(default_factory=lambda: {kind.name: kind for kind in KINDS})
    image_owners: dict[str, str] = field(default_factory=dict)
    """Image to its owner's account or alias; all others are AWS's."""
    architectures: dict[str, str] = field(default_factory=dict)
    """Of images that are not for x86_64."""
    further_devices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Image to the devices, beside the root, for which it has a snapshot."""
    not_offered: set[tuple[str, str]] = field(default_factory=set)
    """Type and zone."""
    further: tuple[dict[str, str], ...] = ()
    """Zones that EC2 names beside `zones`: local ones, or such as have an outage (`ec2_zones.zone_shown`)."""

    def every_zone(self) -> list[dict[str, str]]:
        return [*(zone_shown(name[:-1], ZoneName=name) for name in self.zones), *self.further]

    def kind(self, name: str) -> Kind | None:
        return self.kinds.get(name)

    def zone(self, subnet: str) -> str | None:
        return self.subnets.get(subnet)

    def network(self, identity: str) -> str | None:
        return "vpc-1" if identity in self.security_groups | self.subnets.keys() else None

    def strategy(self, placement_group: str) -> str | None:
        return "cluster" if placement_group in self.groups else None

    def profile(self, named: Mapping[str, str]) -> str:
        return named["Arn"] if named.get("Arn") in self.profiles else ""

    def template(self, named: Mapping[str, Any]) -> Mapping[str, Any]:
        """`$Default` is version 1 for ever under CloudFormation: numbers only, here."""
        found = self.templates.get(named.get("LaunchTemplateId", ""))
        if found is None:
            raise Refused("InvalidLaunchTemplateId.NotFound", f"The specified launch template {named} does not exist.")
        if named.get("Version") != found.version:
            raise Refused("InvalidLaunchTemplateId.VersionNotFound", f"Could not find version {named.get('Version')}.")
        return found.data

    def image(self, identity: str) -> Image | None:
        if identity not in self.images:
            return None
        return Image(*self.images[identity], architecture=self.architectures.get(identity, "x86_64"))

    def offers(self, kind: str, zone: str) -> bool:
        return (kind, zone) not in self.not_offered
