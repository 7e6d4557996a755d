"""Finds files that are written all the time: measurements in a binary format, a large report, a replay buffer.

A set waits for a file that is not done, because it may be half of a checkpoint. For a file that never rests it would wait for ever. Such a
file is no part of the checkpoints beside it if these go on without it: its trainer never left it alone for as long as a save pauses, and
meanwhile saved another file whole, and then once more. In a slow save of several files no other file has a second version before the slow
one is done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from agent.layouts.kinds import FileKind
from agent.sets.rows import mask
from agent.snapshot import FileState

LEAST_S = 300.0
"""A file counts once its trainer has written to it for so long, and for a whole interval between sets: a large save takes minutes."""
PAUSE_S = 60.0
"""A file that was left alone for so long is done. A save over a slow mount, or out of a GPU's memory, pauses for seconds."""


class _Version(NamedTuple):
    content: tuple[int, int, int]
    seen_at: float
    is_saved: bool


class _Save(NamedTuple):
    """A whole version of a file: when it was seen first, and when it was known to be whole."""

    path: str
    began: float
    ended: float


class Busy:
    """What was seen of one folder's files. Times are the machine's. Not for use by two threads at once."""

    def __init__(
        self, find_kind: Callable[[FileState], FileKind], is_whole: Callable[[FileState], bool | None]
    ) -> None:
        """`is_whole` says whether a file is whole by its format; None where that does not tell."""
        self._find_kind, self._is_whole = find_kind, is_whole
        self._versions: dict[str, _Version] = {}
        self._began: dict[str, float] = {}
        """Since when a file has not been left alone, by its path. Without small texts: these hold up nothing, and have to be whole."""
        self._first = defaultdict[str, dict[str, _Save]](dict)
        """Of each file that is being written: the first save of another kind of files meanwhile, by its masked path."""
        self._passed: set[str] = set()
        """Files during which another one was saved twice."""

    def observe(self, own: Sequence[FileState], now: float) -> None:
        """Compares the files with those of the call before. Files that only grow are of interest once they are found here."""
        before, self._versions = self._versions, {}
        saves = list[_Save]()
        for one in own:
            if one.target or (one.grows and one.path not in self._passed):
                continue
            known = before.get(one.path)
            if known is None or known.content != one.content:
                if not self._find_kind(one).is_small_text:
                    self._began.setdefault(one.path, now)
                known = _Version(one.content, now, is_saved=False)
            if not known.is_saved and self._is_saved(one, now - known.seen_at):
                saves.append(_Save(one.path, known.seen_at, now))
                known = known._replace(is_saved=True)
            if now - known.seen_at >= PAUSE_S:
                self._forget(one.path)
            self._versions[one.path] = known
        for path in self._began.keys() - self._versions.keys():
            self._forget(path)
        for save in saves:
            self._note_save(save)

    def find(self, now: float, every_s: float) -> frozenset[str]:
        """Returns the paths of files that are written all the time, where a set is due every `every_s` seconds."""
        least_s = max(LEAST_S, every_s)
        return frozenset(path for path in self._passed if now - self._began[path] >= least_s)

    def _is_saved(self, one: FileState, age_s: float) -> bool:
        """Whether a version of a file is a save: of weights, and whole."""
        if self._find_kind(one) is not FileKind.WEIGHTS:
            return False
        evidence = self._is_whole(one)
        return age_s >= PAUSE_S if evidence is None else evidence

    def _note_save(self, save: _Save) -> None:
        self._forget(save.path)
        row = mask(save.path)
        for path, began in self._began.items():
            if mask(path) == row or save.began <= began or path in self._passed:
                continue
            first = self._first[path].setdefault(row, save)
            if first is not save and save.began > first.ended + (0.0 if save.path == first.path else PAUSE_S):
                self._passed.add(path)

    def _forget(self, path: str) -> None:
        self._began.pop(path, None)
        self._first.pop(path, None)
        self._passed.discard(path)
