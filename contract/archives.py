"""What reads archives of strangers: their entries in bounded memory, and which of them may lie where.

Admit looks at an archive with the same words and rules with which a node unpacks it.
"""

from __future__ import annotations

import gzip
import os
import stat
import sys
import tarfile
import zipfile
from collections.abc import Callable, Collection, Iterator
from pathlib import PurePosixPath
from typing import IO, Any, cast

MOST_HEADER = 1024**2
"""Bytes of one entry's own description in a tar."""
MOST_DEPTH = 100
"""Folders within folders; what walks or removes them goes as deep by recursion."""
MOST_PATH = 1024
"""Bytes of an entry's name: Linux takes 4,096 with the folder ahead of it."""
KINDS = {tarfile.DIRTYPE: stat.S_IFDIR, tarfile.SYMTYPE: stat.S_IFLNK, tarfile.LNKTYPE: stat.S_IFREG}


class Refused(ValueError):
    """The archive is not unpacked to its end; the message is the second half of a sentence: "has the entry ..."."""


class TooLarge(ValueError):
    """An archive's own description of its entries is larger than what is read of one."""


class Metered:
    """A file of which only so much may be read until the next allowance.

    Both formats, tar and zip, say in a header how much of it is to be taken into memory, and the header may lie.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self.left = sys.maxsize
        self.last = b""
        """What was read last."""

    def read(self, size: int = -1) -> bytes:
        """Raises TooLarge where more is asked for, and there, than is left."""
        data: bytes = self._file.read(size if 0 <= size <= self.left else min(self.left, sys.maxsize - 1) + 1)
        if len(data) > self.left:
            raise TooLarge("its description of its entries is larger than any honest one")
        self.left -= len(data)
        self.last = data
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def named(name: str) -> str:
    """An entry's name as a refusal shows it."""
    text = repr(name)
    return text if len(text) <= 200 else f"{text[:200]}..."


def inside(name: str) -> PurePosixPath:
    """The path of an entry's name. Raises Refused for one that is too long, or leads out of the archive's folder by itself."""
    path = PurePosixPath(name)
    size, depth = len(os.fsencode(name)), len(path.parts)
    if size > MOST_PATH or depth > MOST_DEPTH:
        raise Refused(
            f"has the entry {name[:100]!r}..., whose name has {size:,} bytes in {depth:,} parts: "
            f"at most {MOST_PATH:,} bytes and {MOST_DEPTH} parts"
        )
    if not name or "\0" in name or path.is_absolute() or ".." in path.parts:
        raise Refused(f"has the entry {named(name)}, which points out of its folder")
    return path


def check_link(name: str, target: str, leaves: Callable[[], bool]) -> None:
    """Raises Refused for a symbolic link that is absolute, or of which `leaves` says so."""
    if not target or target.startswith("/") or leaves():
        raise Refused(f"has the entry {named(name)}, a link to {target!r}, out of its folder")


def hard_link_out(name: str, target: str) -> Refused:
    """For a hard link to what is out of the folder."""
    return Refused(f"has the entry {named(name)}, a hard link to {target!r}, out of its folder")


def certainly_leaves(name: str, target: str, links: Collection[str]) -> bool:
    """Whether a relative link leads out of the folder, as far as names tell: what goes through one of `links`, paths of other
    links, may lead anywhere."""
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


def tarred(packed: IO[bytes]) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo, int]]:
    """The members of a tar or tar.gz, each with its kind as in st_mode. Raises what the readers of the formats raise."""
    is_gzip = packed.read(2) == b"\x1f\x8b"
    packed.seek(0)
    file = Metered(gzip.GzipFile(fileobj=packed) if is_gzip else packed)
    file.left = MOST_HEADER
    with tarfile.open(fileobj=cast("IO[bytes]", file), mode="r:") as tar:
        for member in tar:
            file.left = sys.maxsize
            yield tar, member, KINDS.get(member.type, stat.S_IFREG if member.isreg() else stat.S_IFCHR)
            # Its list of members would grow with the archive.
            tar.members = []  # type: ignore[attr-defined]
            file.left = MOST_HEADER
    if file.last.strip(b"\0"):  # tarfile takes a header that it cannot read for the end, and says nothing
        raise tarfile.ReadError("what follows its last readable entry is neither an entry nor the end")


def zipped(packed: IO[bytes], most_directory: int) -> Iterator[tuple[zipfile.ZipFile, zipfile.ZipInfo, int]]:
    """The members of a zip whose list of them has at most so many bytes, each with its kind as in st_mode."""
    file = Metered(packed)
    file.left = most_directory
    with zipfile.ZipFile(cast("IO[bytes]", file)) as whole:
        file.left = sys.maxsize
        for info in whole.infolist():
            mode = info.external_attr >> 16
            yield whole, info, stat.S_IFMT(mode) or (stat.S_IFDIR if info.is_dir() else stat.S_IFREG)


def target_of(whole: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    """Where a symbolic link of a zip leads; a piece of it, because the entry may be a bomb."""
    with whole.open(info) as source:
        return os.fsdecode(source.read(MOST_PATH + 1))
