"""Finds the folder that was packed in place of its contents, and the files that systems add beside a person's own."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from pathlib import PurePosixPath

from refusals.wording import plain

OF_SYSTEMS = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})


class CommonFolder:
    """The deepest folder in which all files of an archive lie, but those that systems add."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._parts: tuple[str, ...] | None = None
        for path in paths:
            self.add(path)

    def add(self, path: str) -> None:
        if is_of_system(path):
            return
        parts = PurePosixPath(path).parts[:-1]
        self._parts = parts if self._parts is None else tuple(posixpath.commonprefix([self._parts, parts]))

    def advice(self, path: str, wanted: str, packed: str) -> str:
        """Returns how to pack so that the file at `path` is `wanted`; empty where its folder does not hold everything."""
        folder = path.removesuffix(f"/{wanted}")
        parts = PurePosixPath(folder).parts
        if folder == path or self._parts is None or self._parts[: len(parts)] != parts:
            return ""
        return f"it is at {plain(path)}: pack the folder's contents, as `tar -C {plain(folder)} -czf {packed} .` does"


def is_of_system(path: str) -> bool:
    """Whether macOS or Windows added the file for itself, as macOS adds __MACOSX to a zip."""
    parts = PurePosixPath(path).parts
    return bool(parts) and (parts[0] == "__MACOSX" or parts[-1] in OF_SYSTEMS or parts[-1].startswith("._"))
