"""Spaces launch calls, so that those for waiting jobs leave most of EC2's bucket of RunInstances to new jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


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

    def wait(self, region: str) -> None:
        """Sleeps until the region may be called, and takes that call."""
        last = self._called_at.get(region, self._began[0])
        if (pause := last + self.every_s - self.now()) > 0:
            self.sleep(pause)
        self._called_at[region] = self.now()
