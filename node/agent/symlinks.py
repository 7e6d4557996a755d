"""Decides where a symbolic link leads, by the names that the training uses, and opens what lies under a folder through no link.

Whoever runs a job makes its links, and can change them at any moment: an answer says where to look, and the open proves it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from contract.codec import is_text

MOST_HOPS = 40
"""Links on the way to one file; Linux follows as many."""
MOST_TARGET = 4096
"""Bytes of a link's target that Linux takes."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""A pipe in the place of a file is opened without waiting for its other end."""


def destination(path: str, read: Callable[[str], str | None], *, within: str = "") -> str | None:
    """Returns the absolute path to which the link at an absolute path leads; None where it goes through more than MOST_HOPS links, or
    leaves the folder `within` on its way.

    `read` returns the target of the link at an absolute path, None where there is no link.
    """
    here, todo, hops = list[str](), deque(path.strip("/").split("/")), 0
    while todo:
        part = todo.popleft()
        if part in ("", "."):
            continue
        if part == "..":
            here = here[:-1]
        else:
            here.append(part)
            target = read("/" + "/".join(here))
            if target is not None:
                hops += 1
                here = [] if target.startswith("/") else here[:-1]
                todo.extendleft(reversed(target.split("/")))
        if hops > MOST_HOPS or (hops and within and not _is_under("/" + "/".join(here), within)):
            return None
    return "/" + "/".join(here)


def stays_inside(path: str, links: Mapping[str, str]) -> bool:
    """Whether the link at a path relative to a folder leads to a place in that folder, never leaving it on its way. `links` has the target
    of every link of the folder by its path."""
    return destination(f"/in/{path}", lambda at: links.get(at.removeprefix("/in/")), within="/in") is not None


class Source(NamedTuple):
    """What a link leads to: a path relative to one of the job's folders, without a link in it."""

    root: str
    path: str

    def open(self, flags: int = os.O_RDONLY) -> int:
        """Opens it. Raises OSError where it went away, or a link has taken the place of a part of the path or of the folder itself."""
        here = os.open(self.root, FOLDER | NO_LINK)
        for part in self.path.split("/") if self.path else ():
            try:
                inner = os.open(part, flags | NO_LINK, dir_fd=here)
            finally:
                os.close(here)
            here = inner
        return here


@dataclass(frozen=True)
class Links:
    """How links in one of a job's folders are read.

    `shown`: each of the job's folders on this machine, by every absolute path under which the training may know it. `own`: the folder
    itself, on this machine. `keeps`: a link to a place in the folder stays a link, and does not become the content of that place.
    """

    own: str
    shown: Mapping[str, str]
    keeps: bool

    def target(self, path: str) -> str:
        """Returns where the link at a path of this folder leads, relative to the link's own folder; empty where that is not in this
        folder, or links are not kept."""
        if not self.keeps:
            return ""
        at, own = self._name(Source(self.own, path)), self._name(Source(self.own, ""))
        text = self._read(at) or ""
        if text.startswith("/") or destination(at, self._read, within=own) is None:
            found = self.source(Source(self.own, path))
            if found is None or found.root != self.own:
                return ""
            text = os.path.relpath(f"/{found.path}", f"/{PurePosixPath(path).parent}")
        return text if is_text(text) else ""

    def source(self, link: Source) -> Source | None:
        """Returns to what in the job's folders a link in one of them leads; None where it leads elsewhere, or round in a circle."""
        found = destination(self._name(link), self._read)
        return None if found is None else self._place(found)

    def _name(self, place: Source) -> str:
        """A path by which the training may know the place."""
        folder = next(name for name, root in self.shown.items() if root == place.root)
        return f"{folder}/{place.path}".rstrip("/")

    def _place(self, path: str) -> Source | None:
        folder = max((name for name in self.shown if _is_under(path, name)), key=len, default="")
        return Source(self.shown[folder], path[len(folder) :].strip("/")) if folder else None

    def _read(self, path: str) -> str | None:
        place = self._place(path)
        if place is None or not place.path:
            return None
        parent, _, name = place.path.rpartition("/")
        try:
            opened = Source(place.root, parent).open(FOLDER)
        except OSError:
            return None
        try:
            return os.readlink(name, dir_fd=opened)
        except OSError:
            return None
        finally:
            os.close(opened)


def _is_under(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
