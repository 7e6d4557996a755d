"""A file that only grows and belongs to no checkpoint stops none; a checkpoint that is being written is never taken for one."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from agent.engine import sending
from agent.growth import MOST, SAMPLE, Growth
from agent.snapshot import Changed, look
from tests.node.fakes import FakeS3
from tests.node.folders import EVERY_S, Rank, artifacts, closed, kept


class Watched:
    """A folder and what is known of its files; a look each second."""

    def __init__(self, path: Path) -> None:
        self.path, self.now = path, 100.0
        self.growth = Growth(path, clock=lambda: self.now)

    def write(self, name: str, content: bytes, how: str = "wb") -> None:
        with (self.path / name).open(how) as file:
            file.write(content)

    def grows(self, since: float = 1e9) -> set[str]:
        self.now += 1.0
        states = look(self.path, print).values()
        return {one.path for one in self.growth.mark(states, since=since) if one.grows}


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_a_file_is_known_to_grow_once_it_has_grown(watched: Watched) -> None:
    watched.write("log", b"1\n")
    assert watched.grows() == set()
    watched.write("log", b"2\n", "ab")
    assert watched.grows() == {"log"}
    assert watched.grows() == {"log"}, "a log may rest"


@pytest.mark.parametrize(
    ("content", "how"),
    [
        (b"B" * 200_001, "wb"),  # as a save to the same path is, which is longer than the one before
        (b"A" * 100_000, "wb"),
        (b"A" * 100_000 + b"B" * 100_001, "wb"),
        (b"A" * 150_000, "wb"),
    ],
    ids=["longer", "shorter", "with the same beginning", "begun anew"],
)
def test_a_file_that_is_written_anew_is_no_log(watched: Watched, content: bytes, how: str) -> None:
    watched.write("model", b"A" * 100_000)
    watched.grows()
    watched.write("model", b"A" * 100_000, "ab")
    assert watched.grows() == {"model"}
    watched.write("model", content, how)
    assert watched.grows(since=watched.now) == set()


def test_a_file_that_is_replaced_by_a_longer_one_is_no_log(watched: Watched) -> None:
    watched.write("model", b"1")
    watched.grows()
    watched.write("new.tmp", b"12")
    (watched.path / "new.tmp").rename(watched.path / "model")
    assert watched.grows() == set()


def test_a_file_that_is_rewritten_without_becoming_longer_is_no_log(watched: Watched) -> None:
    watched.write("table", b"1" * 10)
    watched.grows()
    watched.write("table", b"1", "ab")
    assert watched.grows() == {"table"}
    watched.write("table", b"2" * 11)
    assert watched.grows() == set()


def test_a_file_whose_header_changes_while_it_grows_is_no_log(watched: Watched) -> None:
    """As databases and archives are."""
    watched.write("table", b"1" * 4 * SAMPLE)
    watched.grows()
    watched.write("table", b"1", "ab")
    watched.grows()
    watched.write("table", b"2" + b"1" * 4 * SAMPLE + b"11")
    assert watched.grows(since=watched.now - 1.0) == set()


def test_many_files_that_grow_are_a_checkpoint_that_is_written(watched: Watched) -> None:
    for round_ in range(3):
        for number in range(MOST + 1):
            watched.write(f"shard-{number}", b"x", "ab")
        assert watched.grows() == set(), round_


def test_a_log_that_went_away_is_forgotten(watched: Watched) -> None:
    watched.write("log", b"1")
    watched.grows()
    watched.write("log", b"2", "ab")
    assert watched.grows() == {"log"}
    (watched.path / "log").unlink()
    assert watched.grows() == set()


# In sets


class Trainer:
    """Names a checkpoint each 20 s, and writes a line each tenth of a second meanwhile."""

    def __init__(self, rank: Rank) -> None:
        self.rank, self.step = rank, 0

    def line(self) -> None:
        file = self.rank.path / "train.log"
        with file.open("a") as log:
            log.write("a line of the log\n")
        self.rank._date(file)

    def run(self, saves: int) -> None:
        for _ in range(saves):
            for _ in range(200):
                self.rank.clock.now += 0.1
                self.line()
            self.step += 20
            self.rank.write("model", f"of {self.step}")
            self.rank.at(self.step, checkpoint=self.step)
            self.rank.clock.now += 0.1
            self.line()
            self.rank.checkpoints.tick()


def test_a_log_beside_checkpoints_keeps_no_set_from_closing(tmp_path: Path, s3: FakeS3) -> None:
    rank = Rank(tmp_path, s3)
    trainer = Trainer(rank)
    trainer.run(100)
    assert rank.checkpoints.closed_step >= trainer.step - EVERY_S - 40
    later = Rank(tmp_path, s3, attempt=2)
    step = later.restore()
    assert later.content["model"] == f"of {step}"
    assert set(later.content["train.log"].splitlines()) == {"a line of the log"}


def test_a_log_that_was_cut_by_a_kill_does_not_spoil_the_last_set(tmp_path: Path, s3: FakeS3) -> None:
    rank = Rank(tmp_path, s3)
    trainer = Trainer(rank)
    trainer.run(4)
    rank.checkpoints.finish()
    assert len(closed(s3)) == 1
    assert Rank(tmp_path, s3, attempt=2).restore() == trainer.step


def test_a_checkpoint_that_is_written_slowly_into_its_place_is_never_closed_before_its_name(
    tmp_path: Path, s3: FakeS3
) -> None:
    """It grows from look to look, as a log does. Its trainer names it last."""
    rank = Rank(tmp_path, s3)
    for step in range(20, 2020, 20):
        for _ in range(40):
            rank.clock.now += 0.5
            with (rank.path / f"model-{step}").open("a") as file:
                file.write(f"{step:06d}" * 1000)
            rank._date(rank.path / f"model-{step}")
            rank.checkpoints.tick()
        rank.at(step, checkpoint=step)
        rank.checkpoints.tick()
        (rank.path / f"model-{step - 20}").unlink(missing_ok=True)
    assert len(closed(s3)) >= 2
    later = Rank(tmp_path, s3, attempt=2)
    step = later.restore() or 0
    assert all(len(text) == 40 * 6000 for text in later.content.values())
    assert max(later.content) == f"model-{step}"


def test_a_checkpoint_that_is_written_in_place_again_and_again_is_never_closed_torn(tmp_path: Path, s3: FakeS3) -> None:
    """To one path, each longer than the one before, and with the same beginning."""
    rank = Rank(tmp_path, s3)
    file = rank.path / "model"
    for step in range(20, 2020, 20):
        file.write_text("")
        for part in range(40):
            rank.clock.now += 0.5
            with file.open("a") as into:
                into.write(f"{part if part < 3 else step:06d}" * (1000 + step))
            rank._date(file)
            rank.checkpoints.tick()
        rank.at(step, checkpoint=step)
        rank.checkpoints.tick()
    later = Rank(tmp_path, s3, attempt=2)
    step = later.restore() or 0
    assert later.content == {
        "model": "".join(f"{part if part < 3 else step:06d}" * (1000 + step) for part in range(40))
    }


def test_what_a_log_gets_while_it_is_sent_is_in_the_next_commit(folder: Rank, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("train.log", "1\n")
    growth, real = Growth(folder.path, clock=folder.clock), sending.fill

    def append_first(*given: object) -> None:
        with (folder.path / "train.log").open("a") as log:
            log.write("more\n")
        real(*given)  # type: ignore[arg-type]

    def send() -> str:
        sent = folder.folder.send(mark=lambda own: growth.mark(own, since=folder.clock.now)).files
        return folder.s3.objects["yard-bytes", sent[0].key][sent[0].offset :][: sent[0].size].decode()

    growth.observe(folder.folder.look())
    (folder.path / "train.log").write_text("1\n2\n")
    growth.observe(folder.folder.look())
    monkeypatch.setattr(sending, "fill", append_first)
    assert send() == "1\n2\n"
    assert send() == "1\n2\nmore\n"


def test_a_file_that_became_shorter_while_it_was_sent_is_in_no_commit(
    folder: Rank, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("train.log", "1\n2\n")
    real = sending.fill

    def cut_first(*given: object) -> None:
        (folder.path / "train.log").write_text("1")
        real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(sending, "fill", cut_first)
    with pytest.raises(Changed):
        folder.folder.send(mark=lambda own: [one._replace(grows=one.size > 1) for one in own])


def test_artifacts_are_committed_beside_a_log_that_never_rests(folder: Rank) -> None:
    made = artifacts(folder)
    there, over = folder.path.parent / "artifacts", threading.Event()
    (there / "model").write_text("model")

    def write() -> None:
        with (there / "log").open("a", buffering=1) as log:
            while not over.is_set():
                log.write("line\n")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        files = kept(folder, made)
    finally:
        over.set()
        writer.join()
    assert files["model"] == "model"
    assert set(files["log"].splitlines()) == {"line"}
