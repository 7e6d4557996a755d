"""Sends the node's reports from a thread of its own, at a steady pace, whatever else the node does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agent.fitting import document_of
from agent.table import NodeItems
from contract.reports import Exit, NodeReport, Phase, Progress

SAVING = "the last commits are on their way"
AGAIN_S = 5.0
"""The longest pause before an urgent report is sent again that did not arrive."""


class Reporter:
    """The node's report. It is sent at every tick, whether anything has changed or not, because only its age says that the node lives.
    One that does not arrive never ends the job: the next one tells all of it, and is urgent too if that was."""

    def __init__(
        self,
        items: NodeItems,
        first: NodeReport,
        *,
        nodes: int,
        every_s: float,
        expires: float,
        progress: Callable[[], Progress | None],
        idle_s: Callable[[], float | None] = lambda: None,
        unhealthy: Callable[[], str] = str,
        note: Callable[[str], None],
        now: Callable[[], float],
    ) -> None:
        self._items, self._report, self._nodes = items, first, nodes
        self._every_s, self._expires = every_s, expires
        self._progress, self._idle_s, self._unhealthy, self._note, self._now = progress, idle_s, unhealthy, note, now
        self._entered, self._failed, self._ordered, self._closing = time.monotonic(), 0.0, 0.0, 0.0
        self._lock, self._sending = threading.RLock(), threading.RLock()
        self._wake, self._closed = threading.Event(), False
        self._urgent = False
        """Something urgent has not arrived yet."""
        self._thread = threading.Thread(target=self._run, name="reports", daemon=True)

    @property
    def report(self) -> NodeReport:
        return self._report

    def start(self) -> None:
        """Sends the first report now, in the caller's thread, and starts the thread for the others."""
        self.send()
        self._thread.start()

    def change(self, **facts: Any) -> None:
        """Sets facts for the next report."""
        with self._lock:
            if "order" in facts and self._report.order is None:
                self._ordered = time.monotonic()
            self._report = replace(self._report, **facts)

    def set_closed(self, step: int) -> None:
        """Notes that the node learns now that a newer set is closed, and the set's step."""
        with self._lock:
            self._closing = time.monotonic()
            self.change(closed_step=step)

    def moment(self, name: str, at: float | None = None) -> None:
        """Notes a moment of the timeline by the node's clock; a second one of the same name is ignored."""
        with self._lock:
            moments = {name: self._now() if at is None else at, **self._report.timeline}
            self.change(timeline={key: round(value, 3) for key, value in moments.items()})

    def enter(self, phase: Phase, note: str = "") -> None:
        """Enters a phase and sends a report at once, without waiting until it arrives."""
        self._turn(phase, note=note)
        self._wake.set()

    def outcome(self, ending: Exit, ended_at: float = 0.0) -> None:
        """Reports how the work ended, `ended_at` by the node's clock (0 for now), and an error at once: the last commits may take minutes,
        while the errors of peers that follow this one are reported within a second."""
        if not ending.error:
            self.enter(Phase.SAVING, SAVING)
            return
        self.moment("failed", ended_at or None)
        self._failed = time.monotonic() - (max(0.0, time.time() - ended_at) if ended_at else 0.0)
        self._turn(Phase.SAVING, note=SAVING, outcome=ending)
        if ending.ordered:
            self._wake.set()
        else:
            self.hurry()

    def hurry(self) -> None:
        """Sends an urgent report now, which wakes the control plane, without waiting until it arrives."""
        self._urgent = True
        self._wake.set()

    def send(self) -> bool:
        """Sends one report, with the next number: what was sent before it can never replace it."""
        with self._sending:
            with self._lock:
                urgent, self._urgent = self._urgent, False
                self._report = replace(
                    self._report,
                    sequence=self._report.sequence + 1,
                    sent_at=round(self._now(), 3),
                    progress=self._progress(),
                    phase_s=_since(self._entered),
                    failed_s=_since(self._failed) if self._report.outcome else 0.0,
                    ordered_s=_since(self._ordered) if self._report.order else 0.0,
                    idle_s=None if (idle_s := self._idle_s()) is None else round(idle_s, 3),
                    unhealthy=self._unhealthy(),
                    closed_s=_since(self._closing) if self._report.closed_step >= 0 else None,
                )
                report = self._report
            try:
                document = document_of(report, self._nodes)
                self._items.put_report(document, version=report.sequence, urgent=urgent, expires=self._expires)
            except Exception as problem:
                self._urgent = self._urgent or urgent
                self._note(f"a report did not arrive: {problem}")
                return False
            return True

    def end(self, ending: Exit, *, tries: int, sleep: Callable[[float], None]) -> bool:
        """Sends the last report, with how the work ended, until it arrives, at most `tries` times."""
        with self._sending:  # a report that is on its way arrives first, and none follows
            self._closed = True
        self._wake.set()
        self.moment("ended")
        self._turn(Phase.ENDED, exit=ending)
        for pause in range(tries):
            self._urgent = True
            if self.send():
                return True
            sleep(min(1.0 + pause, self._every_s))
        return False

    def _turn(self, phase: Phase, **facts: Any) -> None:
        with self._lock:
            self._entered = time.monotonic()
            self.change(phase=phase, **facts)

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait(min(AGAIN_S, self._every_s) if self._urgent else self._every_s)
            self._wake.clear()
            with self._sending:
                if not self._closed:
                    self.send()


def _since(moment: float) -> float:
    return round(time.monotonic() - moment, 3)
