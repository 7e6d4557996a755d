"""Unpacks untrusted archives: nothing lands outside the folder, no devices or other special files are made, and everything has a limit.

It does not use `extractall`: its safe filters came with patch releases of Python (3.10.12, 3.11.4), do not cover zip archives,
and have no limits.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path, PurePosixPath

from contract.archives import (
    MOST_BYTES,
    MOST_ENTRIES,
    ArchiveEntry,
    Refused,
    Tally,
    check_entry,
    check_link,
    file_and_folder,
    hard_link_out,
    hard_link_to_no_file,
    inside,
    named,
)
from contract.entries import CHUNK, entries

MOST_DIRECTORY = 32 * 1024**2
"""The most bytes of a zip's list of entries."""


class NoRoom(Refused):
    """The disk is full; the archive may be sound."""


def unpack(archive: Path, folder: Path, *, most_entries: int = MOST_ENTRIES, most_bytes: int = MOST_BYTES) -> None:
    """Unpacks a .zip by its name, anything else as tar or tar.gz. Raises Refused, with the name of the entry at fault."""
    folder.mkdir(parents=True, exist_ok=True)
    root, tally = folder.resolve(), Tally(most_entries, most_bytes)
    try:
        with archive.open("rb") as packed:
            for entry in entries(packed, archive.name, MOST_DIRECTORY):
                tally.add(entry)
                _put(entry, root)
    except Refused:
        raise
    except Exception as problem:
        # Any error of the formats' readers (zlib.error, struct.error, RecursionError ...) is about these bytes.
        raise Refused(f"cannot be unpacked: {str(problem)[:300]}", "a whole archive") from problem
    if not tally.entries:
        raise Refused("is empty", "an archive of what the command runs")
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
    place = _inside(check_entry(entry), root)
    if entry.kind == stat.S_IFDIR:
        _make_folder(place, root)
        return
    _make_folder(place.parent, root)
    if place.is_symlink() or place.is_file():
        place.unlink()
    elif place.is_dir():
        raise file_and_folder(entry.name)
    if entry.hard:
        _hard_link(entry, place, root)
    elif entry.kind == stat.S_IFLNK:
        _symbolic_link(entry, place, root)
    else:
        assert entry.content is not None
        with entry.content() as source, place.open("wb") as sink:
            shutil.copyfileobj(source, sink, CHUNK)
        # Owner, setuid, setgid and sticky bits are dropped.
        place.chmod(entry.mode & 0o777 | 0o600)
        if entry.modified is not None:
            os.utime(place, (entry.modified, entry.modified))


def _make_folder(place: Path, root: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        if file := next((one for one in (place, *place.parents) if one.is_file()), None):
            raise file_and_folder(str(file.relative_to(root))) from None
        raise


def _inside(path: PurePosixPath, root: Path) -> Path:
    """Returns where an entry goes. Resolves its real folder, because an earlier entry may have replaced the folder by a link."""
    place = root / path
    if place != root and not _is_inside(Path(os.path.realpath(place.parent)), root):
        raise Refused(f"has the entry {named(str(path))}, which points out of its folder through a link")
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
        source = _inside(inside(entry.target), root)
    except Refused:
        raise hard_link_out(entry.name, entry.target) from None
    if source.is_symlink() or not source.is_file():
        raise hard_link_to_no_file(entry.name, entry.target)
    os.link(source, place, follow_symlinks=False)


def _check_links(root: Path) -> None:
    """Checks all links once more: a link can be harmless when it is made and lead outside once another link exists."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            if path.is_symlink() and not _is_inside(Path(os.path.realpath(path)), root):
                raise Refused(f"has the entry {str(path.relative_to(root))!r}, a link out of its folder")
