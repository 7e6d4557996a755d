"""Reads what a training wrote, which may be anything: only regular files are opened, and no link is followed, in whatever folder."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import BinaryIO

IN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
IN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
"""A pipe without a writer is opened at once, and found to be no file."""


def open_plain(root: Path, within: str) -> BinaryIO:
    """Opens a regular file below `root`. Raises OSError where there is none, where it is something else, and where a link leads to it."""
    *folders, name = Path(within).parts
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in folders:
            below = os.open(folder, IN_FOLDER, dir_fd=at)
            os.close(at)
            at = below
        file = os.open(name, IN_FILE, dir_fd=at)
    finally:
        os.close(at)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(f"{within} is no regular file")
    return os.fdopen(file, "rb")


class _Packed:
    """What is read of an archive while it is packed; its end is one only if everything is in it."""

    def __init__(self, pipe: BinaryIO, packing: Thread, problems: Sequence[Exception]) -> None:
        self._pipe, self._packing, self._problems = pipe, packing, problems

    def read(self, size: int = -1) -> bytes:
        piece = self._pipe.read(size)
        if size < 0 or len(piece) < size:
            self._packing.join()
            if self._problems:
                raise self._problems[0]
        return piece


@contextmanager
def stream_archive(root: Path, folder: str, files: Sequence[Path]) -> Iterator[_Packed]:
    """Yields the archive of a folder's files as something to read once, which raises what stood in the way of one."""
    reading, writing = os.pipe()
    problems = list[Exception]()

    def pack() -> None:
        try:
            with os.fdopen(writing, "wb") as pipe, tarfile.open(fileobj=pipe, mode="w|gz") as archive:
                for path in files:
                    with open_plain(root, path.relative_to(root).as_posix()) as file:
                        name = path.relative_to(root / folder).as_posix()
                        archive.addfile(archive.gettarinfo(fileobj=file, arcname=name), file)
        except Exception as problem:  # the reader raises it
            problems.append(problem)

    packing = Thread(target=pack, daemon=True)
    packing.start()
    with os.fdopen(reading, "rb") as pipe:
        yield _Packed(pipe, packing, problems)
