"""Processes that live at the same time on one virtual clock: a thread each, of which exactly one runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.fakes.clock import Clock, Killed

STACK = 512 * 1024


def make_gate() -> threading.Lock:
    """Returns a closed gate: `release` opens it for the one who waits in `acquire`, behind whom it is closed again. A semaphore, which is
    written in Python, takes several times as long."""
    gate = threading.Lock()
    gate.acquire()
    return gate


class Process:
    """A function that runs beside others. Whatever time it spends, others live through."""

    def __init__(self, clock: SharedClock, body: Callable[[], Any], ended: Callable[[Process], None]) -> None:
        self.clock, self.body, self.ended = clock, body, ended
        self.result: Any = None
        self.problem: BaseException | None = None
        self.alive = True
        self._go = make_gate()
        self._turn = 0
        self._killed = False
        self._signal: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._live, daemon=True)

    def start(self) -> None:
        self._thread.start()
        self.clock.hand_over(self._go)

    def kill(self) -> None:
        """As SIGKILL: nothing of it runs any more."""
        if self.alive:
            self._killed = True
            self._wake()

    def interrupt(self, handler: Callable[[], None]) -> None:
        """`handler` runs inside of the process, wherever it sleeps."""
        if self.alive:
            self._signal = handler
            self._wake()

    def live_until(self, until: float) -> None:
        """Time passes for this process, and for everybody else."""
        while not self._killed and self.clock.now < until:
            if self.clock.pass_alone(until):
                break
            self._turn += 1
            self.clock.at(until, partial(self._wake, self._turn))
            self.clock.give_back()
            self._go.acquire()
            if self._signal is not None:
                handler, self._signal = self._signal, None
                handler()
        if self._killed:
            raise Killed("SIGKILL")

    def _wake(self, turn: int | None = None) -> None:
        if self.alive and turn in {None, self._turn}:
            self.clock.hand_over(self._go)

    def _live(self) -> None:
        self._go.acquire()
        self.clock.processes[threading.get_ident()] = self
        try:
            self.result = self.body()
        except BaseException as problem:
            self.problem = problem
        del self.clock.processes[threading.get_ident()]
        self.alive = False
        self.ended(self)
        self.clock.give_back()


@dataclass
class SharedClock(Clock):
    """The clock of many processes. The thread that runs it is not one of them."""

    processes: dict[int, Process] = field(default_factory=dict)
    _back: threading.Lock = field(default_factory=make_gate)
    _limit: float = 0.0
    """Until when it is run."""

    def run(self, seconds: float) -> None:
        self._limit = self.now + seconds
        super().run(seconds)

    def pass_alone(self, until: float) -> bool:
        """Time passes where nothing is due before: without changing to the clock's thread and back, which nobody would see."""
        if until > self._limit or (self._due and self._due[0][0] <= until):
            return False
        self.now = until
        return True

    def spend(self, seconds: float) -> None:
        process = self.processes.get(threading.get_ident())
        if process is None:
            super().spend(seconds)
            return
        until = self.now + seconds
        process.live_until(min(until, self.ends[-1]) if self.ends else until)
        if self.ends and self.now >= self.ends[-1]:
            raise Killed("the function's time is over")

    def hand_over(self, go: threading.Lock) -> None:
        """The process runs until it spends time or ends."""
        go.release()
        self._back.acquire()

    def give_back(self) -> None:
        self._back.release()
