"""A folder in memory with the times that a kernel keeps, written to in steps; a listing of it can be taken between any two."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from random import Random

from agent.layouts import FolderListing
from agent.layouts.listing import Judgements
from agent.snapshot import UNFINISHED, FileState, FolderState

BEGAN = 1_790_000_000.0
STEP_S = 0.01
"""Between two operations."""


@dataclass
class _Entry:
    data: bytearray
    mtime: float
    ctime: float
    inode: int
    target: str = ""


@dataclass
class Disk:
    """CHECKPOINT_DIR of one rank."""

    random: Random = field(default_factory=lambda: Random(1))
    now: float = BEGAN
    files: dict[str, _Entry] = field(default_factory=dict)
    folders: dict[str, float] = field(default_factory=lambda: {"": BEGAN})
    reads: int = 0
    bytes_read: int = 0
    judgements: Judgements = field(default_factory=Judgements)
    _inode: int = 0

    def put(self, path: str, data: bytes = b"weights") -> None:
        """Writes a file in one go, with the folders above it."""
        for _ in chain(self.make(posixpath.dirname(path)), self.write(path, data, cuts=0)):
            pass

    def write(self, path: str, data: bytes, *, cuts: int = 3) -> Iterator[None]:
        """Writes a file in place, as open(path, "wb") does: truncated first, then piece by piece."""
        yield from self._pieces(path, data, sorted(self.random.randint(0, len(data)) for _ in range(cuts)))

    def write_over_zeros(self, path: str, data: bytes) -> Iterator[None]:
        """Writes a file whose whole length is allocated first."""
        self._create(path).data[:] = bytes(len(data))
        yield from self._tick(path)
        cut = self.random.randint(0, len(data))
        self.files[path].data[:cut] = data[:cut]
        yield from self._tick(path)
        self.files[path].data[:] = data
        yield from self._tick(path)

    def replace(self, path: str, data: bytes, beside: str = ".part") -> Iterator[None]:
        """Writes a file beside, and renames it into its place."""
        yield from self.write(path + beside, data)
        yield from self.rename(path + beside, path)

    def rename(self, path: str, to: str) -> Iterator[None]:
        """Renames a file or a folder, onto a file that may be there."""
        self.now += STEP_S
        for one in [one for one in self.files if one == path or one.startswith(f"{path}/")]:
            entry = self.files.pop(one)
            self.files[to + one[len(path) :]] = entry
            if one == path:
                entry.ctime = self.now
        for one in [one for one in self.folders if one == path or one.startswith(f"{path}/")]:
            self.folders[to + one[len(path) :]] = self.folders.pop(one)
        self._touch_parents(path, to)
        yield

    def remove(self, path: str) -> Iterator[None]:
        """Removes a file, a link or an empty folder."""
        self.now += STEP_S
        if path in self.files:
            del self.files[path]
        else:
            del self.folders[path]
        self._touch_parents(path)
        yield

    def remove_tree(self, folder: str) -> Iterator[None]:
        """Removes a folder entry by entry in any order, as shutil.rmtree does."""
        inner = [path for path in (*self.files, *self.folders) if posixpath.dirname(path) == folder and path]
        self.random.shuffle(inner)
        for path in inner:
            yield from self.remove_tree(path) if path in self.folders else self.remove(path)
        yield from self.remove(folder)

    def link(self, path: str, target: str) -> Iterator[None]:
        self._create(path).target = target
        yield from self._tick(path)

    def make(self, folder: str) -> Iterator[None]:
        """Makes a folder and those above it."""
        for part in reversed([folder, *_parents(folder)]):
            if part not in self.folders:
                self.now += STEP_S
                self.folders[part] = self.now
                self._touch_parents(part)
                yield

    def restore(self) -> Disk:
        """Returns the folder as a new attempt gets it: all inodes are new, all times are what they were."""
        other = Disk(Random(2), self.now + 1000, folders=dict(self.folders))
        for path in self.random.sample(sorted(self.files), len(self.files)):
            entry = self.files[path]
            other.now += STEP_S
            other._inode += 1
            other.files[path] = _Entry(bytearray(entry.data), entry.mtime, other.now, other._inode, entry.target)
        return other

    def read(self, path: str, offset: int, most: int) -> bytes:
        entry = self.files.get(path)
        self.reads += 1
        found = bytes(entry.data[offset : offset + most]) if entry else b""
        self.bytes_read += len(found)
        return found

    def listing(self, later_s: float = 0.0) -> FolderListing:
        """Returns what the agent sees so many seconds from now."""
        hidden = [path for path in self.files if any(part.endswith(UNFINISHED) for part in path.split("/"))]
        files = {path: _state(path, entry) for path, entry in self.files.items() if path not in hidden}
        folders = {
            path: FolderState(0o755, int(mtime * 1e9))
            for path, mtime in self.folders.items()
            if path and not any(part.endswith(UNFINISHED) for part in path.split("/"))
        }
        return FolderListing(files, folders, self.read, attrgetter("changed_s"), self.now + later_s, self.judgements)

    def content(self, paths: Iterable[str]) -> dict[str, bytes]:
        return {path: bytes(self.files[path].data) for path in paths if not self.files[path].target}

    def _pieces(self, path: str, data: bytes, cuts: list[int]) -> Iterator[None]:
        self._create(path)
        yield from self._tick(path)
        for cut in (*cuts, len(data)):
            self.files[path].data[:] = data[:cut]
            yield from self._tick(path)

    def _create(self, path: str) -> _Entry:
        """Opens a file for writing: one that is there keeps its inode and loses its bytes."""
        if path not in self.files or self.files[path].target:
            self._inode += 1
            self.now += STEP_S
            self.files[path] = _Entry(bytearray(), self.now, self.now, self._inode)
            self._touch_parents(path)
        self.files[path].data.clear()
        self.files[path].mtime = self.files[path].ctime = self.now
        return self.files[path]

    def _tick(self, path: str) -> Iterator[None]:
        self.now += STEP_S
        self.files[path].mtime = self.files[path].ctime = self.now
        yield

    def _touch_parents(self, *paths: str) -> None:
        for path in paths:
            self.folders[posixpath.dirname(path)] = self.now


def _state(path: str, entry: _Entry) -> FileState:
    size = len(entry.target or entry.data)
    return FileState(
        path, size, int(entry.mtime * 1e9), int(entry.ctime * 1e9), entry.inode, 0o644, target=entry.target
    )


def _parents(folder: str) -> list[str]:
    parent = posixpath.dirname(folder)
    return [parent, *_parents(parent)] if parent else []
