"""The job's code: unpacks the archive that Admit copied, and refuses one that reaches out of its folder."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from agent.failures import CannotStart

MOST_ENTRIES = 100_000
MOST_BYTES = 10 * 1024**3


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


def unpack(archive: Path, folder: Path, *, most_entries: int = MOST_ENTRIES, most_bytes: int = MOST_BYTES) -> None:
    """Unpacks a .zip by its name, anything else as tar or tar.gz. Raises CannotStart naming the entry at fault."""
    folder.mkdir(parents=True, exist_ok=True)
    root = folder.resolve()
    total = 0
    try:
        for count, entry in enumerate(_zip(archive) if archive.suffix == ".zip" else _tar(archive), 1):
            total += entry.size
            if count > most_entries or total > most_bytes:
                raise CannotStart(
                    f"the code archive is too large at {entry.name!r}: at most {most_entries} entries and {most_bytes} bytes"
                )
            _place(entry, root)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, ValueError, RuntimeError) as problem:
        raise CannotStart(f"the code archive {archive.name} cannot be unpacked: {problem}") from problem
    except OSError as problem:
        if problem.errno == errno.ENOSPC:
            raise CannotStart("the disk is full of the unpacked code: ask for a larger volume_gb") from problem
        raise CannotStart(f"the code archive {archive.name} cannot be unpacked: {problem}") from problem
    _check_links(root)


def _place(entry: Entry, root: Path) -> None:
    place = _inside(entry.name, root)
    kind = stat.S_IFMT(entry.mode)
    if kind == stat.S_IFDIR:
        place.mkdir(parents=True, exist_ok=True)
        return
    if place == root:
        raise CannotStart(f"entry {entry.name!r} of the code archive would replace the folder itself")
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_symlink() or place.is_file():
        place.unlink()
    if entry.hard:
        _hard_link(entry, place, root)
    elif kind == stat.S_IFLNK:
        _symbolic_link(entry, place, root)
    elif kind == stat.S_IFREG and entry.content is not None:
        with entry.content() as source, place.open("wb") as sink:
            shutil.copyfileobj(source, sink, 1024 * 1024)
        place.chmod(entry.mode & 0o777 | 0o600)
    else:
        raise CannotStart(f"entry {entry.name!r} of the code archive is neither a file nor a folder nor a link")


def _inside(name: str, root: Path) -> Path:
    """Where an entry goes. Its folder is looked up for real, because an earlier entry may have made a link of it."""
    path = PurePosixPath(name)
    if not name or "\0" in name or path.is_absolute() or ".." in path.parts:
        raise CannotStart(f"entry {name!r} of the code archive points out of its folder")
    place = root / path
    if place != root and not _is_inside(Path(os.path.realpath(place.parent)), root):
        raise CannotStart(f"entry {name!r} of the code archive points out of its folder through a link")
    return place


def _is_inside(real: Path, root: Path) -> bool:
    return real == root or root in real.parents


def _symbolic_link(entry: Entry, place: Path, root: Path) -> None:
    real = Path(os.path.realpath(place.parent / entry.target))
    if not entry.target or entry.target.startswith("/") or not _is_inside(real, root):
        raise CannotStart(f"entry {entry.name!r} of the code archive links to {entry.target!r}, out of its folder")
    place.symlink_to(entry.target)


def _hard_link(entry: Entry, place: Path, root: Path) -> None:
    try:
        source = _inside(entry.target, root)
    except CannotStart as problem:
        raise CannotStart(f"entry {entry.name!r} of the code archive is a link: {problem}") from None
    if source.is_symlink() or not source.is_file():
        raise CannotStart(f"entry {entry.name!r} of the code archive links to {entry.target!r}, which is no file in it")
    os.link(source, place, follow_symlinks=False)


def _check_links(root: Path) -> None:
    """A link can be harmless when it is made and lead outside once another link exists."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            if path.is_symlink() and not _is_inside(Path(os.path.realpath(path)), root):
                raise CannotStart(f"entry {str(path.relative_to(root))!r} of the code archive links out of its folder")


def _tar(archive: Path) -> Iterator[Entry]:
    kinds = {tarfile.DIRTYPE: stat.S_IFDIR, tarfile.SYMTYPE: stat.S_IFLNK, tarfile.LNKTYPE: stat.S_IFREG}
    with tarfile.open(archive) as tar:
        for member in tar:
            kind = kinds.get(member.type, stat.S_IFREG if member.isreg() else stat.S_IFCHR)

            def content(member: tarfile.TarInfo = member) -> IO[bytes]:
                source = tar.extractfile(member)
                if source is None:
                    raise tarfile.ReadError(f"{member.name} has no content")
                return source

            yield Entry(member.name, kind | member.mode & 0o777, member.size, member.linkname, member.islnk(), content)


def _zip(archive: Path) -> Iterator[Entry]:
    with zipfile.ZipFile(archive) as whole:
        for info in whole.infolist():
            mode = info.external_attr >> 16
            kind = stat.S_IFMT(mode) or (stat.S_IFDIR if info.is_dir() else stat.S_IFREG)
            target = whole.read(info).decode() if kind == stat.S_IFLNK and info.file_size < 4096 else ""

            def content(info: zipfile.ZipInfo = info) -> IO[bytes]:
                return whole.open(info)

            yield Entry(info.filename, kind | (mode & 0o777 or 0o644), info.file_size, target, False, content)
