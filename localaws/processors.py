"""Limits a function to the processor share that Lambda gives with its memory: who spends more is stopped until it has earned it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from dataclasses import dataclass

WHOLE_MB = 1769
"""Memory in MB that gives one whole processor; less memory gives a part of one (AWS Lambda, "Configure function memory")."""
BURST_S = 0.02
"""Seconds of processor time that a function may spend in advance. AWS publishes no figure; Linux's quotas use periods of 100 ms."""
LOOK_S = 0.01
SCHED = 2
"""Linux's clock for the processor time of a whole process (CPUCLOCK_SCHED in its headers)."""


def share(memory_mb: int) -> float:
    """Returns the processors of a function with this much memory. More than one only serve threads, which are not limited here."""
    return min(1.0, memory_mb / WHOLE_MB)


def spent(pid: int) -> float:
    """Returns the seconds of processor time that a process has used. Raises OSError if it does not exist."""
    return time.clock_gettime((~pid << 3) | SCHED)


@dataclass
class Budget:
    """What one process may spend: it earns `share` seconds of processor time per second, and saves at most BURST_S of them."""

    share: float
    at: float
    """When the budget was last updated, on the monotonic clock."""
    spent: float = 0.0
    saved: float = BURST_S

    def allows(self, now: float, spent: float) -> bool:
        """Whether a process that has spent so much in all may continue."""
        self.saved = min(BURST_S, self.saved + (now - self.at) * self.share - (spent - self.spent))
        self.at, self.spent = now, spent
        return self.saved > 0


class _Held:
    """A process with its budget. Signals go to this very process, even if another process has its number by now."""

    def __init__(self, pid: int, share: float) -> None:
        self._pid, self._handle = pid, os.pidfd_open(pid)
        self._budget, self._stopped = Budget(share=share, at=time.monotonic()), False

    def enforce(self, now: float) -> None:
        """Stops the process, or lets it continue. Raises OSError if it has ended."""
        allowed = self._budget.allows(now, spent(self._pid))
        if allowed == self._stopped:
            self._tell(signal.SIGCONT if allowed else signal.SIGSTOP)
            self._stopped = not allowed

    def release(self) -> None:
        with contextlib.suppress(OSError):
            self._tell(signal.SIGCONT)
        os.close(self._handle)

    def _tell(self, what: signal.Signals) -> None:
        signal.pidfd_send_signal(self._handle, what)


class Processors:
    """Limits processes to their shares until they end, or until `stop()`."""

    def __init__(self) -> None:
        self._held: list[_Held] = []
        self._changed = threading.Condition()
        self._over = False
        threading.Thread(target=self._watch, name="processors", daemon=True).start()

    def hold(self, pid: int, share: float) -> None:
        """Gives the process this share of a processor from now on; a share of one or more is no limit. Raises OSError if there is no
        such process."""
        if share < 1:
            with self._changed:
                self._held.append(_Held(pid, share))
                self._changed.notify()

    def stop(self) -> None:
        """Lifts the limits of all remaining processes."""
        with self._changed:
            self._over = True
            for one in self._held:
                one.release()
            self._held.clear()
            self._changed.notify()

    def _watch(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._over or self._held)
                if self._over:
                    return
                self._held = [one for one in self._held if self._looked(one)]
            time.sleep(LOOK_S)

    @staticmethod
    def _looked(one: _Held) -> bool:
        try:
            one.enforce(time.monotonic())
        except OSError:  # the process has ended
            one.release()
            return False
        return True
