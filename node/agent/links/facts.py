"""What a node says of an all-reduce in which it took part: the facts by which agent.links.judging decides."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Reached(str, Enum):
    """How far a node came."""

    DONE = "done"
    STUCK = "stuck"
    """It was ready, and the all-reduce has not ended in time."""
    FAILED = "failed"
    """It was ready, and the all-reduce has ended with an error."""
    UNREADY = "unready"
    """It did not come to the all-reduce: no PyTorch, no device, a port that is taken."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one node knows of one all-reduce."""

    outcome: Reached
    gbps: float = 0.0
    """Bus bandwidth in Gbit/s, as nccl-tests define it; 0 unless it is done."""
    gpus: int = 0
    """Of the node, that took part; 0 where the CPU did."""
    network: str = ""
    """The network that NCCL has chosen and, of libfabric, the provider, in their words; empty where they told none."""
    words: str = ""
    """Why it is not done."""


@dataclass(frozen=True, kw_only=True)
class Arrived:
    """A node that came to the check."""

    address: str
    instance: str
    instance_type: str = ""
    """Empty where the node has not learnt it; all nodes of an attempt are of one type."""


def bus_gbps(size: int, seconds: float, ranks: int) -> float:
    """Of an all-reduce of so many bytes: what each rank's link carries, which no number of ranks changes."""
    return 2 * (ranks - 1) / ranks * size / seconds * 8 / 1e9
