"""Which job has which security group of a region: an item of the table of state that the launcher alone reads and writes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A security group that a job has taken for an attempt."""

    group: str
    job: str
    attempt: int
    until: float
    """UTC epoch seconds from which on no launch of the attempt can begin, even if it is never closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenGroups:
    """All of a region, in one item: of two launches that take the same group at once, one fails its conditional write."""

    taken: tuple[Taken, ...] = ()
