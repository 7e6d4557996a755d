"""Shows a listing to layouts: what lies in which folder, what a marker says, and which files are whole by their format.

Everything here may be written by a hostile job: reads and checks have a budget for each listing, and nothing is unpickled.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator

from agent.layouts.formats import is_whole
from agent.layouts.listing import MOST_ROWS, RESTS_S, FolderListing, Remembered
from agent.layouts.pickles import MOST_PICKLE, ShardList, read_shards

MOST_CHECKS, MOST_READ, MOST_PICKLES = 20_000, 512 * 1024 * 1024, 16 * 1024 * 1024
"""Files that are judged, bytes that are read, and bytes of metadata that are taken apart, for one listing at most. What is left over is not
whole before the next one."""
MOST_TEXT = 4096
"""Bytes of a marker that holds a name or a number."""
MOST_HOPS = 8
MOVED_S = 0.05
"""A rename dates the file and its folder a tick of the kernel's clock apart."""
DIGITS = re.compile(r"\d+")
NUMBER = re.compile(r"(\d{1,255})$")


class View:
    """One listing."""

    def __init__(self, listing: FolderListing) -> None:
        self._listing = listing
        listing.judgements.keep(listing.files)
        self._checks, self._bytes, self._pickles = MOST_CHECKS, MOST_READ, MOST_PICKLES
        self._names = defaultdict[str, list[str]](list)
        self._inner = defaultdict[str, list[str]](list)
        for path in sorted(listing.files):
            self._names[posixpath.dirname(path)].append(posixpath.basename(path))
        self._folders = ["", *sorted(_with_parents(listing))]
        for path in self._folders[1:]:
            self._inner[posixpath.dirname(path)].append(path)

    def names(self, folder: str) -> list[str]:
        """Returns the names of the files and links that lie in a folder itself."""
        return self._names.get(folder, [])

    def folders(self) -> list[str]:
        """Returns every folder that there is in order, CHECKPOINT_DIR itself (empty) first."""
        return self._folders

    def inner(self, folder: str) -> list[str]:
        """Returns the paths of the folders that lie in a folder itself."""
        return self._inner.get(folder, [])

    def under(self, folder: str) -> frozenset[str]:
        """Returns the paths of all files below a folder."""
        return frozenset(join(here, name) for here in (folder, *self.below(folder)) for name in self.names(here))

    def below(self, folder: str) -> list[str]:
        """Returns the paths of all folders below a folder."""
        found = list(self.inner(folder))
        for one in found:
            found += self.inner(one)
        return found

    def has(self, path: str) -> bool:
        return path in self._listing.files

    def resolve(self, path: str) -> str:
        """Returns the path of the file or folder to which a link here leads, or the path itself; empty where that is not in the listing."""
        for _ in range(MOST_HOPS):
            state = self._listing.files.get(path)
            if state is None:
                return path if path in self._inner or path in self._names or path in self._listing.folders else ""
            if not state.target:
                return path
            path = posixpath.normpath(posixpath.join(posixpath.dirname(path), state.target))
        return ""

    def is_link(self, path: str) -> bool:
        state = self._listing.files.get(path)
        return state is not None and bool(state.target)

    def size(self, path: str) -> int:
        """Returns how many bytes a file has; -1 where it is not in the listing."""
        state = self._listing.files.get(self.resolve(path))
        return -1 if state is None else state.size

    def read(self, path: str, offset: int, most: int) -> bytes:
        """Returns bytes of a file as `FolderListing.read` does; b"" once the budget is used up, so that nothing more counts as whole."""
        if self._bytes < 0 or not self.has(path):
            return b""
        found = self._listing.read(self.resolve(path), offset, most)[:most]
        self._bytes -= len(found)
        return found

    def text(self, path: str, most: int = MOST_TEXT) -> str | None:
        """Returns the text of a small file without space around it; None where it is none, or too long."""
        if not 0 <= self.size(path) <= most:
            return None
        found = self.read(path, 0, most + 1)
        try:
            return found.decode().strip() if len(found) <= most else None
        except UnicodeDecodeError:
            return None

    def is_whole(self, path: str) -> bool | None:
        """Decides whether a file is whole by its format; None where that does not tell. One that was not is judged anew each time: whoever
        writes to a mapped file need not change its size or its time."""
        at = self.resolve(path)
        state = self._listing.files.get(at)
        if state is None:
            return False
        key, known = (at, *state.content), self._listing.judgements.formats
        if key in known:
            return known[key]
        self._checks -= 1
        if self._checks < 0:
            return False
        found = is_whole(lambda offset, most: self.read(at, offset, most), state.size, posixpath.basename(at))
        if found is not False:
            known[key] = found
        return found

    def shards(self, path: str) -> ShardList | None:
        """Returns what a metadata of torch.distributed.checkpoint lists; None where there is none that is all there."""
        at = self.resolve(path)
        state = self._listing.files.get(at)
        if state is None or not 0 < state.size <= MOST_PICKLE or self.read(at, 0, 1) != b"\x80":
            return None
        key, known = (at, *state.content), self._listing.judgements.shards
        if key not in known and self._pickles > 0:
            self._pickles -= state.size
            known[key] = read_shards(self.read(at, 0, MOST_PICKLE + 1))
        return known.get(key)

    def recall(self, row: str, name: str, written_ns: int) -> Counter[str] | None:
        """Returns the names of the last checkpoint of a row that was whole in a listing before, other than the one of this name; None where
        there was none, or where an earlier save has used the name: its files may still be there."""
        known = self._listing.judgements.rows.get(row, ())
        if any(one.name == name and one.written_ns != written_ns for one in known):
            return None
        return next((one.names for one in reversed(known) if one.name != name), None)

    def remember(self, row: str, one: Remembered) -> None:
        """Takes note of a checkpoint that is whole, for the listings to come."""
        rows = self._listing.judgements.rows
        before = rows.pop(row, ())  # so that the row is the last one
        rows[row] = (*(known for known in before if known.name != one.name), one)[-2:]
        if len(rows) > MOST_ROWS:
            del rows[next(iter(rows))]

    def find_torn(self, paths: Iterable[str]) -> str:
        """Returns why one of these files is not whole by its format; empty where none says so."""
        torn = next((path for path in sorted(paths) if self.is_whole(path) is False), "")
        return f"{torn} is not all there" if torn else ""

    def written_ns(self, path: str) -> int:
        """Returns when the bytes of a file were written, UTC epoch nanoseconds, which a restore and a rename leave as it was; -1 where it
        is not in the listing."""
        state = self._listing.files.get(self.resolve(path))
        return -1 if state is None else state.mtime_ns

    def find_newer(self, paths: Iterable[str], marker: str) -> str:
        """Returns why a marker is older than one of the files that it stands for; empty where it is not."""
        limit = self.written_ns(marker)
        newer = next((path for path in sorted(paths) if self.written_ns(path) > limit), "")
        return f"{newer} was written after {posixpath.basename(marker)}" if newer else ""

    def changed_s(self, paths: Iterable[str]) -> float:
        """Returns when the last of these files changed or came to its place; 0 where there is none."""
        files = self._listing.files
        return max((self._listing.changed_s(files[path]) for path in paths if path in files), default=0.0)

    def rests(self, paths: Iterable[str], rest_s: float = RESTS_S) -> bool:
        """Whether none of these files has changed for so long."""
        return self._listing.now - self.changed_s(paths) >= rest_s

    def find_removal(self, folder: str) -> str:
        """Returns in which folder below this one an entry was removed just now, after the last one was added: then it is being deleted."""
        for here in (folder, *self.below(folder)):
            state = self._listing.folders.get(here)
            if state is None or self._listing.now - state.mtime_ns / 1e9 > RESTS_S:
                continue
            added = self.changed_s(join(here, name) for name in self.names(here))
            inner = (
                self._listing.folders[one].mtime_ns / 1e9 for one in self.inner(here) if one in self._listing.folders
            )
            if state.mtime_ns / 1e9 > max(added, *inner, 0.0) + MOVED_S:
                return f"{here or 'the folder'} is being deleted"
        return ""


def join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def ancestors(path: str) -> Iterator[str]:
    """Yields the folders in which a path lies, the innermost first, without CHECKPOINT_DIR itself."""
    here = posixpath.dirname(path)
    while here:
        yield here
        here = posixpath.dirname(here)


def lies_in(path: str, folders: Container[str]) -> bool:
    """Whether a path lies in one of these folders."""
    return any(one in folders for one in ancestors(path))


def split_number(path: str) -> tuple[str, int]:
    """Returns a path without the number at its end, and the number; -1 where it ends in none."""
    found = NUMBER.search(path)
    return (path[: found.start()], int(found[1])) if found else (path, -1)


def count_names(paths: Iterable[str], folder: str) -> Counter[str]:
    """Returns how many files of each name are among those paths that lie in a folder, `#` for each number: names with a step or a loss
    are those of another checkpoint too, and of names with a rank there are as many as ranks."""
    prefix = f"{folder}/" if folder else ""
    return Counter(DIGITS.sub("#", path[len(prefix) :]) for path in paths if path.startswith(prefix))


def find_missing(names: Counter[str], before: Counter[str]) -> str:
    """Returns the first name of which the checkpoint before had more files than this one; empty where there is none."""
    return min(before - names, default="")


def _with_parents(listing: FolderListing) -> set[str]:
    found = set[str]()
    for path in (*listing.folders, *map(posixpath.dirname, listing.files)):
        if path and path not in found:
            found.update((path, *ancestors(path)))
    return found
