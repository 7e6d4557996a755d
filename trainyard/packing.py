"""Packs a folder of code as an upload: without what .gitignore leaves out, and never larger than Admit takes."""

from __future__ import annotations

import codecs
import io
import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pages.words import count
from refusals.archive import MOST_CODE
from trainyard.stops import CannotProceed

if TYPE_CHECKING:
    from dulwich.ignore import Pattern

GIT, IGNORE = ".git", ".gitignore"
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
        return f"{count(self.files, 'file')}, {show_bytes(self.unpacked)}, packed {show_bytes(self.size)}; largest: {large}{left}"


def show_bytes(count: int) -> str:
    """Returns a number of bytes as people read it."""
    for unit, size in (("GB", 1024**3), ("MB", 1024**2), ("kB", 1024)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


class IgnoredFiles:
    """The rules of git about a folder: its .gitignore files, those above it in its repository, and .git/info/exclude.

    dulwich reads and matches the patterns; which files of rules count for a path is decided here, because dulwich lets the .gitignore of a
    folder decide about the folder itself.
    """

    def __init__(self, folder: Path) -> None:
        self._top = _find_repository(folder) or folder
        self._exclude = _find_common_folder(self._top / GIT) / "info" / "exclude"
        self._rules: dict[Path, list[Pattern]] = {}
        self._is_inside_ignored = any(
            self._excludes(one, is_folder=True) for one in (folder, *folder.parents) if one.is_relative_to(self._top)
        )
        """Whether a rule leaves out the folder, or one that it lies in: of such a folder git takes no file back."""
        self.count = 0
        """How many files and folders are covered so far; what is in a folder is not counted."""

    def covers(self, path: Path, *, is_folder: bool) -> bool:
        """Whether git would ignore the path, or everything in the folder. Of what lies in a folder that is covered it must not be asked."""
        covered = self._is_inside_ignored or self._excludes(path, is_folder=is_folder)
        self.count += covered
        return covered

    def _excludes(self, path: Path, *, is_folder: bool) -> bool:
        """Whether the last rule about the path, of the file of rules that is nearest to it, leaves it out."""
        if path == self._top:
            return False
        above = [one for one in path.parents if one.is_relative_to(self._top)]
        for folder, file in (
            *((one, one / IGNORE) for one in above),
            (self._top, self._exclude),
        ):
            relative = os.fsencode(path.relative_to(folder))
            for rule in reversed(self._list_rules(file)):
                if rule.matches(relative, is_folder):
                    return rule.is_exclude
        return False

    def _list_rules(self, file: Path) -> list[Pattern]:
        """Returns the rules of a file; none where there is no such file, and, as in git, where it is a link."""
        if file not in self._rules:
            self._rules[file] = _read_rules(file) if file.is_file() and not file.is_symlink() else []
        return self._rules[file]


def _find_repository(folder: Path) -> Path | None:
    return next((one for one in (folder, *folder.parents) if (one / GIT).exists()), None)


def _find_common_folder(git: Path) -> Path:
    """Returns the folder of a repository that its worktrees share. A worktree and a submodule have a file in the place of `.git`, which
    leads to a folder of their own; that of a worktree leads on to the shared one."""
    if git.is_file():
        git = _follow(git, "gitdir:")
    common = git / "commondir"
    return _follow(common) if common.is_file() else git


def _follow(file: Path, before: str = "") -> Path:
    """Returns the path that stands in a file of git, which is relative to the file's folder."""
    text = os.fsdecode(file.read_bytes().rstrip(b"\r\n"))
    return file.parent / text.removeprefix(before).lstrip(" " if before else "")


def _read_rules(file: Path) -> list[Pattern]:
    """Returns the rules of a file, as git reads them: a byte order mark before the first one is no part of it."""
    from dulwich.ignore import IgnoreFilter, read_ignore_patterns

    body = file.read_bytes().removeprefix(codecs.BOM_UTF8)
    return IgnoreFilter(read_ignore_patterns(io.BytesIO(body)), path=str(file)).patterns


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
            entry = _describe_entry(written, path, name)
            if entry.isreg():
                sizes[name] = entry.size
                if archive.stat().st_size > MOST_CODE:
                    break
                _add_file(written, entry, path, folder)
            else:
                written.addfile(entry)
    size = archive.stat().st_size
    if not sizes:
        left = " that .gitignore does not leave out" if ignored.count else ""
        raise CannotProceed(f"--code {folder}: has no file{left}; allowed: a folder with code")
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


def _describe_entry(written: tarfile.TarFile, path: Path, name: str) -> tarfile.TarInfo:
    """Returns the head of a file or a link, with nothing of the computer in it."""
    entry = written.gettarinfo(str(path), arcname=name)
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _add_file(written: tarfile.TarFile, entry: tarfile.TarInfo, path: Path, folder: Path) -> None:
    """Copies a file into the archive. Raises CannotProceed where it has become shorter than its head says."""
    with path.open("rb") as file:
        try:
            written.addfile(entry, file)
        except OSError as problem:
            if problem.errno is not None:
                raise
            # tarfile's own error: it read fewer bytes than the head says.
            raise CannotProceed(
                f"--code {folder}: {entry.name} became shorter while it was packed; allowed: a folder in which nothing writes meanwhile"
            ) from None


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
