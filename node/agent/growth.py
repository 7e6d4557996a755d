"""Tells files that only grow, as logs do, from files that a trainer writes anew.

A log that lies beside checkpoints changes all the time, and belongs to none of them. That a file became longer proves nothing: the next
checkpoint does as well while it is written. So a file counts as a log if it has the name of one, has only grown for longer than from one
checkpoint to the next, and what it had before is still there. Any other file that changes is a checkpoint on its way.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agent.snapshot import FileState
from agent.symlinks import Source

LOG = re.compile(r".*\.(log|out|err|jsonl|ndjson|wandb)|.*\.tfevents\..*", re.IGNORECASE)
"""Names of logs: of text and lines of JSON, TensorBoard's events, Weights & Biases' runs. Models and results have .txt and .csv as well."""
SAMPLE = 64 * 1024
"""Bytes of the beginning and of the end of a file that are compared: whoever writes a file anew changes them."""
MOST = 64
"""Logs that grow at a time, at most; where there are more, they are something else."""


@dataclass(frozen=True)
class _Record:
    """A file that has only grown since a time, by the machine's clock: its size when it was last seen, and a digest of samples of it."""

    since: float
    size: int
    sample: bytes


class Growth:
    """What one folder's files did from look to look. Not for use by two threads at once."""

    def __init__(self, folder: Path, *, clock: Callable[[], float]) -> None:
        self._folder, self._clock = folder, clock
        self._before: dict[str, FileState] = {}
        self._records: dict[str, _Record] = {}

    def observe(self, states: Iterable[FileState]) -> None:
        """Compares the folder's files with those of the call before."""
        now, seen = self._clock(), {one.path: one for one in states if _is_log(one)}
        longer = [one for one in seen.values() if self._is_longer(one)]
        unchanged = {path for path, one in seen.items() if self._before.get(path) == one}
        records = {path: record for path, record in self._records.items() if path in unchanged}
        for one in longer if len(longer) <= MOST else ():
            if record := self._record(one, now):
                records[one.path] = record
        self._before, self._records = seen, records

    def mark(self, states: Iterable[FileState], *, since: float) -> list[FileState]:
        """Returns the states, with `grows` set for files that have only grown since that time or longer, by the machine's clock."""
        every = list(states)
        self.observe(every)
        grows = {path for path, record in self._records.items() if record.since <= since}
        return [one._replace(grows=True) if one.path in grows else one for one in every]

    def _is_longer(self, one: FileState) -> bool:
        before = self._before.get(one.path)
        return before is not None and before.inode == one.inode and before.size < one.size

    def _record(self, one: FileState, now: float) -> _Record | None:
        """The record of a file that became longer; None where it went away."""
        known = self._records.get(one.path)
        try:
            file = Source(str(self._folder), one.path).open()
        except OSError:
            return None
        try:
            goes_on = known is not None and _sample(file, known.size) == known.sample
            since = known.since if known is not None and goes_on else now
            return _Record(since, one.size, _sample(file, one.size))
        except OSError:
            return None
        finally:
            os.close(file)


def _is_log(one: FileState) -> bool:
    return not one.target and one.source is None and LOG.fullmatch(PurePosixPath(one.path).name) is not None


def _sample(file: int, size: int) -> bytes:
    """A digest of the beginning and the end of a file's first `size` bytes."""
    end = max(0, size - SAMPLE)
    head, tail = os.pread(file, min(SAMPLE, size), 0), os.pread(file, size - end, end)
    return hashlib.sha256(head + tail).digest()
