"""Networks and file systems that the account has already, as a deploy asks the region check about them."""

from __future__ import annotations

from dataclasses import dataclass, field

from contract.codec import UNWRITTEN
from contract.mounts import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedNetwork:
    """A VPC of the settings, with the subnets in which nodes run."""

    region: str
    vpc: str
    subnets: dict[str, str]
    """Availability zone to the id of its subnet."""
    most_nodes: int
    """How many nodes of a job may run in one subnet."""
    home: bool
    """Whether its region is the home region, whose table and log all nodes write to."""
    workbench: bool = field(default=False, metadata=UNWRITTEN)
    """Whether nodes answer Session Manager."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFileSystem:
    """A file system of the settings that nodes of its region are to reach."""

    region: str
    name: str
    """As requests name it: `efs:home`."""
    kind: Kind
    id: str
    vpc: str
    """The VPC of the region's nodes; empty for one that the deployment made."""
