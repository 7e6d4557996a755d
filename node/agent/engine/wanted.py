"""Which requests bring back the files of commits. What a commit says is not trusted: whoever runs a job can write one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from agent.engine.places import PART
from agent.snapshot import LATEST_US, PATH_BYTES
from agent.symlinks import MOST_TARGET, stays_inside
from contract.commits import CommittedFile, CommittedFolder, CommittedLink

NAME_BYTES = 255
"""The longest name of a file or a folder that Linux takes."""
SPAN = 8 * 1024 * 1024
"""The most bytes of one request for small files that lie together."""
TOGETHER = 64 * 1024 * 1024
"""The most bytes of one request for parts of a large file, unless one part is larger."""
GAP = 256 * 1024
"""Bytes between two files that are fetched and thrown away, rather than asking twice."""
MOST_PART, MOST_PARTS = 5 * 1024**3, 10_000
"""What S3 takes."""
_SHA256, _CRC32 = re.compile(r"[0-9a-f]{64}"), re.compile(r"([1-9][0-9]{0,9})-[0-9a-f]{64}")


class Unusable(Exception):
    """A set has a file that is missing or differs from its commit; the set before it is tried next."""


@dataclass(frozen=True)
class Span:
    """A request for files that lie together in an object."""

    key: str
    start: int
    end: int
    files: tuple[CommittedFile, ...]


@dataclass(frozen=True)
class Piece:
    """A request for parts of one large file: bytes from `start` up to `end` of the file."""

    file: CommittedFile
    start: int
    end: int


def check(
    files: Sequence[CommittedFile], links: Sequence[CommittedLink] = (), folders: Sequence[CommittedFolder] = ()
) -> None:
    """Raises Unusable where a path leaves the folder, appears twice or lies in a file or a link; where a link leads out of the folder; or
    where a number, a time or a digest is none."""
    paths, above = set[str](), set[str]()
    for one in (*files, *links, *folders):
        _check_path(one.path)
        if one.path in paths:
            raise Unusable(f"its path {one.path!r} appears twice")
        paths.add(one.path)
        above |= {str(parent) for parent in PurePosixPath(one.path).parents}
    for file in files:
        if file.size < 0 or file.offset < 0 or not file.key or not _is_digested(file):
            raise Unusable(f"{file.path!r} has no place, no size or no digest")
    for dated in (*files, *folders):
        if not 0 <= dated.mtime_us <= LATEST_US:
            raise Unusable(f"{dated.path!r} has a time that no file can have")
    if both := sorted(above & (paths - {one.path for one in folders})):
        raise Unusable(f"its path {both[0]!r} is a file or a link, and a folder")
    targets = {link.path: link.target for link in links}
    for link in links:
        if (
            not 0 < len(link.target.encode()) < MOST_TARGET
            or "\0" in link.target
            or not stays_inside(link.path, targets)
        ):
            raise Unusable(f"its link {link.path!r} leads out of the folder, to {link.target[:80]!r}")


def _check_path(text: str) -> None:
    path = PurePosixPath(text)
    if not text or path.is_absolute() or ".." in path.parts:
        raise Unusable(f"its path {text!r} leaves the folder")
    if str(path) != text or "\0" in text or path.name in ("", "."):
        raise Unusable(f"its path {text!r} is not a plain path")
    if max(len(text.encode()) / PATH_BYTES, *(len(part.encode()) / NAME_BYTES for part in path.parts)) > 1:
        raise Unusable(f"its path {text[:80]!r}... is longer than any that is committed")


def _is_digested(file: CommittedFile) -> bool:
    """Whether it has one digest, and, where that is of parts, no more of these than S3 takes."""
    if not file.crc32:
        return bool(_SHA256.fullmatch(file.sha256))
    found = _CRC32.fullmatch(file.crc32)
    if file.sha256 or not found or file.size <= SPAN:
        return False
    part = int(found[1])
    return PART <= part <= MOST_PART and -(-file.size // part) <= MOST_PARTS


def part_of(file: CommittedFile) -> int:
    """The bytes of each part of a large file but the last: of its own parts, where its digest is made of theirs."""
    return int(file.crc32.partition("-")[0]) if file.crc32 else PART


def count_parts(file: CommittedFile) -> int:
    return -(-file.size // part_of(file))


def plan_reads(files: Sequence[CommittedFile], connections: int = 1) -> Iterator[Span | Piece]:
    """Yields the small files together, object by object, then the large ones, each request with some parts. Empty files are in spans
    without bytes. The last requests are short, so that all connections end together."""
    small = [file for file in files if file.size <= SPAN]
    yield from _spans(sorted(small, key=lambda file: (file.key, file.offset, file.size)))
    large = [file for file in files if file.size > SPAN]
    left = sum(count_parts(file) for file in large)
    for file in large:
        start, part = 0, part_of(file)
        while start < file.size:
            some = max(1, min(TOGETHER // part, left // connections))
            end = min(start + some * part, file.size)
            yield Piece(file, start, end)
            start, left = end, left - some


def _spans(files: Sequence[CommittedFile]) -> Iterator[Span]:
    together, start, end = list[CommittedFile](), 0, 0
    for file in files:
        of_file = file.offset + file.size
        fits = together and together[0].key == file.key and file.offset <= end + GAP and of_file - start <= SPAN
        if not fits:
            if together:
                yield Span(together[0].key, start, end, tuple(together))
            together, start, end = [], file.offset, file.offset
        together.append(file)
        end = max(end, of_file)
    if together:
        yield Span(together[0].key, start, end, tuple(together))
