"""Looks at a folder: which files there are, and when each of them changed or came to its place."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

UNFINISHED = ".tmp"
"""The ending of files and folders that a trainer still writes and will rename; they are left out."""
RACY_S = 0.05
"""The least age of a file: two writes within one tick of the file system's clock (4 to 10 ms) leave the same time."""
KEY_BYTES = 800
"""S3 takes keys of 1,024 bytes, of which the job's prefix needs some."""


class Changed(RuntimeError):
    """A file changed while it was looked at; the message names it."""


class FileState(NamedTuple):
    """A file's size, times and inode; two that are equal mean that the file did not change. A tuple, because a folder may have very many
    files and is looked at all the time."""

    path: str
    """Relative to the folder, `/` between parts."""
    size: int
    mtime_ns: int
    ctime_ns: int
    """When the kernel last saw its bytes, its name or its links change: nobody can set this time."""
    inode: int
    mode: int
    moved_ns: int = 0
    """When a folder above it came to its place, as far as that shows; 0 where it does not."""

    @classmethod
    def of(cls, path: str, facts: os.stat_result, moved_ns: int = 0) -> FileState:
        return cls(
            path, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, stat.S_IMODE(facts.st_mode), moved_ns
        )  # fmt: skip

    @property
    def content(self) -> tuple[int, int, int]:
        """Equal where the bytes are: other names, links and owners do not matter."""
        return self.size, self.mtime_ns, self.inode

    @property
    def changed_s(self) -> float:
        """When it last changed or came to its place: UTC epoch seconds by this machine's clock. The time of its bytes is not enough,
        since a file that is renamed into its place keeps it."""
        return max(self.ctime_ns, self.moved_ns) / 1e9


def look(folder: Path, note: Callable[[str], None]) -> dict[str, FileState]:
    """Every regular file under `folder` that can be committed; what cannot be is told to `note`."""
    found: dict[str, FileState] = {}
    folders = [("", 0)]
    while folders:
        parent, moved_ns = folders.pop()
        try:
            entries = sorted(os.scandir(folder / parent), key=lambda entry: entry.name)
        except FileNotFoundError as problem:
            raise Changed(f"{parent or folder.name}: {problem}") from None
        for entry in entries:
            path = f"{parent}{entry.name}"
            try:
                if path.endswith(UNFINISHED):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append((f"{path}/", max(moved_ns, _moved_ns(entry.stat(follow_symlinks=False)))))
                elif problem_with := _unfit(path, entry):
                    note(f"{path!r} is left out: {problem_with}")
                else:
                    found[path] = FileState.of(path, entry.stat(follow_symlinks=False), moved_ns)
            except FileNotFoundError:
                raise Changed(f"{path} went away") from None
    return found


def _moved_ns(folder: os.stat_result) -> int:
    """When a folder was renamed, which changes its inode and none of its entries; 0 where an entry was added or removed since."""
    return folder.st_ctime_ns if folder.st_ctime_ns > folder.st_mtime_ns else 0


def _unfit(path: str, entry: os.DirEntry[str]) -> str:
    if not entry.is_file(follow_symlinks=False):
        return "it is not a regular file"
    if path.isascii() and len(path) <= KEY_BYTES:
        return ""
    try:
        return "" if len(path.encode()) <= KEY_BYTES else f"its path is longer than {KEY_BYTES} bytes"
    except UnicodeEncodeError:
        return "its name is not UTF-8"
