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
    """What the looks of one pass share, in whichever invocation they are; or the looks that one event causes."""

    began: float
    """UTC epoch seconds."""
    gaps_s: tuple[float, ...]
    """Seconds between the passes over all jobs, from this one backwards."""
    is_pass: bool = False
    """Whether the clock began it. The looks of a pass have to come in time; an event's may fail, because the next pass looks again."""
    is_urgent: bool = False
    """Whether urgent reports began it. EC2 is then asked only about nodes that failed, which a lost one may explain; whatever else EC2
    knows, the next pass learns. So a region that does not answer delays no verdict on jobs whose nodes have ended."""

    @staticmethod
    def read_event(event: Mapping[str, Any]) -> LookRound:
        """Reads the pass of which `event_fields` were written into an event."""
        return LookRound(began=event["began"], gaps_s=tuple(event["gaps_s"]), is_pass=True)

    @property
    def event_fields(self) -> dict[str, object]:
        """The fields of an event by which another invocation goes on with the round."""
        return {"began": self.began, "gaps_s": self.gaps_s}

    def is_overdue(self, now: float) -> bool:
        return now > self.began + OVERDUE_S
