"""Reads the trainer's progress from a file that may be missing, half written or wrong at any moment."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.progress_values import parse_progress
from contract.reports import Progress

LIMIT = 64 * 1024
TORN_S = 10.0
"""A file that is not JSON, and the same for so long, is not about to be written."""


@dataclass(frozen=True)
class Named:
    """The newest checkpoint that the trainer said to be complete."""

    step: int
    at: float
    """When it was said: the time of the file in which it was first read, by this machine's clock."""
    count: int
    """How many it has named in this attempt, this one included: 0 for the one that was restored."""
    period_s: float = 0.0
    """Seconds from the one before to this one; 0 for the first."""


class ProgressFile:
    """PROGRESS_FILE. While it cannot be read, what was read before counts. What keeps it, or a value in it, from being understood is noted
    once a field."""

    def __init__(
        self,
        file: Path,
        *,
        note: Callable[[str], None] = lambda _: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file, self._note, self._monotonic = file, note, monotonic
        self._newest: Progress | None = None
        self._named: Named | None = None
        self._noted = set[str]()
        self._torn: tuple[bytes, float] | None = None
        """What was not JSON at the look before, and since when."""
        self._reading = threading.Lock()

    def read(self) -> Progress | None:
        """The newest progress that could be understood, None before the first."""
        with self._reading:
            try:
                with open(self._file, "rb", opener=_opened) as source:
                    document = source.read(LIMIT + 1)
                    at = os.fstat(source.fileno()).st_mtime
                reading = parse_progress(document)
            except FileNotFoundError:
                return self._newest
            except OSError as problem:
                self._note_once("file", f"cannot be read: {problem.strerror or problem}")
                return self._newest
            except (ValueError, RecursionError) as problem:
                self._take_torn(document, problem)
                return self._newest
            self._torn = None
            for field, problem in reading.problems.items():
                self._note_once(field, f"{field} {problem}. It does not count; other values of the file do")
            self._newest = reading.progress or self._newest
            checkpoint = reading.checkpoint
            if checkpoint is not None and (self._named is None or self._named.step != checkpoint):
                before = self._named
                count = before.count + 1 if before else 1
                self._named = Named(checkpoint, at, count, max(0.0, at - before.at) if before and before.count else 0.0)
            return self._newest

    def _take_torn(self, document: bytes, problem: Exception) -> None:
        """A file that is written to in place is torn for a moment; one that stays so will never be understood."""
        if self._torn is None or self._torn[0] != document:
            self._torn = (document, self._monotonic())
        elif self._monotonic() - self._torn[1] >= TORN_S:
            why = f"it has more than {LIMIT} bytes" if len(document) > LIMIT else problem
            self._note_once("file", f"is not understood: {why}. Replace it with a JSON object by renaming")

    def _note_once(self, about: str, text: str) -> None:
        if about not in self._noted:
            self._noted.add(about)
            self._note(f"PROGRESS_FILE {text}")

    def restored(self, step: int, at: float) -> None:
        """A trainer that names its checkpoints has named the one that was restored: what comes to its place later is of the next one."""
        with self._reading:
            self._named = self._named or Named(step, at, 0)

    @property
    def named(self) -> Named | None:
        """The newest checkpoint that the trainer names, as of now; None where it has named none."""
        self.read()
        return self._named

    def checkpoint_step(self) -> int:
        """The step of the files that are in CHECKPOINT_DIR now: the trainer's `checkpoint` where it says so, otherwise
        its `step`, -1 where it says nothing."""
        newest = self.read()
        if newest is None:
            return -1
        return newest.step if self._named is None else self._named.step


class NoProgressFile(ProgressFile):
    """In the place of PROGRESS_FILE on a workbench, whose files a person saves one by one: the steps of a training that they try there say
    nothing about them."""

    def __init__(self) -> None:
        super().__init__(Path(os.devnull))

    def read(self) -> None:
        return None

    def restored(self, step: int, at: float) -> None:
        """Names nothing."""


def _opened(path: str, flags: int) -> int:
    """Never through a link, and without waiting for the other end of a pipe: the trainer puts there what it likes."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
