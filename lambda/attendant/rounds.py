"""Looks that belong together: when their round began, and whether one of them comes late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

OVERDUE_S = 90.0
"""An attempt whose look begins this long after its round is overdue: a minute for the clock, and half of one for those before it."""

AGAIN_S = 900.0
"""Between two lines about the same job, at least; a longer interval of the job is waited for."""
LATE_S = 5.0
"""A pass may begin this much later after the one before than was measured, and ages have whole seconds: a line twice rather than none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookRound:
    """What all looks of a pass share, in whichever invocation; or those that an event asks for."""

    began: float
    """UTC epoch seconds."""
    gaps_s: tuple[float, ...]
    """Seconds between the passes over all jobs, from this one backwards."""

    @staticmethod
    def told(event: Mapping[str, Any]) -> LookRound:
        """The round of which an event of ours tells."""
        return LookRound(began=event["began"], gaps_s=tuple(event["gaps_s"]))

    @property
    def telling(self) -> dict[str, object]:
        return {"began": self.began, "gaps_s": self.gaps_s}

    def overdue(self, now: float) -> bool:
        return now > self.began + OVERDUE_S
