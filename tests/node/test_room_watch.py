"""The watch over the room on a node's disks: what it measures, what it says, and how often."""

from __future__ import annotations

import os
import threading
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.disk.place import WorkPlace
from agent.disk.watch import RoomWatch, written
from agent.progress import Named
from contract.reports import Phase
from localaws.testing.waiting import until
from tests.node.machines import GIB
from tests.node.programs import Program
from tests.node.world import Site

STARTED = 1_000.0


class Told:
    """Stands for the reporter."""

    def __init__(self) -> None:
        self.report = SimpleNamespace(note="", timeline={"started": STARTED})
        self.changes: list[str] = []

    def change(self, *, note: str) -> None:
        self.report.note = note
        self.changes.append(note)


class Watched:
    """A work folder of 100 GiB, on the root volume or beside it, whose trainer saves when a test says so."""

    def __init__(self, folder: Path, *, on_instance_store: bool = False) -> None:
        self.folder, self.reporter, self.notes = folder, Told(), list[str]()
        self.sizes = {folder: (100 * GIB, 90 * GIB), Path("/"): (200 * GIB, 140 * GIB)}
        self.named: Named | None = None
        self.time = STARTED
        (folder / "checkpoints").mkdir()
        reporter: Any = self.reporter
        self.watch = RoomWatch(
            WorkPlace(folder, on_instance_store=on_instance_store),
            volume_gb=100,
            stop_at=STARTED + 24 * 3600,
            named=lambda: self.named,
            reporter=reporter,
            note=self.notes.append,
            now=lambda: self.time,
            monotonic=lambda: self.time,
            measure=lambda place: self.sizes[place],
        )

    def free(self, free: int, where: Path | None = None) -> None:
        place = where or self.folder
        self.sizes[place] = (self.sizes[place][0], free)

    def saves(self, free: int, gib: int = 10) -> None:
        """Writes a checkpoint, names it, and is looked at ten minutes after the one before."""
        count, at = (self.named.count + 1 if self.named else 1), self.time + 600
        self.time = at
        file = self.folder / f"checkpoints/{count}.pt"
        with file.open("wb") as target:
            target.truncate(gib * GIB)  # takes no room on the disk
        os.utime(file, (at - 1, at - 1))
        self.named = Named(count, at, count, 600.0 if count > 1 else 0.0)
        self.free(free)
        self.watch.check_room()


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_a_trainer_that_keeps_every_checkpoint_is_told_three_before_the_end_and_at_the_last(watched: Watched) -> None:
    for free in (80, 70, 60, 50, 40):
        watched.saves(free * GIB)
    assert watched.notes == []
    watched.saves(30 * GIB)
    assert [note.partition(" (")[0] for note in watched.notes] == ["the root volume holds 3 more checkpoints"]
    watched.saves(20 * GIB)
    assert len(watched.notes) == 1
    watched.saves(10 * GIB)
    assert watched.notes[1].startswith(
        "the root volume holds 1 more checkpoint (10.0 GiB each; 10.0 of 100.0 GiB free)"
    )
    assert watched.reporter.report.note == watched.notes[1]


def test_a_trainer_that_removes_old_ones_is_never_told(watched: Watched) -> None:
    for _ in range(50):
        watched.saves(12 * GIB)
    assert watched.notes == []
    assert watched.reporter.changes == []


def test_many_looks_at_the_same_shortage_say_it_once(watched: Watched) -> None:
    watched.free(2 * GIB)
    for _ in range(100):
        watched.time += 10
        watched.watch.check_room()
    assert len(watched.notes) == 1
    assert len(watched.reporter.changes) == 1


def test_a_note_of_the_report_about_something_else_stays_and_the_shortage_is_shown_when_it_goes(
    watched: Watched,
) -> None:
    watched.reporter.report.note = "waits for the master address"
    watched.free(2 * GIB)
    watched.watch.check_room()
    assert watched.reporter.changes == []
    watched.reporter.report.note = ""
    watched.watch.check_room()
    assert "nearly full" in watched.reporter.report.note


def test_room_that_comes_back_takes_the_note_away(watched: Watched) -> None:
    watched.free(2 * GIB)
    watched.watch.check_room()
    watched.free(50 * GIB)
    watched.watch.check_room()
    assert watched.reporter.report.note == ""


def test_room_that_falls_while_nothing_is_named_is_told_by_its_pace(watched: Watched) -> None:
    for step in range(14):
        watched.free((90 - 3 * step) * GIB)
        watched.watch.check_room()
        watched.time += 10
    assert len(watched.notes) == 1
    assert "the root volume is full in" in watched.notes[0]


def test_the_root_volume_is_watched_beside_an_instance_store(tmp_path: Path) -> None:
    watched = Watched(tmp_path, on_instance_store=True)
    watched.free(GIB, Path("/"))
    watched.watch.check_room()
    (note,) = watched.notes
    assert note.startswith("the root volume is nearly full (1.0 of 200.0 GiB free)")


def test_a_shortage_of_the_instance_store_counts_what_the_root_volume_holds(tmp_path: Path) -> None:
    watched = Watched(tmp_path, on_instance_store=True)
    watched.free(GIB)
    watched.watch.check_room()
    (note,) = watched.notes
    assert note.startswith("the instance store is nearly full")
    assert note.endswith("volume_gb of at least 210, which is then used instead")  # 1.1 x (125 + 60)


def test_the_newest_checkpoint_is_what_was_written_since_the_one_before(tmp_path: Path) -> None:
    for name, at, size in (
        ("restored.pt", 99.0, 1),
        ("old/a.pt", 150.0, 10),
        ("new/a.pt", 250.0, 100),
        ("new/b.pt", 300.0, 1_000),
        ("new/c.pt.tmp", 299.0, 10_000),
        ("next.pt", 310.0, 100_000),
    ):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(bytes(size))
        os.utime(file, (at, at))
    assert written(tmp_path, 200.0, 302.0) == 1_100
    assert written(tmp_path / "nowhere", 0.0, 1e12) == 0


# On a node


Facts = namedtuple("Facts", "f_blocks f_bavail f_frsize")


@pytest.fixture
def nearly_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.disk.watch.EVERY_S", 0.05)
    monkeypatch.setattr("os.statvfs", lambda _folder: Facts(100 * GIB // 4096, 2 * GIB // 4096, 4096))


@pytest.mark.usefixtures("nearly_full")
def test_a_node_whose_disk_is_nearly_full_says_so_in_its_log_once_and_in_its_report(site: Site) -> None:
    site.offer(f"import time, pathlib\nwhile not pathlib.Path({str(site.root / 'go')!r}).exists(): time.sleep(0.05)")

    def go() -> None:
        until(lambda: any("nearly full" in one.note for one in site.sent() if one.phase is Phase.TRAINING))
        (site.root / "go").touch()

    thread = threading.Thread(target=go)
    thread.start()
    assert site.run().code == 0
    thread.join()
    assert len([line for line in site.lines if "nearly full" in line]) == 1


def with_instance_store(site: Site, program: Program, mkfs: str) -> None:
    """A machine with one instance store, whose tools note what they are asked."""
    folder = site.root / "sys/block/nvme1n1"
    (folder / "device").mkdir(parents=True)
    for file, text in {
        "device/model": "Amazon EC2 NVMe Instance Storage",
        "size": str(2**50 // 512),
        "dev": "259:1",
    }.items():
        (folder / file).write_text(f"{text}\n")
    for place in ("dev", "proc/self"):
        (site.root / place).mkdir(parents=True)
    (site.root / "dev/nvme1n1").touch()
    mounts = site.root / "proc/self/mountinfo"
    mounts.touch()
    program("blkid", "exit 2")
    program("mkfs.xfs", mkfs)
    line = "1 2 259:1 / /var/lib/trainyard rw,noatime shared:1 - xfs /dev/nvme1n1 rw"
    program("mount", f"echo '{line}' >> {mounts}")


def test_a_node_with_an_instance_store_trains_on_it_and_says_so(site: Site, program: Program) -> None:
    with_instance_store(site, program, "exit 0")
    site.offer("print('fine')")
    assert site.run().code == 0
    assert any("the work folder is on the instance store (nvme1n1, 1048576.0 GiB)" in line for line in site.lines)


def test_a_node_whose_instance_store_is_broken_trains_on_its_root_volume_and_says_why(
    site: Site, program: Program
) -> None:
    with_instance_store(site, program, "echo 'mkfs.xfs: pwrite failed: Input/output error' >&2; exit 1")
    site.offer("print('fine')")
    assert site.run().code == 0
    assert "fine" in site.lines
    assert any(
        "stays on the root volume: mkfs.xfs of nvme1n1 failed (1): mkfs.xfs: pwrite failed" in line
        for line in site.lines
    )
