"""`attempts/<n>/order.json`: one order an attempt, created once, read by every agent."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class OrderKind(str, Enum):
    """What the agents shall do."""

    CHECKPOINT_AND_STOP = "checkpoint-and-stop"
    """SIGTERM to the training process, wait, commit, end."""
    STOP = "stop"
    """End without waiting for a checkpoint."""
    DUMP = "dump"
    """Write stacks to the log, then stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Why and by when, for agents and for the person who reads it later."""

    kind: OrderKind
    error: str
    """The error name (contract.errors) with which the attempt ends because of this order."""
    reason: str
    by: int
    """UTC epoch seconds: the node is gone by then."""
    author: str
    """`attendant` or `rank <n>`."""
