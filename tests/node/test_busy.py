"""A file that is written all the time, while checkpoints beside it are saved, holds up no set; a slow save holds up its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.growth import Growth
from agent.layouts.kinds import FileKind
from agent.sets.busy import LEAST_S, PAUSE_S, Busy
from agent.snapshot import FileState
from tests.node.fakes import FakeS3
from tests.node.folders import EVERY_S, Clock, Rank, closed
from tests.node.layout_worlds import as_torch, put, read_bytes

OPAQUE = b"\0\x01\x02"


class World:
    """A folder whose files have names that say what they are: `whole.pt` is whole by its format once it has ten bytes."""

    def __init__(self) -> None:
        self.now, self.files = 0.0, dict[str, FileState]()
        self.busy = Busy(
            lambda one: FileKind.TEXT if one.path.endswith(".csv") else FileKind.WEIGHTS,
            lambda one: one.size >= 10 if one.path.endswith(".pt") else None,
        )

    def write(self, path: str, size: int, inode: int = 1) -> None:
        self.files[path] = FileState(path, size, int(self.now * 1e9), int(self.now * 1e9), inode, 1)

    def observe(self, later_s: float = 5.0) -> None:
        self.busy.observe(list(self.files.values()), self.now)
        self.now += later_s

    def write_on(self, path: str, *, upto_s: float, saves: Callable[[int], None] = lambda _: None) -> None:
        """Writes to the file every five seconds; `saves` is called with the seconds since the beginning."""
        while self.now < upto_s:
            self.write(path, int(self.now) + 1)
            saves(int(self.now))
            self.observe()

    def find(self) -> frozenset[str]:
        return self.busy.find(self.now, EVERY_S)


def test_a_file_during_which_another_was_saved_twice_is_written_all_the_time() -> None:
    world = World()
    world.write_on(
        "metrics.dat",
        upto_s=EVERY_S + 5,
        saves=lambda at: world.write(f"step-{at}.pt", 10) if at % 200 == 100 else None,
    )
    assert world.find() == {"metrics.dat"}


def test_the_same_name_written_anew_counts_as_a_second_save() -> None:
    world = World()
    world.write_on(
        "metrics.dat", upto_s=EVERY_S + 5, saves=lambda at: world.write("last.pt", 10 + at) if at % 20 == 10 else None
    )
    assert world.find() == {"metrics.dat"}


@pytest.mark.parametrize("saved", [[], [100], [100, 140]], ids=["none", "one", "the next of one row, at once"])
def test_what_nothing_was_saved_twice_beside_may_be_of_a_save(saved: list[int]) -> None:
    """Shards of a save are written one after the other, and their optimizer's states by another thread meanwhile."""
    world = World()
    world.write_on(
        "states.bin", upto_s=2 * EVERY_S, saves=lambda at: world.write(f"shard-{at}.pt", 10) if at in saved else None
    )
    assert world.find() == frozenset()


def test_files_of_other_names_are_of_the_same_save() -> None:
    names = {100: "model.pt", 300: "ema.pt", 500: "heads.pt"}
    world = World()
    world.write_on(
        "states.bin", upto_s=2 * EVERY_S, saves=lambda at: world.write(names[at], 10) if at in names else None
    )
    assert world.find() == frozenset()


def test_a_shard_of_the_same_row_says_nothing() -> None:
    world = World()
    world.write_on(
        "shard-1.bin",
        upto_s=2 * EVERY_S,
        saves=lambda at: world.write(f"shard-{at}.bin", 10) if at % 200 == 100 else None,
    )
    assert world.find() == frozenset()


def test_small_texts_are_no_saves() -> None:
    world = World()
    world.write_on("model.bin", upto_s=2 * EVERY_S, saves=lambda at: world.write("results.csv", at))
    assert world.find() == frozenset()


def test_half_a_checkpoint_beside_is_no_save() -> None:
    world = World()
    world.write_on("model.bin", upto_s=2 * EVERY_S, saves=lambda at: world.write("other.pt", at % 10))
    assert world.find() == frozenset()


def test_weights_in_no_known_format_are_saved_once_they_rest() -> None:
    world = World()
    period = int(PAUSE_S) + 10
    world.write_on(
        "metrics.dat",
        upto_s=EVERY_S + 5,
        saves=lambda at: world.write("model.bin", 10 + at) if at % period == 0 else None,
    )
    assert world.find() == {"metrics.dat"}


def test_what_is_whole_again_and_again_is_a_save_itself() -> None:
    world = World()
    world.write_on(
        "last.pt", upto_s=2 * EVERY_S, saves=lambda at: world.write("best.pt", 10 + at) if at % 50 == 0 else None
    )
    assert world.find() == frozenset()


@pytest.mark.parametrize("least_s", [LEAST_S, EVERY_S])
def test_a_large_save_takes_minutes(least_s: float) -> None:
    world = World()
    world.write_on(
        "metrics.dat", upto_s=least_s - 5, saves=lambda at: world.write("last.pt", 10 + at) if at % 20 == 10 else None
    )
    every_s = EVERY_S if least_s == EVERY_S else 60.0
    assert world.busy.find(world.now, every_s) == frozenset()
    assert world.busy.find(world.now + 6, every_s) == {"metrics.dat"}


def test_what_was_left_alone_for_longer_than_a_save_pauses_is_done() -> None:
    world = World()
    world.write_on(
        "metrics.dat", upto_s=EVERY_S + 5, saves=lambda at: world.write("last.pt", 10 + at) if at % 20 == 10 else None
    )
    for _ in range(int(PAUSE_S / 5) + 2):
        world.observe()
    assert world.find() == frozenset()


def test_what_is_gone_is_forgotten() -> None:
    world = World()
    world.write_on(
        "metrics.dat", upto_s=EVERY_S + 5, saves=lambda at: world.write("last.pt", 10 + at) if at % 20 == 10 else None
    )
    del world.files["metrics.dat"]
    world.observe()
    assert world.find() == frozenset()


def test_small_texts_are_not_looked_at() -> None:
    """They hold up no set, and a piece of one must be in none."""
    world = World()
    world.write_on(
        "history.csv",
        upto_s=2 * EVERY_S,
        saves=lambda at: world.write("last.pt", 10 + at) if at % 20 == 10 else None,
    )
    assert world.find() == frozenset()


def test_what_is_found_is_not_lost_for_being_marked_as_growing() -> None:
    world = World()
    saves = lambda at: world.write("last.pt", 10 + at) if at % 20 == 10 else None  # noqa: E731
    world.write_on("metrics.dat", upto_s=EVERY_S + 5, saves=saves)
    world.files["metrics.dat"] = world.files["metrics.dat"]._replace(grows=True, size=90_000)
    world.observe()
    assert world.find() == {"metrics.dat"}


@pytest.mark.parametrize(("more", "grows"), [(b"old and new", True), (b"all of it new", False)])
def test_only_what_keeps_its_bytes_is_taken_while_it_is_written(tmp_path: Path, more: bytes, grows: bool) -> None:
    """A report that is written anew may be longer each time, and a piece of it is no report."""
    growth, file = Growth(tmp_path, clock=lambda: 0.0), tmp_path / "metrics.dat"
    seen = list[bool]()
    for content in (b"old", b"old and", more):
        with file.open("r+b" if file.exists() else "wb") as out:
            out.write(content)
        states = [FileState.of("metrics.dat", file.stat())]
        seen = [one.grows for one in growth.mark(states, since=-1.0, busy={"metrics.dat"})]
    assert seen == [grows]


# With a rank's checkpoints


def measure(rank: Rank, _second: int) -> None:
    """Appends in a binary format."""
    file = rank.path / "metrics.dat"
    file.write_bytes((file.read_bytes() if file.exists() else b"") + OPAQUE)
    rank._date(file)


def report(rank: Rank, second: int) -> None:
    """Writes a large page anew."""
    put(rank, "report.html", f"<html>{second}{'<p>loss</p>' * 120_000}")


def list_history(rank: Rank, second: int) -> None:
    """Writes a large document anew, which is half there at every second look."""
    put(rank, "history.json", f"[{second}{', 0.25' * 200_000}" + ("]" if second % 2 else ""))


def replay(rank: Rank, second: int) -> None:
    """Writes to a file with the name of weights."""
    put(rank, "buffer.bin", f"\0{second}")


def collect(rank: Rank, _second: int) -> None:
    """Appends to a file with the name of weights."""
    file = rank.path / "buffer.bin"
    file.write_bytes((file.read_bytes() if file.exists() else b"") + OPAQUE)
    rank._date(file)


def overwrite(rank: Rank, second: int) -> None:
    """Writes a file anew that no name and no format tells from weights."""
    put(rank, "states", f"\0{second}")


def train(rank: Rank, clock: Clock, write: Callable[[Rank, int], None], seconds: int) -> None:
    for second in range(seconds):
        clock.now += 1.0
        if second % 7 == 0:
            write(rank, second)
        if second % 200 == 150:
            put(rank, f"step-{second:05}.pt", as_torch(str(second)))
        rank.checkpoints.tick()


@pytest.mark.parametrize("write", [measure, report, list_history, replay, collect, overwrite])
def test_sets_close_in_time_beside_a_file_that_is_written_all_the_time(
    tmp_path: Path, s3: FakeS3, write: Callable[[Rank, int], None]
) -> None:
    clock = Clock()
    rank = Rank(tmp_path, s3, clock=clock)
    train(rank, clock, write, int(3.5 * EVERY_S))
    assert len(closed(s3)) >= 3
    again = Rank(tmp_path, s3, attempt=2, clock=clock)
    again.restore()
    newest = max(path for path in read_bytes(again) if path.endswith(".pt"))
    assert int(newest[5:10]) >= 2 * EVERY_S
    found = read_bytes(again)
    assert found[newest] == as_torch(str(int(newest[5:10])))
    assert not {"buffer.bin", "states"} & found.keys()
    assert ("metrics.dat" in found) is (write is measure)
    assert isinstance(json.loads(found.get("history.json", b"[]")), list)


@pytest.mark.parametrize(
    ("write", "said"),
    [(measure, "metrics.dat {}: sets have it where it only grows"), (replay, "buffer.bin {}: sets leave it out")],
)
def test_the_file_is_named_once(tmp_path: Path, s3: FakeS3, write: Callable[[Rank, int], None], said: str) -> None:
    clock = Clock()
    rank = Rank(tmp_path, s3, clock=clock)
    train(rank, clock, write, int(2.5 * EVERY_S))
    (note,) = [note for note in rank.notes if "is written all the time" in note]
    assert said.format("is written all the time, while other files are saved") in note


def test_weights_that_were_left_out_are_in_the_set_once_they_rest(tmp_path: Path, s3: FakeS3) -> None:
    clock = Clock()
    rank = Rank(tmp_path, s3, clock=clock)
    train(rank, clock, replay, int(2.5 * EVERY_S))
    train(rank, clock, lambda *_: None, int(EVERY_S))
    again = Rank(tmp_path, s3, attempt=2, clock=clock)
    again.restore()
    assert "buffer.bin" in read_bytes(again)
