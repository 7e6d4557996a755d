"""A file that only grows and belongs to no checkpoint stops none; a checkpoint that is being written is never taken for one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from agent.engine import sending
from agent.growth import MOST, SAMPLE, Growth
from agent.snapshot import Changed, list_files
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
        states = list_files(self.path, print).values()
        return {one.path for one in self.growth.mark(states, since=since) if one.grows}


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_a_file_is_known_to_grow_once_it_has_grown(watched: Watched) -> None:
    watched.write("train.log", b"1\n")
    assert watched.grows() == set()
    watched.write("train.log", b"2\n", "ab")
    assert watched.grows() == {"train.log"}
    assert watched.grows() == {"train.log"}, "a log may rest"


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
    watched.write("model.out", b"A" * 100_000)
    watched.grows()
    watched.write("model.out", b"A" * 100_000, "ab")
    assert watched.grows() == {"model.out"}
    watched.write("model.out", content, how)
    assert watched.grows(since=watched.now) == set()


def test_a_file_that_is_replaced_by_a_longer_one_is_no_log(watched: Watched) -> None:
    watched.write("model.out", b"1")
    watched.grows()
    watched.write("new.tmp", b"12")
    (watched.path / "new.tmp").rename(watched.path / "model.out")
    assert watched.grows() == set()


def test_a_file_that_is_rewritten_without_becoming_longer_is_no_log(watched: Watched) -> None:
    watched.write("table.jsonl", b"1" * 10)
    watched.grows()
    watched.write("table.jsonl", b"1", "ab")
    assert watched.grows() == {"table.jsonl"}
    watched.write("table.jsonl", b"2" * 11)
    assert watched.grows() == set()


def test_a_file_whose_header_changes_while_it_grows_is_no_log(watched: Watched) -> None:
    """As databases and archives are."""
    watched.write("table.jsonl", b"1" * 4 * SAMPLE)
    watched.grows()
    watched.write("table.jsonl", b"1", "ab")
    watched.grows()
    watched.write("table.jsonl", b"2" + b"1" * 4 * SAMPLE + b"11")
    assert watched.grows(since=watched.now - 1.0) == set()


def test_many_files_that_grow_are_a_checkpoint_that_is_written(watched: Watched) -> None:
    for round_ in range(3):
        for number in range(MOST + 1):
            watched.write(f"shard-{number}.log", b"x", "ab")
        assert watched.grows() == set(), round_


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        *(
            (name, True)
            for name in ("train.log", "METRICS.JSONL", "runs/events.out.tfevents.17.host.1.0", "run-1.wandb", "o.jsonl")
        ),
        *(
            (name, False)
            for name in (
                "model.pt",
                "full-12.ckpt",
                "weights",
                "history.npy",
                "log",
                "state.db",
                "log.pt",
                "model.txt",
                "results.csv",
            )
        ),
    ],
)
def test_only_what_has_the_name_of_a_log_is_taken_for_one(watched: Watched, name: str, counts: bool) -> None:
    """A save into its place grows as well, and half of one must be in no set."""
    (watched.path / "runs").mkdir()
    watched.write(name, b"1")
    watched.grows()
    watched.write(name, b"2", "ab")
    assert watched.grows() == ({name} if counts else set())


def test_a_log_that_went_away_is_forgotten(watched: Watched) -> None:
    watched.write("train.log", b"1")
    watched.grows()
    watched.write("train.log", b"2", "ab")
    assert watched.grows() == {"train.log"}
    (watched.path / "train.log").unlink()
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
        sent = folder.folder.send(lambda own: growth.mark(own, since=folder.clock.now)).files
        return folder.s3.objects["yard-bytes", sent[0].key][sent[0].offset :][: sent[0].size].decode()

    growth.observe(folder.folder.list_own())
    (folder.path / "train.log").write_text("1\n2\n")
    growth.observe(folder.folder.list_own())
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
        folder.folder.send(lambda own: [one._replace(grows=one.size > 1) for one in own])


def grow_while_sent(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each read of any file, whoever writes this one goes on."""
    real = sending.fill

    def go_on(*given: object) -> None:
        with file.open("a") as into:
            into.write("line\n")
        real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(sending, "fill", go_on)


def test_artifacts_are_committed_beside_a_log_that_never_rests(folder: Rank, monkeypatch: pytest.MonkeyPatch) -> None:
    made = artifacts(folder)
    there = folder.path.parent / "artifacts"
    (there / "model").write_text("model")
    (there / "train.log").write_text("line\n")
    grow_while_sent(there / "train.log", monkeypatch)
    commit = None
    while commit is None:
        folder.clock.now += 10.0
        with suppress(Changed):
            commit = made.commit()
    assert {file.path for file in commit.files} == {"model", "train.log"}


def test_a_save_of_an_artifact_into_its_place_is_not_committed_half(
    folder: Rank, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was whole in S3 under the same key stays."""
    made = artifacts(folder)
    model = folder.path.parent / "artifacts" / "model.pt"
    model.write_text("whole")
    assert kept(folder, made) == {"model.pt": "whole"}
    model.write_text("half\n")
    grow_while_sent(model, monkeypatch)
    with pytest.raises(Changed):
        made.commit()
    key = next(key for key in folder.s3.objects if key[1].endswith("model.pt"))
    assert folder.s3.objects[key] == b"whole"


def test_an_asynchronous_save_beside_named_checkpoints_is_in_no_set_half(tmp_path: Path, s3: FakeS3) -> None:
    """A small checkpoint is named every 20 s, while a full one takes 90 s to come into its place."""
    rank, step = Rank(tmp_path, s3), 0
    for second in range(1400):
        rank.clock.now += 1.0
        phase = (second + 50) % 100
        if phase < 90:
            with (rank.path / f"full-{second // 100}").open("a") as file:
                file.write("x" * 1000)
            rank._date(rank.path / f"full-{second // 100}")
        if second % 20 == 19:
            step += 20
            rank.save(step, model=f"of {step}")
        rank.checkpoints.tick()
        if len(closed(s3)) and phase == 30:
            break
    later = Rank(tmp_path, s3, attempt=2)
    later.restore()
    assert {len(text) for name, text in later.content.items() if name.startswith("full")} <= {90_000, 40_000}


def test_a_log_of_a_trainer_that_names_nothing_is_not_told_from_a_save(tmp_path: Path, s3: FakeS3) -> None:
    """A save into its place that takes longer than an interval grows like one."""
    rank = Rank(tmp_path, s3)
    rank.write("model-1.log", "whole")
    rank.clock.now += EVERY_S + 60.0
    rank.checkpoints.tick()
    assert len(closed(s3)) == 1
    for _ in range(1200):
        rank.clock.now += 1.0
        with (rank.path / "model-2.log").open("a") as file:
            file.write("half" * 100)
        rank._date(rank.path / "model-2.log")
        states = rank.checkpoints._recogniser.read().own
        assert not any(one.grows for one in states)


def test_a_log_that_has_long_grown_is_known_from_what_is_written_for_a_moment(watched: Watched) -> None:
    watched.write("a.log", b"1\n")
    watched.grows()
    watched.write("a.log", b"2\n", "ab")
    watched.grows()
    began = watched.now
    watched.write("genomes.jsonl", b"{}\n")
    watched.grows()
    watched.write("genomes.jsonl", b"{}\n", "ab")
    watched.grows()
    states = list_files(watched.path, print).values()
    assert [one.path for one in states if watched.growth.has_grown(one, began)] == ["a.log"]
