"""Checks a build context without unpacking it, in bounded memory even if the archive lies about itself."""

from __future__ import annotations

import stat
from pathlib import PurePosixPath
from typing import IO

from refusals.entries import ListedEntry, entries
from refusals.fields import ARCHIVE_ENDINGS
from refusals.wording import plain

DOCKERFILE = "Dockerfile"
MOST_ENTRIES = 100_000
MOST_UNPACKED = 10 * 1024**3
TOLD = 5
"""The most entries that a refusal names."""
PLAIN = "allowed: files, folders, and links that stay in the context"


class Bomb(ValueError):
    """The archive unpacks to more than is ever read; the message is a problem's second half."""


def problems(file: IO[bytes], name: str) -> list[str]:
    """Lists what is wrong with the archive in `file`, each as the second half of a line; `name` tells .zip from tar."""
    found, roots, has_dockerfile = list[str](), set[str](), False
    links, total, count = set[PurePosixPath](), 0, 0
    try:
        for count, entry in enumerate(entries(file, name), 1):
            total += max(entry.size, 0)
            if count > MOST_ENTRIES:
                raise Bomb(f"has more than {MOST_ENTRIES:,} entries; allowed: up to {MOST_ENTRIES:,}")
            if total > MOST_UNPACKED or entry.size < 0:
                most = f"{MOST_UNPACKED / 1024**3:.0f} GB"
                raise Bomb(f"takes more than {most} once unpacked; allowed: up to {most} (big files belong in S3)")
            if (problem := _problem(entry, links)) and len(found) < TOLD:
                found.append(problem)
            path = PurePosixPath(entry.name)
            roots |= set(path.parts[:1]) if len(roots) < 2 else set()
            has_dockerfile = has_dockerfile or (path == PurePosixPath(DOCKERFILE) and entry.kind == stat.S_IFREG)
    except Bomb as bomb:
        return [str(bomb)]
    except Exception as problem:
        if type(problem).__module__.startswith("botocore"):
            raise  # a problem of S3, which says nothing about these bytes
        # Any error of the formats' readers (zlib.error, struct.error, RecursionError ...) is about the bytes.
        return [f"cannot be read ({plain(str(problem))}); allowed: a whole {ARCHIVE_ENDINGS}"]
    if not count:
        return ["is an empty archive; allowed: an archive with a Dockerfile at its root"]
    return found + ([] if has_dockerfile else [_no_dockerfile(roots)])


def _no_dockerfile(roots: set[str]) -> str:
    hint = ""
    if len(roots) == 1:
        (folder,) = (plain(root) for root in roots)
        hint = f" (everything lies in the folder {folder}: pack its contents, as `tar -C {folder} -czf context.tar.gz .` does)"
    return f"has no Dockerfile at its root{hint}; allowed: an archive with a file named Dockerfile at its root"


def _problem(entry: ListedEntry, links: set[PurePosixPath]) -> str:
    """Says what is wrong with one entry, and remembers links: nothing may lie below a link."""
    shown, path = plain(entry.name), PurePosixPath(entry.name)
    if not entry.name or "\0" in entry.name or path.is_absolute() or ".." in path.parts:
        return f"has the entry {shown}, which points out of the context; allowed: plain relative names"
    if not links.isdisjoint(path.parents):
        return f"has the entry {shown}, which lies below a link; {PLAIN}"
    if entry.hard:
        target = PurePosixPath(entry.target)
        if not entry.target or target.is_absolute() or ".." in target.parts:
            return f"has the entry {shown}, a link to {plain(entry.target)}, out of the context; {PLAIN}"
    elif entry.kind == stat.S_IFLNK:
        links.add(path)
        if _leaves(path.parent, entry.target):
            return f"has the entry {shown}, a link to {plain(entry.target)}, out of the context; {PLAIN}"
    elif entry.kind not in (stat.S_IFREG, stat.S_IFDIR):
        return f"has the entry {shown}, which is neither a file nor a folder nor a link; {PLAIN}"
    return ""


def _leaves(folder: PurePosixPath, target: str) -> bool:
    """Whether a symbolic link in `folder` may lead out; a link that goes up after going down might, through another link."""
    path = PurePosixPath(target)
    up = 0
    while up < len(path.parts) and path.parts[up] == "..":
        up += 1
    return not target or path.is_absolute() or up > len(folder.parts) or ".." in path.parts[up:]
