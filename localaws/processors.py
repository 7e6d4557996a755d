"""The share of a processor that Lambda gives a function with its memory: whoever spends more is stopped until it has earned it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from dataclasses import dataclass

WHOLE_MB = 1769
"""Memory in MB with which a function has one whole processor; less has its part of one (AWS Lambda, "Configure function memory")."""
BURST_S = 0.02
"""Seconds of processor time that a function may spend ahead. AWS says no figure; quotas of Linux are counted in periods of 100 ms."""
LOOK_S = 0.01
SCHED = 2
"""Linux's clock of the processor time of a whole process (CPUCLOCK_SCHED of its headers)."""


def share(memory_mb: int) -> float:
    """Processors that a function of this much memory has. More than one serve threads, which are not held back here."""
    return min(1.0, memory_mb / WHOLE_MB)


def spent(pid: int) -> float:
    """Seconds of processor time that a process has used. Raises OSError where there is no such process."""
    return time.clock_gettime((~pid << 3) | SCHED)


@dataclass
class Budget:
    """What one process may spend: it earns `share` seconds of processor time a second, and keeps at most BURST_S of them."""

    share: float
    at: float
    """When it was last looked at, on the monotonic clock."""
    spent: float = 0.0
    saved: float = BURST_S

    def allows(self, now: float, spent: float) -> bool:
        """Whether a process that has spent so much in all may run on."""
        self.saved = min(BURST_S, self.saved + (now - self.at) * self.share - (spent - self.spent))
        self.at, self.spent = now, spent
        return self.saved > 0


class _Held:
    """A process with its budget. Signals go to this very process, even where its number serves another by now."""

    def __init__(self, pid: int, share: float) -> None:
        self._pid, self._handle = pid, os.pidfd_open(pid)
        self._budget, self._stopped = Budget(share=share, at=time.monotonic()), False

    def look(self, now: float) -> None:
        """Stops it, or lets it go on. Raises OSError where it is no more."""
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
    """Holds processes to their shares until they end, or until `stop()`."""

    def __init__(self) -> None:
        self._held: list[_Held] = []
        self._changed = threading.Condition()
        self._over = False
        threading.Thread(target=self._watch, name="processors", daemon=True).start()

    def hold(self, pid: int, share: float) -> None:
        """From now on the process has this share of a processor; one or more holds nothing back. Raises OSError where there is no
        such process."""
        if share < 1:
            with self._changed:
                self._held.append(_Held(pid, share))
                self._changed.notify()

    def stop(self) -> None:
        """Lets every process that is left run as it likes."""
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
            one.look(time.monotonic())
        except OSError:  # it ended
            one.release()
            return False
        return True
