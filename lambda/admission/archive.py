"""Lists what an archive of code holds without unpacking it: in bounded memory and time, however it lies about itself."""

from __future__ import annotations

import posixpath
import stat
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any, cast

from contract import archives
from refusals.entries import ListedEntry, entries

MOST_LISTED = 20_000
"""Entries that a listing keeps; code has fewer, and what has more is taken without a look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What is known of an archive."""

    names: frozenset[str] = frozenset()
    """Files and links, from the archive's root."""
    links: frozenset[str] = frozenset()
    """Those that are symbolic links; what lies behind one is unknown."""
    whole: bool = True
    """Every entry was seen. Otherwise a name that is not here may be there all the same."""
    broken: str = ""
    """Why the archive cannot be read."""
    refused: str = ""
    """Why no node unpacks it, as the second half of a sentence."""

    def lacks(self, path: str) -> bool:
        """Whether it is certain that nothing has this path, or lies below it."""
        path = posixpath.normpath(path)
        if not self.whole or path.startswith(("/", "..")) or path == ".":
            return False
        above = {str(parent) for parent in PurePosixPath(path).parents}
        return not (path in self.names or above & self.links or any(one.startswith(f"{path}/") for one in self.names))


class Enough(Exception):
    """More of the archive is not looked at."""


class Bounded:
    """A file that is read until `enough` says so."""

    def __init__(self, file: IO[bytes], enough: Callable[[], bool]) -> None:
        self._file = file
        self._enough = enough

    def read(self, size: int = -1) -> bytes:
        """Raises Enough."""
        if self._enough():
            raise Enough
        return self._file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def listing(file: IO[bytes], name: str, enough: Callable[[], bool]) -> Listing:
    """The entries, as far as they are reached before `enough`."""
    names, links = set[str](), set[str]()
    try:
        for entry in entries(cast("IO[bytes]", Bounded(file, enough)), name):
            if len(names) >= MOST_LISTED:
                raise Enough
            _check(entry, links)
            if entry.kind != stat.S_IFDIR:
                names.add(posixpath.normpath(entry.name))
            if entry.kind in (stat.S_IFLNK, stat.S_IFCHR):  # a link of a zip is told as the latter
                links.add(posixpath.normpath(entry.name))
    except (Enough, archives.TooLarge):
        return Listing(names=frozenset(names), links=frozenset(links), whole=False)
    except archives.Refused as problem:
        return Listing(whole=False, refused=str(problem))
    except Exception as problem:
        if type(problem).__module__.startswith("botocore"):
            raise  # S3's trouble, and no word about these bytes
        # Whatever the readers of the formats raise (zlib.error, struct.error, RecursionError ...) is about the bytes.
        return Listing(whole=False, broken=str(problem) or type(problem).__name__)
    return Listing(names=frozenset(names), links=frozenset(links))


def _check(entry: ListedEntry, links: Collection[str]) -> None:
    """Raises Refused as a node would; what only its disk could tell (a way through another link) is left to it."""
    archives.inside(entry.name)
    if entry.hard:
        try:
            archives.inside(entry.target)
        except archives.Refused:
            raise archives.hard_link_out(entry.name, entry.target) from None
    elif entry.kind == stat.S_IFLNK or entry.read is not None:
        target = entry.read() if entry.read else entry.target
        archives.check_link(
            entry.name, target, lambda: archives.certainly_leaves(posixpath.normpath(entry.name), target, links)
        )
