"""Checks a build context without unpacking it, in bounded memory even if the archive lies about itself."""

from __future__ import annotations

import stat
from pathlib import PurePosixPath
from typing import IO

from contract.archives import (
    MOST_BYTES,
    MOST_ENTRIES,
    ArchiveEntry,
    Refused,
    Tally,
    check_entry,
    check_link,
    hard_link_out,
    inside,
    named,
)
from contract.entries import entries
from refusals.archive import MOST_DIRECTORY
from refusals.fields import ARCHIVE_ENDINGS
from refusals.folders import CommonFolder
from refusals.wording import plain

DOCKERFILE = "Dockerfile"
TOLD = 5
"""The most entries that a refusal names."""
ROOT_FILE = "an archive with a file named Dockerfile at its root"


def problems(file: IO[bytes], name: str) -> list[str]:
    """Lists what is wrong with the archive in `file`, each as the second half of a line; `name` tells .zip from tar."""
    found, tally = list[str](), Tally(MOST_ENTRIES, MOST_BYTES)
    links, dockerfiles = set[PurePosixPath](), Dockerfiles()
    try:
        for entry in entries(file, name, MOST_DIRECTORY):
            tally.add(entry)
            try:
                dockerfiles.add(_checked(entry, links), entry)
            except Refused as refused:
                if len(found) < TOLD:
                    found.append(_worded(refused))
    except Refused as refused:
        return [_worded(refused)]
    except Exception as problem:
        if type(problem).__module__.startswith("botocore"):
            raise  # a problem of S3, which says nothing about these bytes
        # Any error of the formats' readers (zlib.error, struct.error, RecursionError ...) is about the bytes.
        return [f"cannot be read ({plain(str(problem))}); allowed: a whole {ARCHIVE_ENDINGS}"]
    if not tally.entries:
        return [f"is an empty archive; allowed: {ROOT_FILE}"]
    return found + dockerfiles.problems()


class Dockerfiles:
    """What an archive has at its root, and elsewhere, that is named like the file that a build needs."""

    def __init__(self) -> None:
        self._root: ArchiveEntry | None = None
        self._other, self._common = "", CommonFolder()

    def add(self, path: PurePosixPath, entry: ArchiveEntry) -> None:
        if str(path) == DOCKERFILE:
            self._root = entry
        elif entry.kind != stat.S_IFDIR:
            self._common.add(str(path))
            like = path.name == DOCKERFILE or (
                len(path.parts) == 1 and path.stem.lower() in ("dockerfile", "containerfile")
            )
            if like and not self._other:
                self._other = str(path)

    def problems(self) -> list[str]:
        """Returns why nothing is built; empty where there is a Dockerfile."""
        if self._root is not None and self._root.kind == stat.S_IFLNK:
            where = plain(self._root.target)
            return [
                f"has a Dockerfile that is a link to {where}; allowed: {ROOT_FILE}, as `tar -h` packs in place of the link"
            ]
        if self._root is not None and self._root.kind == stat.S_IFREG:
            return []
        wrong = "has a folder named Dockerfile" if self._root else "has no Dockerfile at its root"
        hint = self._common.advice(self._other, DOCKERFILE, "context.tar.gz") or (
            f"it has {plain(self._other)}" if self._other else ""
        )
        return [f"{wrong}{f' ({hint})' if hint else ''}; allowed: {ROOT_FILE}"]


def _worded(refused: Refused) -> str:
    return f"{refused}; allowed: {refused.allowed}"


def _checked(entry: ArchiveEntry, links: set[PurePosixPath]) -> PurePosixPath:
    """Returns where an entry goes, and remembers links: nothing may lie below a link. Raises Refused."""
    path = check_entry(entry)
    if not links.isdisjoint(path.parents):
        raise Refused(f"has the entry {named(entry.name)}, which lies below a link")
    if entry.sparse:  # a few bytes may unpack to terabytes, and no image needs such files
        raise Refused(f"has the entry {named(entry.name)}, which is sparse", "files that have all of their bytes")
    if entry.hard:
        try:
            inside(entry.target)
        except Refused:
            raise hard_link_out(entry.name, entry.target) from None
    elif entry.kind == stat.S_IFLNK:
        links.add(path)
        check_link(entry.name, entry.target, lambda: _leaves(path.parent, entry.target))
    return path


def _leaves(folder: PurePosixPath, target: str) -> bool:
    """Whether a symbolic link in `folder` may lead out; a link that goes up after going down might, through another link."""
    path = PurePosixPath(target)
    up = 0
    while up < len(path.parts) and path.parts[up] == "..":
        up += 1
    return up > len(folder.parts) or ".." in path.parts[up:]
