"""Tells files that only grow, as logs do, from files that a trainer writes anew.

A log that lies beside checkpoints changes all the time, and belongs to none of them. That a file became longer proves nothing: the next
checkpoint does as well while it is written. So a file counts as a log where what it had before is still there, and one of these shows that
it is no save: its name and its lines, which a log alone has; the whole of what the last set had of it, at its beginning; or that its lines
have grown for longer than a save takes. Any other file that changes is a checkpoint on its way.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agent.layouts.kinds import FileKind
from agent.snapshot import FileState
from agent.symlinks import Source

LOG = re.compile(r".*\.(log|out|err|jsonl|ndjson|wandb)|.*\.tfevents\..*", re.IGNORECASE)
"""Names of logs: of text and lines of JSON, TensorBoard's events, Weights & Biases' runs. Models and results have .txt and .csv as well."""
SAMPLE = 64 * 1024
"""Bytes of the beginning and of the end of a file that are compared: whoever writes a file anew changes them."""
MOST = 64
"""Logs that grow at a time, at most; where there are more, they are something else."""
LEAST_GROWTH_S = 60.0
"""Lines of text in a file of any name have grown for so long, and for half of the time between two sets, before they count as a log."""


@dataclass(frozen=True)
class _Record:
    """A file that has only grown since a time, by the machine's clock: its size when it was last seen, and a digest of samples of it."""

    since: float
    size: int
    sample: bytes
    goes_on: bool
    """Whether it had all of an earlier sample when it was seen last."""


class Growth:
    """What one folder's files did from look to look. Not for use by two threads at once."""

    def __init__(
        self,
        folder: Path,
        *,
        clock: Callable[[], float],
        find_kind: Callable[[FileState], FileKind] = lambda _: FileKind.WEIGHTS,
    ) -> None:
        """`find_kind` says what a file is by what is in it."""
        self._folder, self._clock, self._find_kind = folder, clock, find_kind
        self._before: dict[str, FileState] = {}
        self._records: dict[str, _Record] = {}
        self._kept: dict[str, tuple[int, bytes]] = {}
        self._extending: dict[str, FileState] = {}

    def observe(self, states: Iterable[FileState], also: Collection[str] = ()) -> None:
        """Compares the folder's files with those of the call before. `also`: paths that are looked at whatever their files are."""
        now, seen = self._clock(), {one.path: one for one in states if not one.target and one.source is None}
        longer = [
            one
            for one in seen.values()
            if self._is_longer(one) and (_is_named(one) or one.path in also or self._is_lines(one))
        ]
        unchanged = {path for path in self._records if path in seen and self._before.get(path) == seen[path]}
        records = {path: record for path, record in self._records.items() if path in unchanged}
        for one in longer if len(longer) <= MOST else ():
            if record := self._record(one, now):
                records[one.path] = record
        self._before, self._records = seen, records

    def keep(self, states: Iterable[FileState]) -> None:
        """Takes note of what a set has, or a restore brought: a log begins with that from then on."""
        lines = [one for one in states if not one.target and one.source is None and self._is_lines(one)]
        self._kept = {one.path: (one.size, sample) for one in lines if (sample := self._sample(one.path, one.size))}
        self._extending.clear()

    def mark(
        self,
        states: Iterable[FileState],
        *,
        since: float,
        lines_since: float | None = None,
        busy: Collection[str] = (),
    ) -> list[FileState]:
        """Returns the states, with `grows` set for files that have only grown since that time or longer, by the machine's clock: those with
        the name of a log since `since`. `lines_since`: for lines of text of any name; None where the names of logs alone count. `busy`:
        paths of files that are written all the time; whatever these are, they count once they were seen to grow twice."""
        every = list(states)
        self.observe(every, busy)
        grows = {path for path, record in self._records.items() if record.since <= since and LOG.fullmatch(_name(path))}
        grows |= {path for path in busy if self.has_grown_on(path)}
        if lines_since is not None:
            grows |= {one.path for one in every if self._is_log(one, lines_since)}
        return [one._replace(grows=True) if one.path in grows else one for one in every]

    def has_grown(self, one: FileState, since: float) -> bool:
        """Whether a file was seen to grow, and has only grown since that time or longer."""
        record = self._records.get(one.path)
        return record is not None and record.since <= since

    def has_grown_on(self, path: str) -> bool:
        """Whether a file was seen to grow, and then to have what it had before."""
        record = self._records.get(path)
        return record is not None and record.goes_on

    def _is_log(self, one: FileState, since: float) -> bool:
        if one.target or one.source is not None:
            return False
        kind = self._find_kind(one)
        if kind is FileKind.RECORD:
            return True
        return kind.is_lines and (self.has_grown(one, since) or self._extends(one))

    def _extends(self, one: FileState) -> bool:
        """Whether a file begins with all that the last set has of it, and became longer since."""
        if self._extending.get(one.path) == one:
            return True
        size, sample = self._kept.get(one.path, (0, b""))
        if not sample or one.size <= size or self._sample(one.path, size) != sample:
            return False
        self._extending[one.path] = one
        return True

    def _is_lines(self, one: FileState) -> bool:
        return self._find_kind(one).is_lines

    def _is_longer(self, one: FileState) -> bool:
        before = self._before.get(one.path)
        return before is not None and before.inode == one.inode and before.size < one.size

    def _sample(self, path: str, size: int) -> bytes:
        """A digest of samples of a file's first `size` bytes; empty where it has none, or went away."""
        try:
            file = Source(str(self._folder), path).open()
        except OSError:
            return b""
        try:
            return _sample(file, size) if 0 < size <= os.fstat(file).st_size else b""
        except OSError:
            return b""
        finally:
            os.close(file)

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
            return _Record(since, one.size, _sample(file, one.size), goes_on)
        except OSError:
            return None
        finally:
            os.close(file)


def _name(path: str) -> str:
    return PurePosixPath(path).name


def _is_named(one: FileState) -> bool:
    return LOG.fullmatch(_name(one.path)) is not None


def _sample(file: int, size: int) -> bytes:
    """A digest of the beginning and the end of a file's first `size` bytes."""
    end = max(0, size - SAMPLE)
    head, tail = os.pread(file, min(SAMPLE, size), 0), os.pread(file, size - end, end)
    return hashlib.sha256(head + tail).digest()
