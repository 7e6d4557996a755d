"""Files of the launcher's folder, which code of the job may change while the agent reads and writes them, out of a container too.

No link is followed, whose target may be a file of the machine, and no pipe waited for.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agent.symlinks import FOLDER, NO_LINK, Source


class PlainFile(NamedTuple):
    """What a file has."""

    written_at: float
    """Epoch seconds."""
    content: bytes


def read(folder: Path, path: str, most: int) -> PlainFile | None:
    """Reads at most so many bytes of a plain file, whose path is relative to the folder; None where there is none."""
    with suppress(OSError):
        opened = Source(str(folder), path).open()
        try:
            state = os.fstat(opened)
            if stat.S_ISREG(state.st_mode):
                return PlainFile(state.st_mtime, os.read(opened, most))
        finally:
            os.close(opened)
    return None


def list_numbers(folder: Path, path: str) -> list[int]:
    """Lists the names of a folder's entries that are whole numbers."""
    with suppress(OSError):
        opened = Source(str(folder), path).open(FOLDER)
        try:
            names = os.listdir(opened)  # noqa: PTH208 - of what is opened, wherever its path leads by now
            return sorted(int(name) for name in names if name.isascii() and name.isdigit())
        finally:
            os.close(opened)
    return []


def write(folder: Path, path: str, name: str, text: str) -> None:
    """Writes a new file of that name into a folder below `folder`, which appears as a whole. Raises OSError."""
    opened = Source(str(folder), path).open(FOLDER)
    try:
        beside = f".{name}"
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=opened)
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK, 0o644, dir_fd=opened)
        with os.fdopen(file, "w", encoding="ascii") as target:
            target.write(text)
        os.replace(beside, name, src_dir_fd=opened, dst_dir_fd=opened)
    finally:
        os.close(opened)
