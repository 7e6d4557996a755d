"""Creates files under a folder, and never through a link."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path, PurePosixPath

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Tree:
    """Safe to use from any thread. Keeps the folder of each thread's last file open until `close`."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self._root = os.open(root, FOLDER)
        self._last, self._open, self._turn = threading.local(), set[int](), threading.Lock()

    def create(self, path: str) -> int:
        """Opens a new file, its folders as well. Raises FileExistsError where it exists, OSError where a link is on the way."""
        pure = PurePosixPath(path)
        parent = str(pure.parent)
        if getattr(self._last, "path", None) != parent:
            self._leave()
            self._last.file, self._last.path = self._folder(pure.parent.parts), parent
        with self._turn:  # one at a time: the kernel's own lock of a folder would spin
            return os.open(pure.name, NEW, 0o600, dir_fd=self._last.file)

    def close(self) -> None:
        with self._turn:
            for file in {*self._open, self._root}:
                os.close(file)
            self._open.clear()

    def _leave(self) -> None:
        if getattr(self._last, "path", None) is not None:
            self._last.path = None
            with self._turn:
                self._open.discard(self._last.file)
            os.close(self._last.file)

    def _folder(self, parts: tuple[str, ...]) -> int:
        found = os.open(".", FOLDER, dir_fd=self._root)
        for part in parts:
            try:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=found)
                inner = os.open(part, FOLDER, dir_fd=found)
            finally:
                os.close(found)
            found = inner
        with self._turn:
            self._open.add(found)
        return found
