"""Tells files that a trainer is done with from files that it may be writing, where neither a name nor a layout says so.

Most trainers write a file in place: it has the bytes of the checkpoint before, then some of the next one, then all of them. Three things
say that it is whole: its format, whose end only the last write makes; a name that it got by renaming; and rest. Files that are written
together belong together: while only some of them are new, none is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from agent.layouts.formats import is_whole
from agent.snapshot import FileState

RESTS_S = 10.0
"""A trainer that has not changed its files for so long has finished them, where nothing else says that they may be half of something."""
LONG_REST_S = 60.0
"""The same for files that nothing but rest shows to be whole: a save over a slow mount, or out of a GPU's memory, pauses for seconds."""
SHORTEST_S, BYTES_PER_S = 1.0, 200e6
"""A file takes at least so long to write, and a larger one as long as at this speed: one that changed within that time of the trainer's
death was being written."""

Read = Callable[[str, int, int], bytes]


def rest_s(every_s: float) -> float:
    """Returns how long a file has rested that may be taken, where a set is due every `every_s` seconds."""
    return min(RESTS_S, every_s / 4)


class Resting:
    """What one folder's files were in the last set, and which of them are saved together. Not for use by two threads at once."""

    def __init__(self, read: Read) -> None:
        """`read`: path, offset, and at most so many bytes; b"" where there are none."""
        self._read = read
        self._taken: dict[str, FileState] = {}
        self._together: frozenset[str] = frozenset()
        self._torn: dict[FileState, bool | None] = {}

    def take(self, own: Sequence[FileState]) -> None:
        """Takes note of what a set has, or a restore brought."""
        changed = frozenset(one.path for one in self._changed(own))
        if self._taken and changed:
            self._together = changed
        self._taken = {one.path: one._replace(grows=False) for one in own}

    def is_torn(self, one: FileState) -> bool:
        """Whether a file is cut off by its format."""
        return self._evidence(one) is False

    def has_taken(self, one: FileState) -> bool:
        """Whether the last set has the file as it is."""
        return self._taken.get(one.path) == one._replace(grows=False)

    def find_doubt(
        self, own: Sequence[FileState], changes: Mapping[str, float], now: float, *, every_s: float, late: bool
    ) -> str:
        """Why the files that are new since the last set may not be whole yet; empty where they are. Times are the machine's. `late`: a
        trainer that saves all the time has no rest to wait for, so files that are certainly whole need none, and others a short one; so
        do those of the first set, which take the place of none."""
        changed = self._changed(own)
        rested_s = now - max((changes.get(one.path, 0.0) for one in changed), default=0.0)
        short_s = rest_s(every_s)
        enough_s = short_s if late or not self._taken else min(LONG_REST_S, every_s / 4)
        for one in changed:
            if (evidence := self._evidence(one)) is False:
                return f"{one.path} is cut off: its format says that more is to come"
            if not evidence and rested_s <= enough_s:
                return f"{one.path} may still be written: it changed {rested_s:.0f} s ago"
        if (missing := self._missing(changed, own)) and rested_s <= enough_s:
            return f"{missing} is of the save before, and other files are of the next one"
        return "" if late or rested_s > short_s else f"{changed[0].path} changed {rested_s:.0f} s ago"

    def find_unrest(
        self, own: Sequence[FileState], changes: Mapping[str, float], now: float, *, every_s: float, waited_s: float
    ) -> str:
        """The same for files that a person saves one by one: none belongs to another, and one that is cut off is as they have it. After a
        short wait those that rest are taken without the others."""
        changed, short_s = self._changed(own), rest_s(every_s)
        restless = self.list_restless(own, changes, since=now - short_s, now=now)
        if not restless or (waited_s > short_s and len(restless) < len(changed)):
            return ""
        return f"{restless[0]} changed {now - changes[restless[0]]:.0f} s ago"

    def list_restless(
        self, own: Sequence[FileState], changes: Mapping[str, float], *, since: float, now: float
    ) -> list[str]:
        """Paths of the new files that changed after `since`. One whose time is still to come says nothing: the clock was set back."""
        new = (one.path for one in self._changed(own) if not one.target)
        return [path for path in new if since <= changes.get(path, 0.0) <= now]

    def find_doubt_at_end(
        self, own: Sequence[FileState], changes: Mapping[str, float], ended_at: float
    ) -> tuple[str, bool]:
        """The same once the trainer has died at `ended_at`, and whether a file is certainly torn."""
        changed, doubt = self._changed(own), ""
        for one in changed:
            evidence, age_s = self._evidence(one), ended_at - changes.get(one.path, 0.0)
            if evidence is False:
                return f"{one.path} is cut off: its trainer ended while it wrote it", True
            if not evidence and age_s < max(SHORTEST_S, one.size / BYTES_PER_S):
                doubt = f"its trainer ended while it may have been writing {one.path}"
            elif age_s <= RESTS_S and (missing := self._missing(changed, own)):
                doubt = f"its trainer ended when it had written {one.path}, and not yet {missing}"
        return doubt, False

    def _changed(self, own: Sequence[FileState]) -> list[FileState]:
        return [one for one in own if not one.grows and self._taken.get(one.path) != one]

    def _missing(self, changed: Sequence[FileState], own: Sequence[FileState]) -> str:
        """A file that was saved together with one that is new, and is still of the save before; empty where there is none."""
        new = {one.path for one in changed}
        if not new & self._together:
            return ""
        return min((self._together - new) & {one.path for one in own}, default="")

    def _evidence(self, one: FileState) -> bool | None:
        """Whether a file is whole by its format, or by the way in which it came to its place; None where that is not known."""
        if one.target:
            return True
        if one not in self._torn:
            if len(self._torn) > 1000:
                self._torn.clear()
            self._torn[one] = is_whole(lambda offset, size: self._read(one.path, offset, size), one.size, one.path)
        whole = self._torn[one]
        return self._was_renamed(one) or None if whole is None else whole

    def _was_renamed(self, one: FileState) -> bool:
        """A write dates bytes and inode alike, a rename the inode alone. A new inode alone may be a file that is written anew."""
        before = self._taken.get(one.path)
        return one.ctime_ns > one.mtime_ns and (before is None or before.inode != one.inode)
