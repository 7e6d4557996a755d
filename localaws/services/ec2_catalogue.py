"""What a launch needs from a region: types, subnets, groups, templates, profiles, images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Card:
    """A network card of an instance type."""

    index: int = 0
    most: int = 4
    """How many interfaces it takes."""
    types: tuple[str, ...] = ("interface",)
    """Types of interfaces that it takes."""


@dataclass(frozen=True, slots=True)
class Kind:
    """An instance type, as far as a launch depends on it."""

    name: str
    architectures: tuple[str, ...] = ("x86_64",)
    strategies: tuple[str, ...] = ("cluster", "partition", "spread")
    """Strategies of placement groups that accept it. T types cannot be in a cluster group."""
    vcpus: int = 4
    cards: tuple[Card, ...] = (Card(),)
    efas: int = 0
    """How many EFA interfaces it takes; 0 without EFA."""


@dataclass(frozen=True, slots=True)
class Image:
    """A machine image, as far as a launch depends on it."""

    root_device: str
    """Name of the root device, by operating system: /dev/xvda or /dev/sda1."""
    snapshot_gb: int
    """The smallest size of its root volume."""
    architecture: str = "x86_64"


class Catalogue(Protocol):
    """One region. Something that does not exist is None, or empty."""

    def kind(self, name: str, /) -> Kind | None: ...

    def zone(self, subnet: str, /) -> str | None: ...

    def network(self, identity: str, /) -> str | None:
        """Returns the VPC of a subnet or a security group."""

    def strategy(self, placement_group: str, /) -> str | None: ...

    def profile(self, named: Mapping[str, str], /) -> str:
        """Returns the ARN of the instance profile with this Name or Arn."""

    def template(self, named: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Returns the data of a launch template's version. Raises Refused if the template or the version does not exist."""

    def image(self, identity: str, /) -> Image | None: ...

    def offers(self, kind: str, zone: str, /) -> bool: ...
