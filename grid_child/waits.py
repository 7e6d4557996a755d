"""Sleeps that SIGTERM ends at once."""

from __future__ import annotations

from typing import Any, Protocol


class Clock(Protocol):
    """The module `time`, or a test's."""

    def time(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...


class Terminated(BaseException):
    """SIGTERM came. It is a BaseException, so that no `except Exception` catches it."""


class Waits:
    """The process' clock. SIGTERM raises Terminated in a sleep or before the next one, never inside of a call."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.called_at: float | None = None
        self._asleep = self._heard = False

    def time(self) -> float:
        return self.clock.time()

    def called(self, *_: Any) -> None:
        """The handler of SIGTERM; only the first one counts."""
        if self.called_at is None:
            self.called_at = self.clock.time()
        if self._asleep and not self._heard:
            raise Terminated

    def check(self) -> None:
        """Raises Terminated where SIGTERM has come."""
        if self.called_at is not None and not self._heard:
            raise Terminated

    def hear(self) -> float:
        """Returns when SIGTERM came. From now on it no longer interrupts sleeps."""
        self._heard = True
        return self.clock.time() if self.called_at is None else self.called_at

    def sleep(self, seconds: float) -> None:
        try:
            self._asleep = True  # first, so that a signal between the look and the sleep is not slept over
            self.check()
            if seconds > 0:
                self.clock.sleep(seconds)
        finally:
            self._asleep = False
