"""Takes a snapshot of a folder: hard-links its files into a staging folder, and proves that none changed meanwhile."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

UNFINISHED = ".tmp"
"""The ending of files that a trainer still writes and will rename; they are left out."""
RACY_S = 0.05
"""The least age of a file: two writes within one tick of the file system's clock (4 to 10 ms) leave the same time."""
KEY_BYTES = 800
"""S3 takes keys of 1,024 bytes, of which the job's prefix needs some."""


class Changed(RuntimeError):
    """A file changed while it was looked at; the message names it."""


@dataclass(frozen=True)
class FileState:
    """A file's size, times and inode; two that are equal mean that the file did not change."""

    path: str
    """Relative to the folder, `/` between parts."""
    size: int
    mtime_ns: int
    inode: int
    mode: int

    @classmethod
    def of(cls, path: str, facts: os.stat_result) -> FileState:
        return cls(path, facts.st_size, facts.st_mtime_ns, facts.st_ino, stat.S_IMODE(facts.st_mode))


def look(folder: Path, note: Callable[[str], None]) -> dict[str, FileState]:
    """Every regular file under `folder` that can be committed; what cannot be is told to `note`."""
    found: dict[str, FileState] = {}
    folders = [""]
    while folders:
        parent = folders.pop()
        try:
            entries = sorted(os.scandir(folder / parent), key=lambda entry: entry.name)
        except FileNotFoundError as problem:
            raise Changed(f"{parent or folder.name}: {problem}") from None
        for entry in entries:
            path = f"{parent}{entry.name}"
            try:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{path}/")
                elif problem_with := _unfit(path, entry):
                    note(f"{path!r} is left out: {problem_with}")
                elif not path.endswith(UNFINISHED):
                    found[path] = FileState.of(path, entry.stat(follow_symlinks=False))
            except FileNotFoundError:
                raise Changed(f"{path} went away") from None
    return found


def _unfit(path: str, entry: os.DirEntry[str]) -> str:
    if not entry.is_file(follow_symlinks=False):
        return "it is not a regular file"
    try:
        return "" if len(path.encode()) <= KEY_BYTES else f"its path is longer than {KEY_BYTES} bytes"
    except UnicodeEncodeError:
        return "its name is not UTF-8"


@contextmanager
def staged(
    folder: Path,
    staging: Path,
    note: Callable[[str], None],
    *,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[dict[str, FileState]]:
    """Links every file into `staging` for the time of the `with`. Raises Changed when the folder moved meanwhile."""
    shutil.rmtree(staging, ignore_errors=True)
    try:
        before = look(folder, note)
        for seen in before.values():
            _link(folder, staging, seen)
        youngest = max((seen.mtime_ns for seen in before.values()), default=0) / 1e9
        if 0 <= now() - youngest < RACY_S:
            sleep(RACY_S)
        after = look(folder, lambda _: None)
        if before != after:
            names = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
            raise Changed(f"{names[0]} changed")
        yield before
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _link(folder: Path, staging: Path, seen: FileState) -> None:
    target = staging / seen.path
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(folder / seen.path, target, follow_symlinks=False)
    except FileNotFoundError:
        raise Changed(f"{seen.path} went away") from None
    check(target, seen)


def check(file: Path, seen: FileState) -> None:
    """Raises Changed when the staged `file` is no longer what was seen."""
    if FileState.of(seen.path, file.stat()) != seen:
        raise Changed(f"{seen.path} changed")
