"""What a Region stack publishes about itself: everything a launch in that region needs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """One availability zone with one private subnet of ours."""

    name: str
    subnet: str
    placement_groups: tuple[str, ...] = ()
    """Names of cluster placement groups; two jobs in one group find less capacity than in two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A region of the deployment. JSON in the SSM parameter `names.region_parameter`.

    A region that serves only the grid has no zones and nothing else that a launch needs.
    """

    region: str
    bucket: str
    """Holds checkpoints and artifacts of attempts in this region."""
    security_groups: tuple[str, ...] = ()
    """Each lets nodes reach the nodes in itself and no others; the launcher gives each job one of its own as long as there are enough."""
    launch_template: str = ""
    launch_template_version: str = ""
    """A version number, because `$Default` stays 1 under CloudFormation."""
    volume_key: str = ""
    """ARN of the key of this region under which nodes' disks are encrypted; empty for the account's own choice."""
    zones: tuple[Zone, ...] = ()
    security_group: str = ""
    """The first of `security_groups`, which versions before had for all nodes: they wrote no other, and read no other during a deploy."""

    def __post_init__(self) -> None:
        groups = self.security_groups or ((self.security_group,) if self.security_group else ())
        object.__setattr__(self, "security_groups", groups)
        object.__setattr__(self, "security_group", groups[0] if groups else "")
