"""Decides which entries of untrusted archives may be unpacked. Admit checks an archive by the same rules by which a node unpacks it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO

MOST_ENTRIES = 100_000
MOST_BYTES = 10 * 1024**3
MOST_DEPTH = 100
"""The deepest nesting of folders; the code that walks or removes folders recurses as deep."""
MOST_PATH = 1024
"""The most bytes of an entry's name: Linux takes 4,096, including the folder in front of it."""
PLAIN_ENTRIES = "plain relative names, and links that stay in the archive"


class Refused(ValueError):
    """The archive must not be unpacked further; the message is the second half of a sentence: "has the entry ..."."""

    def __init__(self, problem: str, allowed: str = PLAIN_ENTRIES) -> None:
        super().__init__(problem)
        self.allowed = allowed
        """What an archive may have instead, or how to pack it."""


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
    sparse: bool = False
    """Whether a few bytes unpack to the whole size."""
    light: bool = True
    """Whether its content is read in little memory. LZMA has a dictionary, of up to gigabytes."""

    @property
    def kind(self) -> int:
        """The file type, as in st_mode."""
        return stat.S_IFMT(self.mode)


class Tally:
    """Counts entries and their bytes against the limits of an archive."""

    def __init__(self, most_entries: int = MOST_ENTRIES, most_bytes: int = MOST_BYTES) -> None:
        self._most_entries, self._most_bytes = most_entries, most_bytes
        self.entries = self.bytes = 0

    def add(self, entry: ArchiveEntry) -> None:
        """Raises Refused for the first entry that is too much."""
        self.entries += 1
        self.bytes += entry.size
        allowed = (
            f"up to {self._most_entries:,} entries of {self._most_bytes:,} bytes together (big files belong in S3)"
        )
        if self.entries > self._most_entries:
            raise Refused(f"has too many entries: {named(entry.name)} is one more than {self._most_entries:,}", allowed)
        if self.bytes > self._most_bytes or entry.size < 0:
            raise Refused(
                f"is too large: with {named(entry.name)} it would take {self.bytes:,} bytes, more than {self._most_bytes:,}",
                allowed,
            )


def named(name: str) -> str:
    """An entry's name as a refusal shows it."""
    text = repr(name)
    return text if len(text) <= 200 else f"{text[:200]}..."


def check_entry(entry: ArchiveEntry) -> PurePosixPath:
    """Returns where an entry goes. Raises Refused for one that no folder may have, whatever else is in the archive."""
    path = inside(entry.name)
    if entry.kind == stat.S_IFDIR:
        return path
    if path == PurePosixPath():
        raise Refused(f"has the entry {named(entry.name)}, which would replace the folder itself")
    if not entry.hard and entry.kind not in (stat.S_IFREG, stat.S_IFLNK):
        raise Refused(f"has the entry {named(entry.name)}, which is neither a file nor a folder nor a link")
    return path


def inside(name: str) -> PurePosixPath:
    """Returns the path of an entry's name. Raises Refused for one that is too long, or that by itself leads out of the archive's folder."""
    path = PurePosixPath(name)
    size, depth = len(os.fsencode(name)), len(path.parts)
    if size > MOST_PATH or depth > MOST_DEPTH:
        raise Refused(
            f"has the entry {name[:100]!r}..., whose name has {size:,} bytes in {depth:,} parts: "
            f"at most {MOST_PATH:,} bytes and {MOST_DEPTH} parts"
        )
    if not name or "\0" in name or path.is_absolute() or ".." in path.parts:
        raise points_out(name)
    return path


def points_out(name: str) -> Refused:
    """Returns the refusal of an entry whose name leads elsewhere."""
    return Refused(f"has the entry {named(name)}, which points out of its folder")


def check_link(name: str, target: str, leaves: Callable[[], bool]) -> None:
    """Raises Refused for a symbolic link that is absolute, or for which `leaves` returns true."""
    if not target or target.startswith("/") or leaves():
        raise Refused(f"has the entry {named(name)}, a link to {named(target)}, out of its folder")


def hard_link_out(name: str, target: str) -> Refused:
    """Returns the refusal of a hard link to something outside the folder."""
    return Refused(f"has the entry {named(name)}, a hard link to {named(target)}, out of its folder")


def hard_link_to_no_file(name: str, target: str) -> Refused:
    """Returns the refusal of a hard link whose target is not a file of the archive, or comes after the link."""
    return Refused(f"has the entry {named(name)}, a hard link to {named(target)}, which is not a file in it")


def file_and_folder(name: str) -> Refused:
    """Returns the refusal of a name that cannot be both."""
    return Refused(f"has {named(name)} both as a file and as a folder", "each name once")


def certainly_leaves(name: str, target: str, links: Collection[str]) -> bool:
    """Whether a relative link certainly leads out of the folder, judged by names alone: a path through one of `links`, the paths of
    other links, may lead anywhere."""
    here = list(PurePosixPath(name).parts[:-1])
    for number in range(len(here)):
        if "/".join(here[: number + 1]) in links:
            return False
    for part in PurePosixPath(target).parts:
        if part == "..":
            if not here:
                return True
            here.pop()
            continue
        here.append(part)
        if "/".join(here) in links:
            return False
    return False
