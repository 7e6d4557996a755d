"""Packs a folder of code as an upload: without what .gitignore leaves out, and never larger than Admit takes."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from refusals.archive import MOST_CODE
from trainyard.stops import CannotProceed

if TYPE_CHECKING:
    from dulwich.ignore import IgnoreFilterManager

GIT = ".git"
NEVER = frozenset({GIT, "__pycache__", ".venv", "node_modules"})
"""Names that no upload has, ignored or not."""
SHOWN = 3
"""How many of the largest files a summary names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """An archive, and what is in it."""

    path: Path
    size: int
    files: int
    unpacked: int
    """Bytes of all files."""
    left_out: int
    """Files and folders that .gitignore leaves out."""
    largest: tuple[tuple[str, int], ...]
    """Name and bytes of the largest files."""

    def describe(self) -> str:
        """Says in a line what is packed."""
        large = ", ".join(f"{name} ({show_bytes(size)})" for name, size in self.largest)
        left = f"; left out by .gitignore: {self.left_out}" if self.left_out else ""
        return (
            f"{self.files} files, {show_bytes(self.unpacked)}, packed {show_bytes(self.size)}; largest: {large}{left}"
        )


def show_bytes(count: int) -> str:
    """Returns a number of bytes as people read it."""
    for unit, size in (("GB", 1024**3), ("MB", 1024**2), ("kB", 1024)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


class IgnoredFiles:
    """The rules of git about a folder: its .gitignore files, those above it in its repository, and .git/info/exclude."""

    def __init__(self, folder: Path) -> None:
        from dulwich.ignore import IgnoreFilter, IgnoreFilterManager

        self._top = _find_repository(folder) or folder
        exclude = self._top / GIT / "info" / "exclude"
        filters = [IgnoreFilter.from_path(str(exclude))] if exclude.is_file() else []
        self._rules: IgnoreFilterManager = IgnoreFilterManager(str(self._top), filters, ignorecase=False)
        self.count = 0
        """How many files and folders are covered so far; what is in a folder is not counted."""

    def covers(self, path: Path, *, is_folder: bool) -> bool:
        """Whether git would ignore the path, or everything in the folder."""
        inside = path.relative_to(self._top).as_posix()
        # Of an ignored folder a rule may take single files back.
        covered = self._rules.may_prune_directory(f"{inside}/") if is_folder else self._rules.is_ignored(inside)
        if not covered:
            return False
        self.count += 1
        return True


def _find_repository(folder: Path) -> Path | None:
    return next((one for one in (folder, *folder.parents) if (one / GIT).exists()), None)


def pack(folder: Path, archive: Path) -> Packed:
    """Writes the archive, a .tar.gz. Raises CannotProceed for a folder without files, or with more than Admit takes."""
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "there is no such folder"
        raise CannotProceed(f"--code {folder}: {what}; allowed: the folder of the code")
    folder = folder.resolve()
    ignored, sizes = IgnoredFiles(folder), dict[str, int]()
    with tarfile.open(archive, "w:gz", compresslevel=6) as written:
        for path in _walk(folder, ignored):
            name = path.relative_to(folder).as_posix()
            entry = written.gettarinfo(str(path), arcname=name)
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            if entry.isreg():
                sizes[name] = entry.size
                if archive.stat().st_size > MOST_CODE:
                    break
                with path.open("rb") as file:
                    written.addfile(entry, file)
            else:
                written.addfile(entry)
    size = archive.stat().st_size
    if not sizes:
        raise CannotProceed(
            f"--code {folder}: has no file that .gitignore does not leave out; allowed: a folder with code"
        )
    largest = tuple(sorted(sizes.items(), key=lambda one: -one[1])[:SHOWN])
    if size > MOST_CODE:
        large = ", ".join(f"{name} ({show_bytes(count)})" for name, count in largest)
        raise CannotProceed(
            f"--code {folder}: packed it has more than {show_bytes(MOST_CODE)}, the largest files are {large}; allowed: less (large "
            "data belongs in a data bucket, and a line in .gitignore)"
        )
    return Packed(
        path=archive, size=size, files=len(sizes), unpacked=sum(sizes.values()), left_out=ignored.count, largest=largest
    )


def _walk(folder: Path, ignored: IgnoredFiles) -> Iterator[Path]:
    """Yields files and links. Pipes and empty folders are left out, as git leaves them out."""
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda one: one.name)
    for entry in found:
        path, is_folder = Path(entry.path), entry.is_dir(follow_symlinks=False)
        if entry.name in NEVER or ignored.covers(path, is_folder=is_folder):
            continue
        mode = entry.stat(follow_symlinks=False).st_mode
        if is_folder:
            yield from _walk(path, ignored)
        elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
            yield path
