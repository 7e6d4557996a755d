"""A network that the account has already, as a deploy asks the region check about it."""

from __future__ import annotations

from dataclasses import dataclass


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
