"""Looks at a folder: which files, links and folders there are, and when each of them changed or came to its place."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from agent.symlinks import FOLDER, Links, Source
from contract.codec import is_text
from contract.keys import KEY_BYTES

UNFINISHED = ".tmp"
"""The ending of files and folders that a trainer still writes and will rename; they are left out."""
RACY_S = 0.05
"""The least age of a file: two writes within one tick of the file system's clock (4 to 10 ms) leave the same time."""
PATH_BYTES = 3800
"""The longest path of a checkpoint's file: the kernel takes 4,096 bytes at once, of which the folder needs some."""
LATEST_US = 2**53
"""The latest time that is kept, in the year 2255: whoever dates a file in milliseconds dates it later."""
MOST_LINKED = 10_000
"""Links that are followed, with the files and folders that they lead to, at most: links in links multiply."""
MOST_PATH = 4096
"""Letters of a path that the kernel takes at once."""
TOO_MANY = f"only {MOST_LINKED:,} files are kept that links lead to"


class Changed(RuntimeError):
    """A file changed while it was looked at; the message names it."""


class FileState(NamedTuple):
    """The size, times and inode of a file or a link; two that are equal mean that it did not change. A tuple, because a folder may have
    very many files and is looked at all the time."""

    path: str
    """Relative to the folder, `/` between parts."""
    size: int
    mtime_ns: int
    ctime_ns: int
    """When the kernel last saw its bytes, its name or its links change: no program can set this time."""
    inode: int
    mode: int
    moved_ns: int = 0
    """When a folder above it came to its place, as far as that shows; 0 where it does not."""
    target: str = ""
    """Of a link that is kept as a link: where it leads, relative to its own folder."""
    source: Source | None = None
    """Of a file that is here by a link: where its bytes are."""
    grows: bool = False
    """Whether it only grows, as logs do: the first `size` bytes of a longer one are the same file."""

    @classmethod
    def of(
        cls, path: str, facts: os.stat_result, moved_ns: int = 0, target: str = "", source: Source | None = None
    ) -> FileState:
        return cls(
            path, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, stat.S_IMODE(facts.st_mode),
            moved_ns, target, source,
        )  # fmt: skip

    @property
    def mtime_us(self) -> int:
        return kept_us(self.mtime_ns)

    @property
    def content(self) -> tuple[int, int, int]:
        """Equal where the bytes are: other names, links and owners do not matter."""
        return self.size, self.mtime_ns, self.inode

    @property
    def changed_s(self) -> float:
        """When it last changed or came to its place: UTC epoch seconds by this machine's clock. The time of its bytes is not enough,
        since a file that is renamed into its place keeps it."""
        return max(self.ctime_ns, self.moved_ns) / 1e9

    def is_same_as(self, later: FileState) -> bool:
        """Whether a file is still the one that was seen, or, where it only grows, begins with it."""
        if self.grows:
            return (self.path, self.inode) == (later.path, later.inode) and later.size >= self.size
        return self == later

    def has_bytes_of(self, later: FileState) -> bool:
        """Whether the bytes of an open file are still those that were seen, whatever its name is now."""
        return self.is_same_as(later) if self.grows else self.content == later.content


def kept_us(mtime_ns: int) -> int:
    """Returns a time as a commit has it, UTC epoch microseconds; 0 for one before 1970 or after LATEST_US."""
    time_us = mtime_ns // 1000
    return time_us if 0 < time_us <= LATEST_US else 0


class FolderState(NamedTuple):
    """A folder; its time says when a name in it last came or went."""

    mode: int
    mtime_ns: int


@dataclass
class Observed:
    """What a folder has that can be committed, by path."""

    files: dict[str, FileState] = field(default_factory=dict)
    """Files, and links where links are kept."""
    folders: dict[str, FolderState] = field(default_factory=dict)
    """Without the folder itself."""
    too_long: list[str] = field(default_factory=list)
    """Paths that are longer than any that can be committed."""


def list_below(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yields the path below the folder, and the facts, of whatever is no folder, links and pipes as well: also of what cannot be
    committed. Leaves out what goes away meanwhile. Goes through no link, whatever takes a folder's place."""
    todo = [""]
    while todo:
        here = todo.pop()
        for path, facts in _entries(str(folder), here):
            if stat.S_ISDIR(facts.st_mode):
                todo.append(path)
            else:
                yield path, facts


def _entries(root: str, path: str) -> list[tuple[str, os.stat_result]]:
    """The path and the facts of each entry of a folder; empty where it is none any more, or its path is too long for the kernel."""
    if len(path) > MOST_PATH:
        return []
    try:
        opened = Source(root, path).open(FOLDER)
    except OSError:
        return []
    found = list[tuple[str, os.stat_result]]()
    try:
        for entry in os.scandir(opened):
            with suppress(OSError):  # it went away
                found.append((f"{path}/{entry.name}".lstrip("/"), entry.stat(follow_symlinks=False)))
    finally:
        os.close(opened)
    return found


class _Open(NamedTuple):
    """A folder to look at: its path with `/` behind it, when it came to its place, and where it is."""

    path: str
    moved_ns: int
    source: Source
    linked: tuple[Source, ...] = ()
    """Where the links on the way to it led; empty where it lies in the folder itself."""


def list_files(folder: Path, note: Callable[[str], None]) -> dict[str, FileState]:
    """Returns every regular file under `folder` that can be committed, and tells `note` of what cannot be. Links cannot."""
    return observe(folder, note).files


def observe(folder: Path, note: Callable[[str], None], links: Links | None = None) -> Observed:
    """Returns what is under `folder`, and tells `note` of what cannot be committed. `links` says how links are read; None leaves them out.
    Where links are kept, as in checkpoints, a path may be longer than a key.

    Raises Changed where the folder changes meanwhile.
    """
    walk = _Walk(note, links)
    todo = [_Open("", 0, Source(str(folder), ""))]
    while todo:
        todo += walk.enter(todo.pop())
    return walk.found


class _Walk:
    """One look at a folder."""

    def __init__(self, note: Callable[[str], None], links: Links | None) -> None:
        self._note, self._links, self._linked = note, links, 0
        self._most_bytes = PATH_BYTES if links is not None and links.keeps else KEY_BYTES
        self.found = Observed()

    def enter(self, here: _Open) -> list[_Open]:
        """Takes note of what is in a folder; returns the folders in it."""
        inner = list[_Open]()
        try:
            opened = here.source.open(FOLDER)
        except OSError as problem:
            raise Changed(f"{here.path or Path(here.source.root).name}: {problem}") from None
        try:
            entries = sorted(os.scandir(opened), key=lambda entry: entry.name)
            for entry in entries:
                try:
                    inner += self._take(f"{here.path}{entry.name}", entry, here)
                except FileNotFoundError:
                    raise Changed(f"{here.path}{entry.name} went away") from None
        finally:
            os.close(opened)
        return inner

    def _take(self, path: str, entry: os.DirEntry[str], here: _Open) -> Iterator[_Open]:
        if path.endswith(UNFINISHED):
            return
        if problem := _find_unfit_name(path):
            self._note(f"{path!r} is left out: {problem}")
            return
        if len(path.encode()) > self._most_bytes:
            self.found.too_long.append(path)
            self._note(f"{path!r} is left out: its path is longer than {self._most_bytes} bytes")
            return
        facts = entry.stat(follow_symlinks=False)
        at = Source(here.source.root, f"{here.source.path}/{entry.name}".strip("/"))
        if stat.S_ISLNK(facts.st_mode) and self._links is not None:
            if not here.linked and (target := self._links.target(path)):
                self.found.files[path] = FileState.of(path, facts, here.moved_ns, target)
            else:
                yield from self._follow(path, at, here, self._links)
        else:
            yield from self._keep(path, facts, _Open(path, here.moved_ns, at, here.linked))

    def _keep(self, path: str, facts: os.stat_result, place: _Open) -> Iterator[_Open]:
        """Takes note of a file or a folder."""
        self._linked += bool(place.linked)
        if self._linked > MOST_LINKED:
            self._note(TOO_MANY)
        elif stat.S_ISDIR(facts.st_mode):
            self.found.folders[path] = FolderState(stat.S_IMODE(facts.st_mode), facts.st_mtime_ns)
            yield place._replace(path=f"{path}/", moved_ns=max(place.moved_ns, _moved_ns(facts)))
        elif stat.S_ISREG(facts.st_mode):
            source = place.source if place.linked else None
            self.found.files[path] = FileState.of(path, facts, place.moved_ns, source=source)
        else:
            self._note(f"{path!r} is left out: it is not a regular file")

    def _follow(self, path: str, at: Source, here: _Open, links: Links) -> Iterator[_Open]:
        """Takes note of what a link leads to, as if it were in the place of the link."""
        self._linked += 1
        if self._linked > MOST_LINKED:
            self._note(TOO_MANY)
            return
        found = links.source(at)
        if found is None:
            self._note(f"{path!r} is left out: it is a link out of the job's folders")
        elif found in here.linked or _is_above(found, at):
            self._note(f"{path!r} is left out: it is a link back to a folder that it is in")
        else:
            try:
                opened = found.open()
            except OSError as problem:
                self._note(f"{path!r} is left out: it is a link to what cannot be opened ({problem.strerror})")
                return
            facts = os.fstat(opened)
            os.close(opened)
            yield from self._keep(path, facts, _Open(path, here.moved_ns, found, (*here.linked, found)))


def _is_above(folder: Source, place: Source) -> bool:
    return folder.root == place.root and f"{place.path}/".startswith(f"{folder.path}/" if folder.path else "")


def _moved_ns(folder: os.stat_result) -> int:
    """When a folder was renamed, which changes its inode and none of its entries; 0 where an entry was added or removed since."""
    return folder.st_ctime_ns if folder.st_ctime_ns > folder.st_mtime_ns else 0


def _find_unfit_name(path: str) -> str:
    return "its name is not UTF-8" if not path.isascii() and not is_text(path) else ""
