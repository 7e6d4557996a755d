"""Looks through a build context without unpacking it: in bounded memory, however the archive lies about itself."""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, cast

from admission.words import plain
from contract.archives import MOST_HEADER, Metered

DOCKERFILE = "Dockerfile"
MOST_ENTRIES = 100_000
MOST_UNPACKED = 10 * 1024**3
MOST_DIRECTORY = 16 * 1024**2
"""Bytes of a zip's list of entries."""
TOLD = 5
"""Entries that a refusal names."""
PLAIN = "allowed: files, folders, and links that stay in the context"


class Bomb(ValueError):
    """The archive is larger than anything that is looked at; the message is a problem's second half."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry, in words that tar and zip share."""

    name: str
    kind: int
    """The file type, as in st_mode."""
    size: int
    target: str = ""
    hard: bool = False


def problems(file: IO[bytes], name: str) -> list[str]:
    """What is wrong with the archive that `file` holds, each as the second half of a line; `name` tells .zip from tar."""
    found, roots, has_dockerfile = list[str](), set[str](), False
    links, total, count = set[PurePosixPath](), 0, 0
    try:
        for count, entry in enumerate(_zip(file) if name.endswith(".zip") else _tar(file), 1):
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
            raise  # S3's trouble, and no word about these bytes
        # Whatever the readers of the formats raise (zlib.error, struct.error, RecursionError ...) is about the bytes.
        return [f"cannot be read ({plain(str(problem))}); allowed: a whole .tar.gz, .tgz, .tar or .zip"]
    if not count:
        return ["is an empty archive; allowed: an archive with a Dockerfile at its root"]
    return found + ([] if has_dockerfile else [_no_dockerfile(roots)])


def _no_dockerfile(roots: set[str]) -> str:
    hint = ""
    if len(roots) == 1:
        (folder,) = (plain(root) for root in roots)
        hint = f" (everything lies in the folder {folder}: pack its contents, as `tar -C {folder} -czf context.tar.gz .` does)"
    return f"has no Dockerfile at its root{hint}; allowed: an archive with a file named Dockerfile at its root"


def _problem(entry: Entry, links: set[PurePosixPath]) -> str:
    """What is wrong with one entry; remembers links, below which nothing may lie."""
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
    """Whether a symbolic link in `folder` leads out; one that goes up after it went down might, through another link."""
    path = PurePosixPath(target)
    up = 0
    while up < len(path.parts) and path.parts[up] == "..":
        up += 1
    return not target or path.is_absolute() or up > len(folder.parts) or ".." in path.parts[up:]


def _tar(packed: IO[bytes]) -> Iterator[Entry]:
    kinds = {tarfile.DIRTYPE: stat.S_IFDIR, tarfile.SYMTYPE: stat.S_IFLNK, tarfile.LNKTYPE: stat.S_IFREG}
    is_gzip = packed.read(2) == b"\x1f\x8b"
    packed.seek(0)
    file = Metered(gzip.GzipFile(fileobj=packed) if is_gzip else packed)
    file.left = MOST_HEADER
    with tarfile.open(fileobj=cast("IO[bytes]", file), mode="r:") as tar:
        for member in tar:
            # Sparse files are a few bytes that unpack to terabytes; nobody builds an image of one.
            is_file = member.isreg() and not member.issparse()
            kind = kinds.get(member.type, stat.S_IFREG if is_file else stat.S_IFCHR)
            yield Entry(member.name, kind, member.size, member.linkname, member.islnk())
            # Its list of members would grow with the archive.
            tar.members = []  # type: ignore[attr-defined]
            file.left = MOST_HEADER
    if file.last.strip(b"\0"):  # tarfile takes a header that it cannot read for the end, and says nothing
        raise tarfile.ReadError("what follows its last readable entry is neither an entry nor the end")


def _zip(packed: IO[bytes]) -> Iterator[Entry]:
    file = Metered(packed)
    file.left = MOST_DIRECTORY
    with zipfile.ZipFile(cast("IO[bytes]", file)) as whole:
        for info in whole.infolist():
            if info.flag_bits & 1:
                raise ValueError(f"its entry {plain(info.filename)} is encrypted")
            kind = stat.S_IFMT(info.external_attr >> 16) or (stat.S_IFDIR if info.is_dir() else stat.S_IFREG)
            # Where a link of a zip leads stands in its content, which is not read here.
            yield Entry(info.filename, stat.S_IFCHR if kind == stat.S_IFLNK else kind, info.file_size)
