"""Tells files that are one pickle or one array from those that a trainer fills with several of them, one after the other.

Each of several pickles in a file has an end of its own, so the first of them looks like the whole file while the next one is still to come.
A file counts as whole by its last byte only where files of its name were one piece in several versions, or for longer than a save pauses,
and never more than that.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from agent.sets.rows import mask
from agent.snapshot import FileState

VERSIONS = 6
"""So many versions of a file that were one piece when they were seen show that its trainer writes no more."""
RESTED_S = 60.0
"""A version that was one piece for so long shows it as well."""


class Pieces(Enum):
    """What a file is, as far as its bytes show."""

    OTHER = "other"
    """Neither a pickle nor an array, or the beginning of one."""
    ONE = "one"
    SEVERAL = "several"
    """Or too many bytes to tell."""


class KnownPieces:
    """What was seen of one folder's files. Names that differ in their numbers alone are of one kind. Not for use by two threads at once."""

    def __init__(self) -> None:
        self._several: set[str] = set()
        self._versions: dict[str, int] = {}
        self._since: dict[str, tuple[FileState, float]] = {}

    def observe(self, files: Iterable[tuple[FileState, Pieces]], now: float) -> None:
        """Takes note of how the files are `now`, by the machine's clock."""
        since: dict[str, tuple[FileState, float]] = {}
        new = set[str]()
        for one, pieces in files:
            name = mask(one.path)
            if pieces is Pieces.SEVERAL:
                self._several.add(name)
            elif pieces is Pieces.ONE:
                seen, began = self._since.get(one.path, (None, now))
                if seen is None or seen.content != one.content:
                    new.add(name)
                    began = now
                elif now - began >= RESTED_S:
                    self._versions[name] = VERSIONS
                since[one.path] = (one, began)
        self._since = since
        for name in new:  # shards that are written at the same time say no more than one of them
            self._versions[name] = self._versions.get(name, 0) + 1

    def is_watched(self, path: str) -> bool:
        """Whether the file was one piece when it was seen last."""
        return path in self._since

    def is_one(self, path: str) -> bool:
        """Whether a file with this path is whole once it is one piece."""
        name = mask(path)
        return name not in self._several and self._versions.get(name, 0) >= VERSIONS
