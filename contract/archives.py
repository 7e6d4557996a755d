"""Reads untrusted archives: lists their entries in bounded memory, and decides which entries may be unpacked.

Admit checks an archive by the same rules by which a node unpacks it.
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
"""The most bytes that may describe one entry of a tar."""
MOST_DEPTH = 100
"""The deepest nesting of folders; the code that walks or removes folders recurses as deep."""
MOST_PATH = 1024
"""The most bytes of an entry's name: Linux takes 4,096, including the folder in front of it."""
KINDS = {tarfile.DIRTYPE: stat.S_IFDIR, tarfile.SYMTYPE: stat.S_IFLNK, tarfile.LNKTYPE: stat.S_IFREG}


class Refused(ValueError):
    """The archive must not be unpacked further; the message is the second half of a sentence: "has the entry ..."."""


class TooLarge(ValueError):
    """An archive describes its entries in more bytes than a reader takes."""


class Metered:
    """Limits how many bytes of a file may be read until the next allowance.

    Tar and zip headers say how many bytes must be read into memory, and a header may lie.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self.left = sys.maxsize
        self.last = b""
        """The bytes that were read last."""

    def read(self, size: int = -1) -> bytes:
        """Raises TooLarge when the caller asks for more than is left, and the file has more."""
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
    """Returns the path of an entry's name. Raises Refused for one that is too long, or that by itself leads out of the archive's folder."""
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
    """Raises Refused for a symbolic link that is absolute, or for which `leaves` returns true."""
    if not target or target.startswith("/") or leaves():
        raise Refused(f"has the entry {named(name)}, a link to {target!r}, out of its folder")


def hard_link_out(name: str, target: str) -> Refused:
    """Returns the refusal of a hard link to something outside the folder."""
    return Refused(f"has the entry {named(name)}, a hard link to {target!r}, out of its folder")


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


def tarred(packed: IO[bytes]) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo, int]]:
    """Yields the members of a tar or tar.gz, each with its kind as in st_mode. Raises what the readers of the formats raise."""
    is_gzip = packed.read(2) == b"\x1f\x8b"
    packed.seek(0)
    file = Metered(gzip.GzipFile(fileobj=packed) if is_gzip else packed)
    file.left = MOST_HEADER
    with tarfile.open(fileobj=cast("IO[bytes]", file), mode="r:") as tar:
        for member in tar:
            file.left = sys.maxsize
            yield tar, member, KINDS.get(member.type, stat.S_IFREG if member.isreg() else stat.S_IFCHR)
            # Otherwise tarfile's list of members would grow with the archive.
            tar.members = []  # type: ignore[attr-defined]
            file.left = MOST_HEADER
    if file.last.strip(b"\0"):  # tarfile silently takes a header that it cannot read for the end
        raise tarfile.ReadError("what follows its last readable entry is neither an entry nor the end")


def zipped(packed: IO[bytes], most_directory: int) -> Iterator[tuple[zipfile.ZipFile, zipfile.ZipInfo, int]]:
    """Yields the members of a zip, each with its kind as in st_mode; the zip's list of members may have `most_directory` bytes."""
    file = Metered(packed)
    file.left = most_directory
    with zipfile.ZipFile(cast("IO[bytes]", file)) as whole:
        file.left = sys.maxsize
        for info in whole.infolist():
            mode = info.external_attr >> 16
            yield whole, info, stat.S_IFMT(mode) or (stat.S_IFDIR if info.is_dir() else stat.S_IFREG)


def target_of(whole: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    """Reads where a symbolic link of a zip leads. Reads only a part of it, because the entry may be a zip bomb."""
    with whole.open(info) as source:
        return os.fsdecode(source.read(MOST_PATH + 1))
