"""Follows an execution for as long as it takes: where AWS does not answer the command waits, and says at its end what goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from trainyard.deployment import renew_session
from trainyard.printer import Printer
from trainyard.stops import (
    CannotProceed,
    CommandExit,
    OutputClosed,
    OutputFailed,
    explain,
    is_of_credentials,
    may_pass,
    say_problem,
)

T = TypeVar("T")

GIVE_UP_S = 900.0
"""For how long an answer is waited for, pauses alone: a computer that sleeps meanwhile has not waited."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timekeeper:
    """The time, and how to wait; tests have others."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], object] = time.sleep


@dataclass(slots=True)
class PatientReader:
    """Reads again what could not be read, with growing pauses, and says so once a reason."""

    say: Callable[[str], None]
    clock: Timekeeper = field(default_factory=Timekeeper)

    def read(self, find: Callable[[], T]) -> T:
        """Returns what `find` returns. Raises what it raises: at once where waiting does not mend it, else after GIVE_UP_S."""
        waited, pause, said = 0.0, FIRST_PAUSE_S, ""
        while True:
            try:
                found = find()
            except Exception as problem:
                if not may_pass(problem) or waited >= GIVE_UP_S:
                    raise
                words = explain(problem)
                if words != said:
                    self.say(f"{words}\nfollowing waits for up to {(GIVE_UP_S - waited) / 60:.0f} min")
                said = words
                self.clock.sleep(pause)
                waited, pause = waited + pause, min(2 * pause, LONGEST_PAUSE_S)
                if is_of_credentials(problem):
                    renew_session()
            else:
                if said:
                    self.say("AWS answers again")
                return found


def keep_following(kind: str, name: str, printer: Printer, follow: Callable[[], int]) -> int:
    """Returns the exit code of `follow`. Where Ctrl-C or an error ends it, says how to follow and how to stop what goes on. Where stdout
    can no longer be written, it says so on stderr."""
    try:
        return _follow_or_leave(kind, name, printer, follow)
    except OutputFailed as problem:
        printer.complain(f"{problem}\n{word_left(kind, name)}")
        return CommandExit.LEFT


def _follow_or_leave(kind: str, name: str, printer: Printer, follow: Callable[[], int]) -> int:
    try:
        return follow()
    except KeyboardInterrupt:
        printer.document({"error": KeyboardInterrupt.__name__, "cause": word_left(kind, name)})
    except (CannotProceed, OutputClosed):
        raise
    except Exception as problem:
        say_problem(problem, printer)
    printer.say(word_left(kind, name))
    return CommandExit.LEFT


def word_left(kind: str, name: str) -> str:
    """Says what goes on, how to follow it, and how to stop it."""
    return f"{name} goes on; to follow it again: {name_status(kind, name)} -f; to stop it: trainyard stop {name}"


def name_status(kind: str, name: str) -> str:
    """Returns the command that shows how an execution stands."""
    return f"trainyard status {name}" if kind == "job" else f"trainyard {kind} status {name}"
