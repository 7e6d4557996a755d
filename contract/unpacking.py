"""Unpacks archives of strangers: nothing lands outside the folder, nothing special lands in it, and there is a limit to everything.

Not by `extractall`: its safe filters came with patch releases of Python (3.10.12, 3.11.4), they leave zip archives alone, and
they know no limits.
"""

from __future__ import annotations

import errno
import gzip
import os
import shutil
import stat
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from contract.archives import MOST_HEADER, Metered

MOST_ENTRIES = 100_000
MOST_BYTES = 10 * 1024**3
MOST_DEPTH = 100
"""Folders within folders; what walks or removes them goes as deep by recursion."""
MOST_PATH = 1024
"""Bytes of an entry's name: Linux takes 4,096 with the folder ahead of it."""
MOST_DIRECTORY = 32 * 1024**2
"""Bytes of a zip's list of entries."""
CHUNK = 1024**2


class Refused(ValueError):
    """The archive is not unpacked to its end; the message is the second half of a sentence: "has the entry ..."."""


class NoRoom(Refused):
    """The archive may be sound; the disk is full."""


@dataclass(frozen=True)
class Entry:
    """One entry of a tar or zip archive, in words that both share."""

    name: str
    mode: int
    """With the file type, as in st_mode."""
    size: int
    target: str = ""
    """Of a symbolic link as it stands, of a hard link from the archive's root."""
    hard: bool = False
    content: Callable[[], IO[bytes]] | None = None
    modified: float | None = None
    """Unix time. What is built from sources goes by which file is newer."""


def unpack(archive: Path, folder: Path, *, most_entries: int = MOST_ENTRIES, most_bytes: int = MOST_BYTES) -> None:
    """Unpacks a .zip by its name, anything else as tar or tar.gz. Raises Refused, with the name of the entry at fault."""
    folder.mkdir(parents=True, exist_ok=True)
    root = folder.resolve()
    total = count = 0
    try:
        for count, entry in enumerate(_zip(archive) if archive.suffix == ".zip" else _tar(archive), 1):
            total += entry.size
            if count > most_entries:
                raise Refused(f"has too many entries: {_named(entry)} is one more than {most_entries:,}")
            if total > most_bytes or entry.size < 0:
                raise Refused(
                    f"is too large: with {_named(entry)} it would take {total:,} bytes, more than {most_bytes:,}"
                )
            _put(entry, root)
    except Refused:
        raise
    except Exception as problem:
        # Whatever the readers of the formats raise (zlib.error, struct.error, RecursionError ...) is about these bytes.
        raise Refused(f"cannot be unpacked: {str(problem)[:300]}") from problem
    if not count:
        raise Refused("is empty")
    _check_links(root)


def _named(entry: Entry) -> str:
    text = repr(entry.name)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _put(entry: Entry, root: Path) -> None:
    try:
        _place(entry, root)
    except OSError as problem:
        if problem.errno is None:  # gzip's own word on a corrupt archive
            raise
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoRoom(f"fills the disk at its entry {_named(entry)}") from problem
        raise Refused(f"has the entry {_named(entry)}, which cannot be written: {problem.strerror}") from problem


def _place(entry: Entry, root: Path) -> None:
    place = _inside(entry.name, root)
    kind = stat.S_IFMT(entry.mode)
    if kind == stat.S_IFDIR:
        place.mkdir(parents=True, exist_ok=True)
        return
    if place == root:
        raise Refused(f"has the entry {_named(entry)}, which would replace the folder itself")
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_symlink() or place.is_file():
        place.unlink()
    if entry.hard:
        _hard_link(entry, place, root)
    elif kind == stat.S_IFLNK:
        _symbolic_link(entry, place, root)
    elif kind == stat.S_IFREG and entry.content is not None:
        with entry.content() as source, place.open("wb") as sink:
            shutil.copyfileobj(source, sink, CHUNK)
        # Owner, setuid, setgid and sticky bits stay behind.
        place.chmod(entry.mode & 0o777 | 0o600)
        if entry.modified is not None:
            os.utime(place, (entry.modified, entry.modified))
    else:
        raise Refused(f"has the entry {_named(entry)}, which is neither a file nor a folder nor a link")


def _inside(name: str, root: Path) -> Path:
    """Where an entry goes. Its folder is looked up for real, because an earlier entry may have made a link of it."""
    path = PurePosixPath(name)
    size, depth = len(os.fsencode(name)), len(path.parts)
    if size > MOST_PATH or depth > MOST_DEPTH:
        raise Refused(
            f"has the entry {name[:100]!r}..., whose name has {size:,} bytes in {depth:,} parts: "
            f"at most {MOST_PATH:,} bytes and {MOST_DEPTH} parts"
        )
    if not name or "\0" in name or path.is_absolute() or ".." in path.parts:
        raise Refused(f"has the entry {name!r}, which points out of its folder")
    place = root / path
    if place != root and not _is_inside(Path(os.path.realpath(place.parent)), root):
        raise Refused(f"has the entry {name!r}, which points out of its folder through a link")
    return place


def _is_inside(real: Path, root: Path) -> bool:
    return real == root or root in real.parents


def _symbolic_link(entry: Entry, place: Path, root: Path) -> None:
    real = Path(os.path.realpath(place.parent / entry.target))
    if not entry.target or entry.target.startswith("/") or not _is_inside(real, root):
        raise Refused(f"has the entry {_named(entry)}, a link to {entry.target!r}, out of its folder")
    place.symlink_to(entry.target)


def _hard_link(entry: Entry, place: Path, root: Path) -> None:
    try:
        source = _inside(entry.target, root)
    except Refused:
        raise Refused(f"has the entry {_named(entry)}, a hard link to {entry.target!r}, out of its folder") from None
    if source.is_symlink() or not source.is_file():
        raise Refused(f"has the entry {_named(entry)}, a hard link to {entry.target!r}, which is no file in it")
    os.link(source, place, follow_symlinks=False)


def _check_links(root: Path) -> None:
    """A link can be harmless when it is made and lead outside once another link exists."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            if path.is_symlink() and not _is_inside(Path(os.path.realpath(path)), root):
                raise Refused(f"has the entry {str(path.relative_to(root))!r}, a link out of its folder")


def _tar(archive: Path) -> Iterator[Entry]:
    kinds = {tarfile.DIRTYPE: stat.S_IFDIR, tarfile.SYMTYPE: stat.S_IFLNK, tarfile.LNKTYPE: stat.S_IFREG}
    with archive.open("rb") as packed:
        is_gzip = packed.read(2) == b"\x1f\x8b"
        packed.seek(0)
        file = Metered(gzip.GzipFile(fileobj=packed) if is_gzip else packed)
        file.left = MOST_HEADER
        with tarfile.open(fileobj=cast("IO[bytes]", file), mode="r:") as tar:
            for member in tar:
                file.left = sys.maxsize
                kind = kinds.get(member.type, stat.S_IFREG if member.isreg() else stat.S_IFCHR)

                def content(member: tarfile.TarInfo = member) -> IO[bytes]:
                    source = tar.extractfile(member)
                    if source is None:
                        raise tarfile.ReadError(f"{member.name} has no content")
                    return source

                mode = kind | member.mode & 0o777
                yield Entry(member.name, mode, member.size, member.linkname, member.islnk(), content, member.mtime)
                file.left = MOST_HEADER
        if file.last.strip(b"\0"):  # tarfile takes a header that it cannot read for the end, and says nothing
            raise tarfile.ReadError("what follows its last readable entry is neither an entry nor the end")


def _zip(archive: Path) -> Iterator[Entry]:
    with archive.open("rb") as packed:
        file = Metered(packed)
        file.left = MOST_DIRECTORY
        with zipfile.ZipFile(cast("IO[bytes]", file)) as whole:
            file.left = sys.maxsize
            for info in whole.infolist():
                if info.flag_bits & 1:
                    raise Refused(f"has the entry {info.filename!r}, which is encrypted")
                mode = info.external_attr >> 16
                kind = stat.S_IFMT(mode) or (stat.S_IFDIR if info.is_dir() else stat.S_IFREG)
                target = _target(whole, info) if kind == stat.S_IFLNK else ""

                def content(info: zipfile.ZipInfo = info) -> IO[bytes]:
                    return whole.open(info)

                yield Entry(info.filename, kind | (mode & 0o777 or 0o644), info.file_size, target, False, content)


def _target(whole: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    """Where a symbolic link leads; a piece of it, because the entry may be a bomb."""
    with whole.open(info) as source:
        return os.fsdecode(source.read(MOST_PATH + 1))
