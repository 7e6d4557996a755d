"""What a job asks of its machines before and beside its training, and what is kept of a machine that is not healthy."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from contract.codec import UNWRITTEN


class HealthCheck(str, Enum):
    """How thoroughly nodes check their machine before a training."""

    QUICK = "quick"
    """What the machine and its kernel tell within seconds."""
    DEEP = "deep"
    """That, and an all-reduce between the nodes, just before the training."""
    OFF = "off"
    """Not at all, nor once the command has failed."""

    @classmethod
    def of_later_version(cls) -> HealthCheck:
        """It measures nothing, and still tells a fault of a machine from one of the code."""
        return cls.QUICK


NETWORK_SHARE = 0.2
"""The least part of its network's rate that a deep check wants of an all-reduce. Healthy machines reach 0.6 to 0.9 with NCCL over EFA; the
rest is room for other sizes, other algorithms and older libraries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnhealthyNode:
    """A node because of whose machine an attempt ended: for the person who tells AWS of it, and for the launcher, which tries its zone
    last."""

    attempt: int
    rank: int
    instance: str
    region: str
    zone: str
    instance_type: str
    why: str
    """In words for a person, by the node itself: nothing is decided by them."""
    role: str = field(default="", metadata=UNWRITTEN)
    """Its role and its place there, as in `ps 0`; empty in a job without roles."""
