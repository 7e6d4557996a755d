"""Keeps threads and helpers to a share of the processors, so that a commit does not slow the training down."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

AHEAD_S = 0.05
"""How far the threads may be ahead: shorter sleeps would cost more than they give."""


class Pace:
    """`cores`: how many seconds of processor time the threads may use in a second, all of them and their helpers together; None for any."""

    def __init__(
        self,
        cores: float | None,
        *,
        now: Callable[[], float] = time.monotonic,
        used: Callable[[], float] = time.thread_time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cores, self._now, self._used, self._sleep = cores, now, used, sleep
        self._began, self._spent, self._turn = now(), 0.0, threading.Lock()
        self._seen = threading.local()

    def wait(self) -> None:
        """Sleeps until what all threads have used since their first call, this one's use included, fits the time that has passed."""
        if self._cores is None:
            return
        used = self._used()
        since, self._seen.at = used - getattr(self._seen, "at", used), used
        with self._turn:
            self._spent += since
            ahead = self._spent / self._cores - (self._now() - self._began)
        if ahead > AHEAD_S:
            self._sleep(ahead)

    def count(self, used_s: float) -> None:
        """Takes note of processor time that was used elsewhere for these threads."""
        with self._turn:
            self._spent += used_s
