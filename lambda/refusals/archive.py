"""Lists the entries of an archive of code without unpacking it, in bounded memory and time even if the archive lies about itself."""

from __future__ import annotations

import posixpath
import stat
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any, cast

from contract import archives
from refusals.entries import ListedEntry, entries

MOST_CODE = 5 * 1024**3
"""S3 copies at most 5 GB in one call."""
MOST_LISTED = 20_000
"""The most entries that a listing keeps. Code has fewer; an archive with more is accepted without a complete look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The known contents of an archive."""

    names: frozenset[str] = frozenset()
    """Paths of files and links, from the archive's root."""
    links: frozenset[str] = frozenset()
    """Paths of symbolic links; what lies behind a link is unknown."""
    size: int = 0
    """Bytes of the files that were seen, unpacked: at least so many land on a node's disk."""
    whole: bool = True
    """Whether every entry was seen. If not, a name that is missing here may still be in the archive."""
    broken: str = ""
    """Why the archive cannot be read."""
    refused: str = ""
    """Why every node would refuse to unpack it, as the second half of a sentence."""

    def lacks(self, path: str) -> bool:
        """Whether the archive certainly has nothing at this path, nor below it."""
        path = posixpath.normpath(path)
        if not self.whole or path.startswith(("/", "..")) or path == ".":
            return False
        above = {str(parent) for parent in PurePosixPath(path).parents}
        return not (path in self.names or above & self.links or any(one.startswith(f"{path}/") for one in self.names))


class Enough(Exception):
    """Ends the look at an archive before its end."""


class Bounded:
    """A file that can be read until `enough` returns true."""

    def __init__(self, file: IO[bytes], enough: Callable[[], bool]) -> None:
        self._file = file
        self._enough = enough

    def read(self, size: int = -1) -> bytes:
        """Raises Enough when `enough` returns true."""
        if self._enough():
            raise Enough
        return self._file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def listing(file: IO[bytes], name: str, enough: Callable[[], bool]) -> Listing:
    """Returns the entries that are reached before `enough` returns true."""
    names, links, size = set[str](), set[str](), 0
    try:
        for entry in entries(cast("IO[bytes]", Bounded(file, enough)), name):
            if len(names) >= MOST_LISTED:
                raise Enough
            _check(entry, links)
            if entry.kind == stat.S_IFREG and not entry.hard:
                size += max(0, entry.size)
            if entry.kind != stat.S_IFDIR:
                names.add(posixpath.normpath(entry.name))
            if entry.kind in (stat.S_IFLNK, stat.S_IFCHR):  # zip links are reported as the latter
                links.add(posixpath.normpath(entry.name))
    except (Enough, archives.TooLarge):
        return Listing(names=frozenset(names), links=frozenset(links), size=size, whole=False)
    except archives.Refused as problem:
        return Listing(whole=False, refused=str(problem))
    except Exception as problem:
        if type(problem).__module__.startswith("botocore"):
            raise  # a problem of S3, which says nothing about these bytes
        # Any error of the formats' readers (zlib.error, struct.error, RecursionError ...) is about the bytes.
        return Listing(whole=False, broken=str(problem) or type(problem).__name__)
    return Listing(names=frozenset(names), links=frozenset(links), size=size)


def object_problems(where: str, *, size: int, archived: bool) -> list[str]:
    """Rejects an archive of code that nobody can copy, by its head; `where` names the field and the address."""
    if archived:
        return [f"{where} is in an archive class of S3 and not restored; allowed: an object that can be read at once"]
    if not 0 < size <= MOST_CODE:
        told = f"has {size / 1024**3:.1f} GB" if size else "is empty"
        return [f"{where} {told}; allowed: up to 5 GB (large data belongs into a data bucket)"]
    return []


def absent(where: str) -> str:
    """Returns the refusal of code that is not there."""
    return f"{where} does not exist; allowed: an archive that was uploaded before the start"


def _check(entry: ListedEntry, links: Collection[str]) -> None:
    """Raises Refused as a node would. Only a node's disk can check a path through another link, so this check leaves it to the node."""
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
