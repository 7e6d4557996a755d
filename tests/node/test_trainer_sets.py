"""The agent commits what trainers save with the module that they may copy: each set has the files of one checkpoint."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from agent.sets.answering import newer_than
from contract.codec import decode
from contract.commits import CheckpointSet
from tests.node.fakes import FakeS3
from tests.node.folders import BUCKET, EVERY_S, Clock, Rank, bytes_of, closed, pass_time, ranks
from trainer.trainyard_trainer import Run


def runs_of(every: list[Rank], clock: Clock, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """The trainers of these ranks, on the clock of the test: as a file system's, it stands still while files are written."""
    monkeypatch.setattr(time, "time_ns", lambda: int(clock.now * 1e9))
    return [Run(rank.path, rank.progress) for rank in every]


def save(run: Run, step: int, text: str) -> None:
    with run.checkpoint(step) as folder:
        (folder / "model.pt").write_text(text)


def test_a_checkpoint_is_committed_at_the_first_look_after_its_name(
    tmp_path: Path, s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    rank = Rank(tmp_path, s3)
    (run,) = runs_of([rank], rank.clock, monkeypatch)
    for step in (10, 20, 30):
        rank.clock.now += EVERY_S
        save(run, step, f"state {step}")
        assert rank.checkpoints.tick()
        assert rank.checkpoints.closed_step == step
        commit = rank.checkpoints.newest
        assert commit is not None
        assert bytes_of(s3, commit) == {f"step-{step}/model.pt": f"state {step}"}
        assert commit.named


def test_what_is_still_being_written_is_in_no_set(tmp_path: Path, s3: FakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    rank = Rank(tmp_path, s3)
    (run,) = runs_of([rank], rank.clock, monkeypatch)
    rank.clock.now += EVERY_S
    save(run, 10, "state 10")
    with run.checkpoint(20) as folder:
        (folder / "model.pt").write_text("half")
        assert rank.checkpoints.tick()
        commit = rank.checkpoints.newest
        assert commit is not None
        assert bytes_of(s3, commit) == {"step-10/model.pt": "state 10"}


def test_a_checkpoint_that_is_in_its_place_and_not_named_yet_is_not_taken_for_the_one_before(
    tmp_path: Path, s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    rank = Rank(tmp_path, s3)
    (run,) = runs_of([rank], rank.clock, monkeypatch)
    save(run, 10, "state 10")
    named_at = rank.progress.stat().st_mtime

    def unnamed(*_: object) -> None:
        own = {one.path: one.mtime_ns / 1e9 for one in rank.folder.list_own()}
        assert newer_than(own, named_at) == "step-20/model.pt"

    monkeypatch.setattr(Run, "_tell", unnamed)
    save(run, 20, "state 20")


def test_of_several_ranks_each_set_has_one_checkpoint_and_it_is_restored_by_all(
    tmp_path: Path, s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = ranks(tmp_path, s3, 3)
    clock = every[0].clock
    runs = runs_of(every, clock, monkeypatch)
    for step in range(1, 40):
        for number, run in enumerate(runs):
            clock.now += 7.0  # they are never done at the same moment
            with run.checkpoint(step) as folder:
                (folder / f"shard-{number}.pt").write_text(f"{step}")
            pass_time(every, 3)
        pass_time(every, 60)
    made = [decode(CheckpointSet, s3.objects[BUCKET, key]) for key in closed(s3)]
    assert made
    again = [Rank(tmp_path, s3, number, attempt=2, nodes=3) for number in range(3)]
    step = made[-1].step
    assert [rank.restore() for rank in again] == [step] * 3
    for rank in again:
        found = Run(rank.path, rank.progress).newest()
        assert found is not None
        assert found.step == step
        assert {file.name: file.read_text() for file in found.folder.iterdir()} == {
            f"shard-{number}.pt": f"{step}" for number in range(3)
        }
