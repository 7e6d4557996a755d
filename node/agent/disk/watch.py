"""Watches the room on the node's disks while the job runs, and says in report and log what will be too small."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from agent.disk import room
from agent.disk.place import WorkPlace
from agent.disk.room import Naming, Room, Shortage
from agent.progress import Named
from agent.reports import Reporter
from agent.snapshot import UNFINISHED, list_below

EVERY_S = 10.0
PACE_S = 600.0
"""The pace of the room is that of the last ten minutes."""
NAMINGS = 6
"""The habit of a trainer is that of its last checkpoints."""
LATE_S = 2.0
"""A file of a checkpoint is at most so much newer than the file that names it."""

Measured = tuple[int, int]
"""Bytes of a file system, and those that may be written."""


def measured(folder: Path) -> Measured:
    """Raises OSError where the folder is gone."""
    facts = os.statvfs(folder)
    return facts.f_blocks * facts.f_frsize, facts.f_bavail * facts.f_frsize


class RoomWatch:
    """Looks every `EVERY_S` seconds, from a thread of its own. What it cannot see it leaves out; it never ends a job."""

    def __init__(
        self,
        place: WorkPlace,
        *,
        volume_gb: int,
        stop_at: float,
        named: Callable[[], Named | None],
        reporter: Reporter,
        note: Callable[[str], None],
        now: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
        measure: Callable[[Path], Measured] = measured,
    ) -> None:
        """`stop_at` is when the job has to stop, by the clock of `now`."""
        self._place, self._volume_gb, self._stop_at = place, volume_gb, stop_at
        self._named, self._reporter, self._note = named, reporter, note
        self._now, self._monotonic, self._measure = now, monotonic, measure
        self._namings = deque[Naming](maxlen=NAMINGS)
        self._seen: dict[str, deque[tuple[float, int]]] = {}
        self._said: dict[tuple[str, str], Shortage] = {}
        self._size, self._shown = 0, ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="room", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Nothing is said afterwards."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join(EVERY_S)

    def check_room(self) -> None:
        """Looks once at the disk of the work folder, and at the root volume where that is another."""
        size, free = self._measure(self._place.folder)
        beside = 0
        found = []
        if self._place.on_instance_store:
            root_size, root_free = self._measure(self._place.root)
            beside = root_size - root_free
            found.append(self._shortage(Room(size=root_size, free=root_free), room.Habit()))
        self._follow(free)
        what = "the instance store" if self._place.on_instance_store else "the root volume"
        work = Room(size=size, free=free, beside=beside, what=what)
        found.append(self._shortage(work, room.habit(self._namings, self._size)))
        self._show([one.text for one in found if one is not None])

    def _run(self) -> None:
        while not self._over.wait(EVERY_S):
            with suppress(OSError):
                self.check_room()

    def _shortage(self, disk: Room, habit: room.Habit) -> Shortage | None:
        seen, at = self._seen.setdefault(disk.what, deque()), self._monotonic()
        seen.append((at, disk.free))
        while seen[0][0] < at - PACE_S:
            seen.popleft()
        left_s = max(0.0, self._stop_at - self._now())
        found = room.shortage(disk, habit, room.pace(seen), left_s, self._volume_gb)
        if found and room.is_news(found, self._said.get((disk.what, found.kind))):
            self._said[disk.what, found.kind] = found
            self._note(found.text)
        return self._said[disk.what, found.kind] if found else None

    def _follow(self, free: int) -> None:
        """Notes the room after each checkpoint that the trainer names, and how large the newest is."""
        named = self._named()
        if named is None or (self._namings and self._namings[-1].count == named.count):
            return
        since = named.at - named.period_s if named.period_s else self._reporter.report.timeline.get("started", 0.0)
        self._namings.append(Naming(count=named.count, at=named.at, free=free))
        self._size = written(self._place.folder / "checkpoints", since, named.at + LATE_S) or self._size

    def _show(self, texts: list[str]) -> None:
        """Keeps what was said in the report for as long as it is so, and never in the place of another note."""
        text, note = "; ".join(texts), self._reporter.report.note
        if note in ("", self._shown) and note != text:
            self._reporter.change(note=text)
        self._shown = text


def written(folder: Path, since: float, until: float) -> int:
    """Returns the bytes of the finished files below a folder whose time is after `since` and not after `until`, UTC epoch seconds."""
    return sum(
        facts.st_size
        for path, facts in list_below(folder)
        if since < facts.st_mtime <= until and not path.endswith(UNFINISHED)
    )
