"""Reads files that a trainer may replace meanwhile: opens them first, and tells whether their bytes changed."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agent.snapshot import Changed, FileState
from agent.symlinks import Source

PINNED = 20_000
"""The most files that are opened before the first is read: open files take memory of the kernel."""


class OpenFiles:
    """Opens files before the first is read: what is open keeps its bytes, even if the trainer renames another file into its place.

    Where these are more than PINNED, or than half of what a process may open, the others have to stay as they are until their turn.
    """

    def __init__(self, folder: Path, files: Sequence[FileState]) -> None:
        self._folder, self._open = folder, dict[FileState, int]()
        most = min(PINNED, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        self._wanted = sorted(files, key=lambda seen: seen.size, reverse=True)[:most]  # large ones take longest

    def __enter__(self) -> OpenFiles:
        try:
            for seen in self._wanted:
                self._open[seen] = self._opened(seen)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def hold(self, seen: FileState) -> int:
        """The file, open until `release`. Raises Changed where it is not the one that was seen."""
        if seen not in self._open:
            self._open[seen] = self._opened(seen)
        return self._open[seen]

    def release(self, seen: FileState) -> None:
        os.close(self._open.pop(seen))

    @contextmanager
    def opened(self, seen: FileState) -> Iterator[int]:
        """The file. Raises Changed where it is not the one that was seen, or has other bytes once it has been read."""
        file = self._open.pop(seen, None)
        if file is None:
            file = self._opened(seen)
        try:
            yield file
            unwritten(file, seen)
        finally:
            os.close(file)

    def _opened(self, seen: FileState) -> int:
        try:
            file = (seen.source or Source(str(self._folder), seen.path)).open()
        except OSError as problem:
            raise Changed(f"{seen.path} went away ({problem.strerror})") from None
        try:
            if not seen.is_same_as(FileState.of(seen.path, os.fstat(file), seen.moved_ns, source=seen.source)):
                raise Changed(f"{seen.path} changed")
        except BaseException:
            os.close(file)
            raise
        return file


def unwritten(file: int, seen: FileState) -> None:
    """Raises Changed where the bytes of the open file are no longer those that were seen. Its name may be gone: a newer file has it."""
    if not seen.has_bytes_of(FileState.of(seen.path, os.fstat(file))):
        raise Changed(f"{seen.path} changed")
