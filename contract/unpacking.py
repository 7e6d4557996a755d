"""Unpacks untrusted archives: nothing lands outside the folder, no devices or other special files are made, and everything has a limit.

It does not use `extractall`: its safe filters came with patch releases of Python (3.10.12, 3.11.4), do not cover zip archives,
and have no limits.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from contract.archives import Refused, check_link, hard_link_out, inside, named, target_of, tarred, zipped

MOST_ENTRIES = 100_000
MOST_BYTES = 10 * 1024**3
MOST_DIRECTORY = 32 * 1024**2
"""The most bytes of a zip's list of entries."""
CHUNK = 1024**2


class NoRoom(Refused):
    """The disk is full; the archive may be sound."""


@dataclass(frozen=True)
class ArchiveEntry:
    """One entry of a tar or zip archive, in words that both share."""

    name: str
    mode: int
    """File mode with the file type, as in st_mode."""
    size: int
    target: str = ""
    """Target of a symbolic link as written, of a hard link from the archive's root."""
    hard: bool = False
    content: Callable[[], IO[bytes]] | None = None
    modified: float | None = None
    """Unix time; builds from sources depend on which file is newer."""


def unpack(archive: Path, folder: Path, *, most_entries: int = MOST_ENTRIES, most_bytes: int = MOST_BYTES) -> None:
    """Unpacks a .zip by its name, anything else as tar or tar.gz. Raises Refused, with the name of the entry at fault."""
    folder.mkdir(parents=True, exist_ok=True)
    root = folder.resolve()
    total = count = 0
    try:
        for count, entry in enumerate(_zip(archive) if archive.suffix == ".zip" else _tar(archive), 1):
            total += entry.size
            if count > most_entries:
                raise Refused(f"has too many entries: {named(entry.name)} is one more than {most_entries:,}")
            if total > most_bytes or entry.size < 0:
                raise Refused(
                    f"is too large: with {named(entry.name)} it would take {total:,} bytes, more than {most_bytes:,}"
                )
            _put(entry, root)
    except Refused:
        raise
    except Exception as problem:
        # Any error of the formats' readers (zlib.error, struct.error, RecursionError ...) is about these bytes.
        raise Refused(f"cannot be unpacked: {str(problem)[:300]}") from problem
    if not count:
        raise Refused("is empty")
    _check_links(root)


def _put(entry: ArchiveEntry, root: Path) -> None:
    try:
        _place(entry, root)
    except OSError as problem:
        if problem.errno is None:  # gzip's own error for a corrupt archive
            raise
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoRoom(f"fills the disk at its entry {named(entry.name)}") from problem
        raise Refused(f"has the entry {named(entry.name)}, which cannot be written: {problem.strerror}") from problem


def _place(entry: ArchiveEntry, root: Path) -> None:
    place = _inside(entry.name, root)
    kind = stat.S_IFMT(entry.mode)
    if kind == stat.S_IFDIR:
        place.mkdir(parents=True, exist_ok=True)
        return
    if place == root:
        raise Refused(f"has the entry {named(entry.name)}, which would replace the folder itself")
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
        # Owner, setuid, setgid and sticky bits are dropped.
        place.chmod(entry.mode & 0o777 | 0o600)
        if entry.modified is not None:
            os.utime(place, (entry.modified, entry.modified))
    else:
        raise Refused(f"has the entry {named(entry.name)}, which is neither a file nor a folder nor a link")


def _inside(name: str, root: Path) -> Path:
    """Returns where an entry goes. Resolves its real folder, because an earlier entry may have replaced the folder by a link."""
    place = root / inside(name)
    if place != root and not _is_inside(Path(os.path.realpath(place.parent)), root):
        raise Refused(f"has the entry {name!r}, which points out of its folder through a link")
    return place


def _is_inside(real: Path, root: Path) -> bool:
    return real == root or root in real.parents


def _symbolic_link(entry: ArchiveEntry, place: Path, root: Path) -> None:
    check_link(
        entry.name,
        entry.target,
        lambda: not _is_inside(Path(os.path.realpath(place.parent / entry.target)), root),
    )
    place.symlink_to(entry.target)


def _hard_link(entry: ArchiveEntry, place: Path, root: Path) -> None:
    try:
        source = _inside(entry.target, root)
    except Refused:
        raise hard_link_out(entry.name, entry.target) from None
    if source.is_symlink() or not source.is_file():
        raise Refused(f"has the entry {named(entry.name)}, a hard link to {entry.target!r}, which is not a file in it")
    os.link(source, place, follow_symlinks=False)


def _check_links(root: Path) -> None:
    """Checks all links once more: a link can be harmless when it is made and lead outside once another link exists."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            if path.is_symlink() and not _is_inside(Path(os.path.realpath(path)), root):
                raise Refused(f"has the entry {str(path.relative_to(root))!r}, a link out of its folder")


def _tar(archive: Path) -> Iterator[ArchiveEntry]:
    with archive.open("rb") as packed:
        for tar, member, kind in tarred(packed):

            def content(tar: tarfile.TarFile = tar, member: tarfile.TarInfo = member) -> IO[bytes]:
                source = tar.extractfile(member)
                if source is None:
                    raise tarfile.ReadError(f"{member.name} has no content")
                return source

            mode = kind | member.mode & 0o777
            yield ArchiveEntry(member.name, mode, member.size, member.linkname, member.islnk(), content, member.mtime)


def _zip(archive: Path) -> Iterator[ArchiveEntry]:
    with archive.open("rb") as packed:
        for whole, info, kind in zipped(packed, MOST_DIRECTORY):
            if info.flag_bits & 1:
                raise Refused(f"has the entry {named(info.filename)}, which is encrypted")

            def content(whole: zipfile.ZipFile = whole, info: zipfile.ZipInfo = info) -> IO[bytes]:
                return whole.open(info)

            target = target_of(whole, info) if kind == stat.S_IFLNK else ""
            mode = kind | (info.external_attr >> 16 & 0o777 or 0o644)
            yield ArchiveEntry(info.filename, mode, info.file_size, target, False, content)
