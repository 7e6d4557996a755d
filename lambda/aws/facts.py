"""What AWS says, as plain values that policies can take."""

from __future__ import annotations

from dataclasses import dataclass

from contract.reports import NodeReport

ENDING = frozenset({"shutting-down", "terminated"})
"""States after which an instance neither runs nor costs, and from which it never returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One line of DescribeInstances."""

    id: str
    region: str
    state: str
    rank: int
    """The launch index."""
    address: str
    launched_at: float
    instance_type: str = ""
    zone: str = ""
    job: str = ""
    attempt: int = 0
    why: str = ""
    """EC2's own word on the last change of state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """What Admit has to know of a type."""

    name: str
    architectures: tuple[str, ...]
    cluster: bool
    """Cluster placement groups take it."""
    gpus: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    """An S3 object's head."""

    bucket: str
    key: str
    size: int
    version: str = ""
    archived: bool = False
    """In a class of storage from which it has to be restored before it can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A node's newest report and its age in seconds, both times by S3's clock."""

    report: NodeReport
    age_s: float
