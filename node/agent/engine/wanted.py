"""Which requests bring back the files of commits. What a commit says is not trusted: whoever runs a job can write one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from agent.snapshot import KEY_BYTES
from contract.commits import CommittedFile

NAME_BYTES = 255
"""The longest name of a file or a folder that Linux takes."""
PART = SPAN = 8 * 1024 * 1024
"""The most bytes of one request: for a part of a large file, and for small ones that lie together."""
GAP = 256 * 1024
"""Bytes between two files that are fetched and thrown away, rather than asking twice."""
_DIGEST = re.compile(r"[0-9a-f]{64}")


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
    """A request for a part of one large file: bytes from `start` up to `end` of the file."""

    file: CommittedFile
    start: int
    end: int


def check(files: Sequence[CommittedFile]) -> None:
    """Raises Unusable where a path leaves the folder, is told twice or is a folder of another, or where a number or a digest is none."""
    paths, folders = set[str](), set[str]()
    for file in files:
        path = PurePosixPath(file.path)
        if not file.path or path.is_absolute() or ".." in path.parts:
            raise Unusable(f"its path {file.path!r} leaves the folder")
        if str(path) != file.path or "\0" in file.path or path.name in ("", "."):
            raise Unusable(f"its path {file.path!r} is no plain path")
        if max(len(file.path.encode()) / KEY_BYTES, *(len(part.encode()) / NAME_BYTES for part in path.parts)) > 1:
            raise Unusable(f"its path {file.path[:80]!r}... is longer than any that is committed")
        if file.path in paths:
            raise Unusable(f"its path {file.path!r} is told twice")
        if file.size < 0 or file.offset < 0 or not file.key or not _DIGEST.fullmatch(file.sha256):
            raise Unusable(f"{file.path!r} has no place, no size or no digest")
        paths.add(file.path)
        folders |= {str(parent) for parent in path.parents}
    if both := sorted(paths & folders):
        raise Unusable(f"its path {both[0]!r} is a file and a folder")


def requests(files: Sequence[CommittedFile]) -> Iterator[Span | Piece]:
    """First what lies together, object by object, then the large files part by part. Empty files are in spans without bytes."""
    small = [file for file in files if file.size <= SPAN]
    yield from _spans(sorted(small, key=lambda file: (file.key, file.offset, file.size)))
    for file in files:
        if file.size > SPAN:
            for start in range(0, file.size, PART):
                yield Piece(file, start, min(start + PART, file.size))


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
