"""The trainers of one attempt: in lockstep, so that none goes further than the slowest, and all stand still once one is gone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from benchmarks.spot.assumed import Assumed


@dataclass
class Training:
    """One step is one second of all nodes. Times are those of the clock."""

    assumed: Assumed
    nodes: int
    restored: int = 0
    """The step from which it goes on."""
    began: float = math.inf
    stopped: float = math.inf
    _ready: set[int] = field(default_factory=set)

    def ready(self, rank: int, step: int, now: float) -> bool:
        """A rank has begun; whether it was the last one, and all train from now on."""
        self.restored = step
        self._ready.add(rank)
        if len(self._ready) < self.nodes or self.trains or self.stopped < math.inf:
            return False
        self.began = now
        return True

    @property
    def trains(self) -> bool:
        return self.began < self.stopped == math.inf

    def stop(self, now: float) -> None:
        """A rank stops, or is gone."""
        self.stopped = min(self.stopped, now)

    def trained_s(self, now: float) -> float:
        """Seconds of training so far; a save every `save_every_s` takes its pause."""
        lasted = max(0.0, min(now, self.stopped) - self.began)
        saves = int(lasted // self.assumed.save_every_s)
        if not saves:
            return lasted
        since = lasted - saves * self.assumed.save_every_s
        return lasted - (saves - 1) * self.assumed.pause_s - min(self.assumed.pause_s, since)

    def step(self, now: float) -> int:
        return self.restored + int(self.trained_s(now))
