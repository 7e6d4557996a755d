"""Remembers which regions, and which services that all jobs need, do not answer, so that one silence does not hold up all work."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnection

T = TypeVar("T")
OPEN_S = 40.0
"""How long a region is left alone after it gave no answer: the next tick of the clock, 60 s after the one before, asks it again."""
LATE_S = 4.0
"""No caller asks a region for which another has waited this long. So callers side by side wait in vain at most this much longer than
one alone."""


class Silent(Exception):
    """The region gave no answer a moment ago, or keeps another waiting, and was not asked."""


@dataclass
class Region:
    """What is known of a region's answers; times are UTC epoch seconds."""

    silent_at: float | None = None
    """When it gave no answer; None once it has answered."""
    waiting: dict[object, float] = field(default_factory=dict)
    """Those who wait for its answer, and since when."""

    def why_not(self, now: float) -> str:
        """Why it is not asked now; empty where it is. After a silence one caller asks, and the others get Silent until it has an answer."""
        if self.silent_at is not None and 0 <= now - self.silent_at < OPEN_S:
            return f"gave no answer {now - self.silent_at:.0f} s ago, and is not asked for {OPEN_S:.0f} s"
        waited_s = now - min(self.waiting.values(), default=now)
        if self.waiting and (self.silent_at is not None or waited_s >= LATE_S):
            return f"has kept another call waiting for {waited_s:.0f} s"
        return ""


regions = defaultdict[str, Region](Region)
"""Kept as long as Lambda keeps the process."""
_lock = threading.Lock()


def ask_region(name: str, ask: Callable[[], T]) -> T:
    """Asks the region. Raises Silent without asking where it gave no answer lately; errors that the region answers pass through."""
    with _lock:
        region, me = regions[name], object()
        if why := region.why_not(time.time()):
            raise Silent(f"{name} {why}")
        region.waiting[me] = time.time()
    try:
        answer = ask()
    except (NoConnection, HTTPClientError):
        region.silent_at = time.time()
        raise
    except ClientError:
        region.silent_at = None
        raise
    finally:
        with _lock:
            del region.waiting[me]
    region.silent_at = None
    return answer
