"""Lists the entries of an archive without unpacking it: in bounded memory and time, however it lies about itself."""

from __future__ import annotations

import gzip
import posixpath
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any, cast

from admission.words import plain
from contract.archives import MOST_HEADER, Metered, TooLarge

MOST_DIRECTORY = 16 * 1024**2
"""Bytes of a zip's list of entries."""
MOST_LISTED = 20_000
"""Entries that a listing keeps; code has fewer, and what has more is taken without a look."""
MOST_NAME = 4096
"""Characters of a name that a listing keeps; Linux opens no longer one. Names of a megabyte each compress to nothing."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry, in words that tar and zip share."""

    name: str
    kind: int
    """The file type, as in st_mode."""
    size: int
    target: str = ""
    hard: bool = False


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
            if len(entry.name) > MOST_NAME:
                raise Enough
            if entry.kind != stat.S_IFDIR:
                names.add(posixpath.normpath(entry.name))
            if entry.kind in (stat.S_IFLNK, stat.S_IFCHR):  # a link of a zip is told as the latter
                links.add(posixpath.normpath(entry.name))
    except (Enough, TooLarge):
        return Listing(names=frozenset(names), links=frozenset(links), whole=False)
    except Exception as problem:
        if type(problem).__module__.startswith("botocore"):
            raise  # S3's trouble, and no word about these bytes
        # Whatever the readers of the formats raise (zlib.error, struct.error, RecursionError ...) is about the bytes.
        return Listing(whole=False, broken=str(problem) or type(problem).__name__)
    return Listing(names=frozenset(names), links=frozenset(links))


def entries(file: IO[bytes], name: str) -> Iterator[Entry]:
    """Every entry; `name` tells .zip from tar. Raises what the readers of the formats raise."""
    return _zip(file) if name.endswith(".zip") else _tar(file)


def _tar(packed: IO[bytes]) -> Iterator[Entry]:
    kinds = {tarfile.DIRTYPE: stat.S_IFDIR, tarfile.SYMTYPE: stat.S_IFLNK, tarfile.LNKTYPE: stat.S_IFREG}
    is_gzip = packed.read(2) == b"\x1f\x8b"
    packed.seek(0)
    file = Metered(gzip.GzipFile(fileobj=packed) if is_gzip else packed)
    file.left = MOST_HEADER
    with tarfile.open(fileobj=cast("IO[bytes]", file), mode="r:") as tar:
        for member in tar:
            # Sparse files are a few bytes that unpack to terabytes; nobody builds an image of one.
            is_file = member.isreg() and not member.issparse()
            kind = kinds.get(member.type, stat.S_IFREG if is_file else stat.S_IFCHR)
            yield Entry(member.name, kind, member.size, member.linkname, member.islnk())
            # Its list of members would grow with the archive.
            tar.members = []  # type: ignore[attr-defined]
            file.left = MOST_HEADER
    if file.last.strip(b"\0"):  # tarfile takes a header that it cannot read for the end, and says nothing
        raise tarfile.ReadError("what follows its last readable entry is neither an entry nor the end")


def _zip(packed: IO[bytes]) -> Iterator[Entry]:
    file = Metered(packed)
    file.left = MOST_DIRECTORY
    with zipfile.ZipFile(cast("IO[bytes]", file)) as whole:
        for info in whole.infolist():
            if info.flag_bits & 1:
                raise ValueError(f"its entry {plain(info.filename)} is encrypted")
            kind = stat.S_IFMT(info.external_attr >> 16) or (stat.S_IFDIR if info.is_dir() else stat.S_IFREG)
            # Where a link of a zip leads stands in its content, which is not read here.
            yield Entry(info.filename, stat.S_IFCHR if kind == stat.S_IFLNK else kind, info.file_size)
