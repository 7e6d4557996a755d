"""What a walk for a job that waits for capacity has from the turn that it is a part of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from launcher.prices import Kind, Priced


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiter:
    """What is different in a walk for a job that waits for capacity: it takes its turn among many, so it never asks in haste."""

    until: float
    """When the job has waited long enough, UTC epoch seconds."""
    before_call: Callable[[str, int], None]
    """Called before each launch call with its region and how many instances it asks for; sleeps as long as the call has to wait."""
    silent: set[str]
    """Regions that did not answer a moment ago, and are not asked again for now: other jobs wait behind this one."""
    prices: dict[Kind, Priced] = field(default_factory=dict)
    """Spot prices that were asked for in this turn."""
    unpriced: set[str] = field(default_factory=set)
    """Regions that did not answer the question for prices a moment ago: their places keep their order for now."""
