"""The order of an attempt: the attendant creates it once in the table of state, and gives each node a copy (docs/reference/state.md)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class OrderKind(str, Enum):
    """What every agent does when it reads the order."""

    CHECKPOINT_AND_STOP = "checkpoint-and-stop"
    """Sends SIGTERM to the training process, waits, commits and ends."""
    STOP = "stop"
    """Ends without waiting for a checkpoint."""
    DUMP = "dump"
    """Writes stacks of the training's processes and the state of its devices to the log; then does as CHECKPOINT_AND_STOP."""

    @classmethod
    def of_later_version(cls) -> OrderKind:
        """Every order ends the training; this one saves it first."""
        return cls.CHECKPOINT_AND_STOP


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order for all nodes of an attempt, with its reason and time limit."""

    kind: OrderKind
    error: str
    """The error name (contract.errors) with which the attempt ends because of this order."""
    reason: str
    by: int
    """UTC epoch seconds by which the node ends."""
    author: str
    """Who made the order: `attendant` or `rank <n>`, whose report asked for it."""
