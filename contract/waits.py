"""A job that waits for capacity: what the state "Wait for capacity" leaves in the table, for the launcher's next tries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityWait:
    """One waiting state of the Train machine. Its token is dead once the state is left, whatever this item still says."""

    job: str
    attempt: int
    token: str
    since: float
    """When the attempt was first asked for capacity, UTC epoch seconds."""
    until: float
    """When the hours of `max_wait_hours` are over, UTC epoch seconds: no walk begins later."""
    next_try_at: float
    """UTC epoch seconds."""
    tries: int = 0
    """Walks over the ladder since the job waits."""
    trouble: str = ""
    """Why the last try did not get through the ladder; empty where every rung answered."""
    troubles: int = 0
    """How many tries in a row did not get through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Who tries for all jobs that wait: one invocation at a time, so that its pace is the pace of all."""

    held_by: str
    held_until: float
    """UTC epoch seconds: the time-out of the function that holds it."""
