"""Reads the entries of an archive one by one without unpacking it, in bounded memory even if the archive lies about itself."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import IO

from contract import archives
from refusals.wording import plain

MOST_DIRECTORY = 16 * 1024**2
"""The most bytes of a zip's list of entries."""


@dataclass(frozen=True, slots=True)
class ListedEntry:
    """One entry of a tar or zip archive, in terms that fit both."""

    name: str
    kind: int
    """The file type, as in st_mode."""
    size: int
    target: str = ""
    hard: bool = False
    read: Callable[[], str] | None = None
    """Reads the target of a link in a zip."""


def entries(file: IO[bytes], name: str) -> Iterator[ListedEntry]:
    """Yields every entry; `name` tells .zip from tar. Raises what the readers of the formats raise."""
    return _zip(file) if name.endswith(".zip") else _tar(file)


def _tar(packed: IO[bytes]) -> Iterator[ListedEntry]:
    for _, member, kind in archives.tarred(packed):
        # A sparse file has a few bytes and unpacks to terabytes; nobody builds an image from one.
        shown = stat.S_IFCHR if member.issparse() else kind
        yield ListedEntry(member.name, shown, member.size, member.linkname, member.islnk())


def _zip(packed: IO[bytes]) -> Iterator[ListedEntry]:
    for whole, info, kind in archives.zipped(packed, MOST_DIRECTORY):
        if info.flag_bits & 1:
            raise ValueError(f"its entry {plain(info.filename)} is encrypted")
        if kind != stat.S_IFLNK:
            yield ListedEntry(info.filename, kind, info.file_size)
        else:  # the content is the link's target
            read = partial(archives.target_of, whole, info)
            yield ListedEntry(info.filename, stat.S_IFCHR, info.file_size, read=read)
