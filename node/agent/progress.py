"""Reads the trainer's progress from a file that may be missing, half written or wrong at any moment."""

from __future__ import annotations

import json
import math
import os
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contract.codec import Garbled, build
from contract.reports import Progress

LIMIT = 64 * 1024


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
    """PROGRESS_FILE. While it cannot be read, what was read before counts."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._newest: Progress | None = None
        self._named: Named | None = None
        self._reading = threading.Lock()

    def read(self) -> Progress | None:
        """The newest progress that could be understood, None before the first."""
        with self._reading:
            try:
                with open(self._file, "rb", opener=_opened) as source:
                    raw: Any = json.loads(source.read(LIMIT))
                    at = os.fstat(source.fileno()).st_mtime
                self._newest = _finite(build(Progress, raw, self._file.name))
            except (OSError, ValueError, Garbled, RecursionError):
                return self._newest
            checkpoint = raw.get("checkpoint")
            if type(checkpoint) is int and (self._named is None or self._named.step != checkpoint):
                before = self._named
                count = before.count + 1 if before else 1
                self._named = Named(checkpoint, at, count, max(0.0, at - before.at) if before and before.count else 0.0)
            return self._newest

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


def _opened(path: str, flags: int) -> int:
    """Never through a link, and without waiting for the other end of a pipe: the trainer puts there what it likes."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _finite(progress: Progress) -> Progress:
    """Python's JSON reads NaN and Infinity, which no report may carry."""
    metric = progress.metric if progress.metric is not None and math.isfinite(progress.metric) else None
    return replace(progress, metric=metric, import_s=progress.import_s if math.isfinite(progress.import_s) else 0.0)
