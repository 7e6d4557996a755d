"""Knows what each file of a folder is, and whether it is all there, by a few bytes of it that are read once for each of its states."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from agent.layouts.formats import NUMPY, is_cut_json, is_whole
from agent.layouts.kinds import FileKind, find_kind
from agent.layouts.pickles import MOST_PICKLE, find_end
from agent.sets.pieces import Pieces
from agent.snapshot import FileState

HEAD, END = 64 * 1024, 4096
MOST = 20_000
"""Files of which this is remembered at a time."""
Read = Callable[[FileState, int, int], bytes]
"""A file, an offset, and at most so many bytes; b"" where there are none."""
T = TypeVar("T")


class FileEvidence:
    """Of one folder. Not for use by two threads at once."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._kinds: dict[Hashable, FileKind] = {}
        self._pieces: dict[Hashable, Pieces] = {}
        self._whole: dict[Hashable, bool | None] = {}

    def find_kind(self, one: FileState) -> FileKind:
        """Returns what a file is; a link is what it leads to, and no part of it."""
        if one.target:
            return FileKind.NOTE
        return _recall(self._kinds, one, lambda: find_kind(self._reader(one), one.size, one.path))

    def is_whole(self, one: FileState) -> bool | None:
        """Whether a file is whole by its format; None where that does not tell. One that was not is judged anew: whoever writes to a mapped
        file need not change its size or its time."""
        if one.target:
            return True
        found = _recall(self._whole, one, lambda: self._judge(one))
        if found is False:
            del self._whole[_key(one)]
        return found

    def count_pieces(self, one: FileState) -> Pieces:
        """Returns whether a file is one pickle or one array, or several of them: such files have no format that tells whether more is to
        come."""
        return Pieces.OTHER if one.target else _recall(self._pieces, one, lambda: self._count(one))

    def read_head(self, one: FileState) -> bytes:
        """Returns the first bytes of a file, HEAD at most."""
        return self._read(one, 0, HEAD)

    def read_end(self, one: FileState, size: int) -> bytes:
        """Returns the last bytes of a file's first `size`, END at most, where these are more than its head."""
        return self._read(one, size - END, END) if size > HEAD else b""

    def _judge(self, one: FileState) -> bool | None:
        read = self._reader(one)
        found = is_whole(read, one.size, one.path)
        if found and read(0, len(NUMPY)) == NUMPY:
            return None  # another array may follow
        if found is False and self.find_kind(one).is_small_text:
            return False if is_cut_json(read(0, one.size)) else None
        return found

    def _count(self, one: FileState) -> Pieces:
        read = self._reader(one)
        head = read(0, len(NUMPY))
        if head == NUMPY:
            found = is_whole(read, one.size, one.path)
            return Pieces.OTHER if found is False else Pieces.ONE if found else Pieces.SEVERAL
        if head[:1] != b"\x80":
            return Pieces.OTHER
        if one.size > MOST_PICKLE:
            return Pieces.SEVERAL
        end = find_end(read(0, one.size))
        return Pieces.OTHER if not end else Pieces.ONE if end == one.size else Pieces.SEVERAL

    def _reader(self, one: FileState) -> Callable[[int, int], bytes]:
        return lambda offset, size: self._read(one, offset, size)


def _key(one: FileState) -> Hashable:
    return one.path, one.ctime_ns, *one.content


def _recall(known: dict[Hashable, T], one: FileState, judge: Callable[[], T]) -> T:
    key = _key(one)
    if key not in known:
        if len(known) >= MOST:
            known.clear()
        known[key] = judge()
    return known[key]
