"""Spaces launch calls, so that those for waiting jobs leave most of EC2's buckets of RunInstances to new jobs.

EC2 has two buckets a region: one of calls (five, two more a second) and one of instances (1,000, two more a second). It does not say
whether a launch without capacity takes from the second; it counts here as if it did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

INSTANCES = 2
"""As many instances may be asked for in the time between two calls, on the average: half of what EC2 gives back meanwhile, where a call
is made every two seconds."""
LONGEST_S = 30.0
"""The longest pause that a call has for its instances: with up to 60, all waiting jobs together stay within their half."""


@dataclass(frozen=True, slots=True)
class LaunchPace:
    """One invocation's. It begins with a pause: the invocation before may have called a moment ago."""

    every_s: float
    """Between two calls in the same region."""
    now: Callable[[], float]
    sleep: Callable[[float], None]
    _called_at: dict[str, float] = field(default_factory=dict)
    _began: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._began.append(self.now())

    def wait(self, region: str, instances: int) -> None:
        """Sleeps until so many instances may be asked for in the region, and takes that call."""
        last = self._called_at.get(region, self._began[0])
        apart = max(self.every_s, min(LONGEST_S, self.every_s * instances / INSTANCES))
        if (pause := last + apart - self.now()) > 0:
            self.sleep(pause)
        self._called_at[region] = self.now()
