"""What EC2's instances take from a region before anything is launched: types, subnets, groups, templates, profiles, images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Kind:
    """An instance type, as far as a launch depends on it."""

    name: str
    architectures: tuple[str, ...] = ("x86_64",)
    strategies: tuple[str, ...] = ("cluster", "partition", "spread")
    """Of the placement groups that take it. T types go into no cluster group."""
    vcpus: int = 4


@dataclass(frozen=True, slots=True)
class Image:
    """A machine image, as far as a launch depends on it."""

    root_device: str
    """By operating system: /dev/xvda or /dev/sda1."""
    snapshot_gb: int
    """The least size of a root volume of it."""
    architecture: str = "x86_64"


class Catalogue(Protocol):
    """One region. What is not there is None, or empty."""

    def kind(self, name: str, /) -> Kind | None: ...

    def zone(self, subnet: str, /) -> str | None: ...

    def has_security_group(self, identity: str, /) -> bool: ...

    def strategy(self, placement_group: str, /) -> str | None: ...

    def profile(self, named: Mapping[str, str], /) -> str:
        """ARN of the instance profile with this Name or Arn."""

    def template(self, named: Mapping[str, Any], /) -> Mapping[str, Any]:
        """The data of a launch template's version. Raises Refused where there is no such template, or no such version."""

    def image(self, identity: str, /) -> Image | None: ...

    def offers(self, kind: str, zone: str, /) -> bool: ...
