"""One virtual clock for everything: calls cost time on it, sleeping is instant, and what is due happens in between."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

NESTED = 3
"""Depth to which due actions run inside of each other; deeper ones wait until the outer ones are done."""


class Killed(BaseException):
    """The process of a function is gone: no `except Exception` of the product sees it."""


class _Ends(threading.local):
    """Each thread's own."""

    def __init__(self) -> None:
        self.times: list[float] = []


@dataclass
class Clock:
    """Stands in for the module `time`: `time()`, `monotonic()` and `sleep()` are named for that."""

    now: float
    _ends: _Ends = field(default_factory=_Ends)
    _due: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _number: itertools.count[int] = field(default_factory=itertools.count)
    _depth: int = 0

    @property
    def ends(self) -> list[float]:
        """When each invocation that runs in this thread is over, the innermost last. Time that reaches it kills the invocation."""
        return self._ends.times

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.spend(seconds)

    def at(self, when: float, action: Callable[[], None]) -> None:
        """`action` runs when the clock reaches `when`, perhaps inside of a function's call or sleep."""
        heapq.heappush(self._due, (when, next(self._number), action))

    def spend(self, seconds: float) -> None:
        """Time passes; raises Killed when the innermost invocation's time is over."""
        until = self.now + seconds
        if self.ends:
            until = max(self.now, min(until, self.ends[-1]))
        self._run(until)
        if self.ends and self.now >= self.ends[-1]:
            raise Killed("the function's time is over")

    def run(self, seconds: float) -> None:
        """For a test: `seconds` pass outside of any function."""
        assert not self.ends, "a function is running"
        self._run(self.now + seconds)

    def _run(self, until: float) -> None:
        if self._depth >= NESTED:
            self.now = max(self.now, until)
            return
        self._depth += 1
        try:
            while self._due and self._due[0][0] <= until:
                when, _, action = heapq.heappop(self._due)
                self.now = max(self.now, when)
                action()
        finally:
            self._depth -= 1
        self.now = max(self.now, until)
