"""Writes the files of a git commit into an archive: the same commit makes the same bytes, and nothing lands on a disk by its own name."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

from contract.archives import Refused, inside, named
from git_code.commit import MOST_BYTES, MOST_FILES

SUBMODULE = 0o160000
LFS = b"version https://git-lfs.github.com/spec/"
MOST_POINTER = 1024
"""The most bytes of the small file that git-LFS keeps in place of a large one."""
LEVEL = 6
EARLIEST, LATEST = 315_532_800, 4_102_444_800
"""The years 1980 and 2100: zips, and so Python's wheels, know no earlier time, and a commit may claim any."""


class TooMuch(Exception):
    """The commit has more than is allowed; the message says of what."""


@dataclass(frozen=True, slots=True)
class File:
    """A file or a link of a commit."""

    path: str
    mode: int
    sha: bytes


Folder = Callable[[bytes], Iterator[tuple[bytes, int, bytes]]]
"""Returns name, mode and hash of each entry of the folder with that hash."""
Content = Callable[[bytes], bytes]
"""Returns the bytes of the file with that hash."""


def files(root: bytes, folder: Folder, *, most: int = MOST_FILES) -> list[File]:
    """Lists a commit's files by their paths. Raises Refused for what no honest git writes or no node would unpack, and TooMuch."""
    found, waiting, count = list[File](), [("", root)], 0
    while waiting:
        above, sha = waiting.pop()
        for name, mode, inner in folder(sha):
            path = f"{above}{_checked(name, above)}"
            inside(path)
            count += 1
            if count > most:
                raise TooMuch(f"more than {most:,} files and folders")
            if stat.S_ISDIR(mode):
                waiting.append((f"{path}/", inner))
            elif mode == SUBMODULE:
                raise Refused(f"has the submodule {named(path)}, whose files are in another repository")
            elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
                found.append(File(path, mode, inner))
            else:
                raise Refused(f"has the entry {named(path)}, which is neither a file nor a folder nor a link")
    return sorted(found, key=lambda one: one.path)


def _checked(name: bytes, above: str) -> str:
    """Returns a name as text. Raises Refused for one that git itself never writes, because it would lead elsewhere."""
    text = os.fsdecode(name)
    if text in ("", ".", "..") or "/" in text or "\0" in text or text.lower() == ".git":
        raise Refused(f"has the entry {named(f'{above}{text}')}, a name that git does not allow")
    return text


def write(found: list[File], content: Content, sink: IO[bytes], *, committed: float, most: int = MOST_BYTES) -> None:
    """Writes the archive. Raises Refused for a pointer of git-LFS, and TooMuch."""
    modified, total = min(max(int(committed), EARLIEST), LATEST), 0
    with (
        gzip.GzipFile(filename="", mode="wb", compresslevel=LEVEL, fileobj=sink, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for one in found:
            body = content(one.sha)
            total += len(body)
            if total > most:
                raise TooMuch(f"more than {most:,} bytes, unpacked")
            if body.startswith(LFS) and len(body) <= MOST_POINTER:
                raise Refused(f"has {named(one.path)} in git-LFS: the repository has only a pointer to it")
            entry = tarfile.TarInfo(one.path)
            entry.mtime = modified
            if stat.S_ISLNK(one.mode):
                entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, os.fsdecode(body), 0o777
                archive.addfile(entry)
            else:
                entry.size, entry.mode = len(body), 0o755 if one.mode & 0o100 else 0o644
                archive.addfile(entry, io.BytesIO(body))
