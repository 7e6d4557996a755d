"""Lists the entries of an archive of code without unpacking it, in bounded memory and time even if the archive lies about itself."""

from __future__ import annotations

import posixpath
import stat
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import IO, Any, cast

from contract import archives
from contract.archives import ArchiveEntry
from contract.entries import CHUNK, TooLarge, entries

MOST_CODE = 5 * 1024**3
"""S3 copies at most 5 GB in one call."""
MOST_LISTED = 20_000
"""The most entries that a listing keeps. Code has fewer; an archive with more is accepted without a complete look."""
MOST_DIRECTORY = 16 * 1024**2
"""The most bytes of a zip's list of entries."""
MOST_KEPT = 1024**2
"""The most bytes of a file that a listing keeps."""
MOST_CHECKED = 64 * 1024**2
"""The most bytes, unpacked, of a zip's files whose checksums a listing checks: a second's work. A tar.gz has one checksum, at its end."""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file of an archive, with its first bytes."""

    mode: int
    content: bytes
    """All of it, or MOST_KEPT bytes."""


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
    allowed: str = ""
    """What an archive may have in place of what is refused."""
    kept: Mapping[str, KeptFile] = field(default_factory=dict)
    """Files that were to be kept, by their paths."""

    def lacks(self, path: str) -> bool:
        """Whether the archive certainly has nothing at this path, nor below it."""
        path = posixpath.normpath(path)
        if not self.whole or path.startswith(("/", "..")) or path == ".":
            return False
        return not (path in self.names or _above(path) & self.links or self.has_folder(path))

    def has_folder(self, path: str) -> bool:
        """Whether something certainly lies below this path."""
        folder = f"{posixpath.normpath(path)}/"
        return any(one.startswith(folder) for one in self.names)


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


def listing(file: IO[bytes], name: str, enough: Callable[[], bool], kept: Collection[str] = ()) -> Listing:
    """Returns the entries that are reached before `enough` returns true, with the first bytes of the files in `kept`."""
    seen = _Seen(kept, has_sums=name.endswith(".zip"))
    try:
        for entry in entries(cast("IO[bytes]", Bounded(file, enough)), name, MOST_DIRECTORY):
            if len(seen.kinds) >= MOST_LISTED:
                raise Enough
            seen.add(entry)
        seen.check_names()
    except (Enough, TooLarge):
        return seen.listing(whole=False)
    except archives.Refused as problem:
        return Listing(whole=False, refused=str(problem), allowed=problem.allowed)
    except Exception as problem:
        if type(problem).__module__.startswith("botocore"):
            raise  # a problem of S3, which says nothing about these bytes
        # Any error of the formats' readers (zlib.error, struct.error, RecursionError ...) is about the bytes.
        return Listing(whole=False, broken=str(problem) or type(problem).__name__)
    return seen.listing(whole=True)


def object_problems(where: str, *, size: int, archived: bool) -> list[str]:
    """Rejects an archive of code that cannot be copied, by its head; `where` names the field and the address."""
    if archived:
        return [f"{where} is in an archive class of S3 and not restored; allowed: an object that can be read at once"]
    if not 0 < size <= MOST_CODE:
        told = f"has {size / 1024**3:.1f} GB" if size else "is empty"
        return [f"{where} {told}; allowed: up to 5 GB (large data belongs in a data bucket)"]
    return []


def absent(where: str) -> str:
    """Returns the refusal of code that is not there."""
    return f"{where} does not exist; allowed: an archive that was uploaded before the start"


class _Seen:
    """What is known of an archive while its entries are read, as a node's disk would have it. Raises Refused where a node would."""

    def __init__(self, kept: Collection[str], *, has_sums: bool) -> None:
        self.kinds: dict[str, int] = {}
        """The file type of every path."""
        self._kept, self._has_sums = {posixpath.normpath(path) for path in kept}, has_sums
        self._links, self._files = set[str](), dict[str, KeptFile]()
        self._tally, self._size, self._checked = archives.Tally(), 0, 0

    def add(self, entry: ArchiveEntry) -> None:
        self._tally.add(entry)
        path = str(archives.check_entry(entry))
        if entry.hard:
            self._check_hard_link(entry)
        elif entry.kind == stat.S_IFLNK:
            archives.check_link(
                entry.name, entry.target, lambda: archives.certainly_leaves(path, entry.target, self._links)
            )
        self._files.pop(path, None)
        if entry.kind == stat.S_IFREG and not entry.hard:
            self._size += entry.size
            self._read(entry, path)
        stays_link = entry.kind == stat.S_IFDIR and path in self._links
        if path != "." and not stays_link:
            self._set_kind(path, entry.kind)

    def check_names(self) -> None:
        """Only the names of the whole archive tell which paths are folders."""
        paths = sorted(f"{path}/" for path in self.kinds)  # so that what lies below a path follows it
        for path, after in pairwise(paths):
            name = path.removesuffix("/")
            if after.startswith(path) and self.kinds[name] == stat.S_IFREG and not _above(name) & self._links:
                raise archives.file_and_folder(name)

    def listing(self, *, whole: bool) -> Listing:
        """Returns what was seen."""
        names = frozenset(path for path, kind in self.kinds.items() if kind != stat.S_IFDIR)
        return Listing(names=names, links=frozenset(self._links), size=self._size, whole=whole, kept=self._files)

    def _set_kind(self, path: str, kind: int) -> None:
        before = self.kinds.get(path, kind)
        if stat.S_IFDIR in (before, kind) and before != kind and not _above(path) & self._links:
            raise archives.file_and_folder(path)
        self.kinds[path] = kind
        (self._links.add if kind == stat.S_IFLNK else self._links.discard)(path)

    def _check_hard_link(self, entry: ArchiveEntry) -> None:
        """Only a node's disk can check a path through a symbolic link."""
        try:
            target = str(archives.inside(entry.target))
        except archives.Refused:
            raise archives.hard_link_out(entry.name, entry.target) from None
        if self.kinds.get(target) != stat.S_IFREG and not _above(target) & self._links:
            raise archives.hard_link_to_no_file(entry.name, entry.target)

    def _read(self, entry: ArchiveEntry, path: str) -> None:
        """Keeps the beginning of a file that is to be kept; in a zip, checks its sum."""
        self._checked += entry.size
        checked = self._has_sums and entry.light and self._checked <= MOST_CHECKED
        if entry.content is None or not (checked or (path in self._kept and not self._has_sums)):
            return
        with entry.content() as source:
            content = source.read(MOST_KEPT)
            while checked and source.read(CHUNK):
                pass
        if path in self._kept:
            self._files[path] = KeptFile(entry.mode, content)


def _above(path: str) -> set[str]:
    """Returns the folders of a plain path. An archive may have so many, so deep, that objects for them would take minutes."""
    return {path[:place] for place, letter in enumerate(path) if letter == "/"}
