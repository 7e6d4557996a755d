"""Trainers that write in place and name nothing: what may be half of the next checkpoint never takes the place of a whole one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.node.fakes import FakeS3
from tests.node.folders import EVERY_S, Rank, closed, pass_time, ranks
from tests.node.layout_worlds import as_torch, put, read_bytes

OLD, NEW = "old" * 1000, "new" * 1000


@pytest.fixture
def rank(tmp_path: Path, s3: FakeS3) -> Rank:
    """With one closed set."""
    found = Rank(tmp_path, s3)
    put(found, "model.ckpt", OLD)
    found.at(10)
    pass_time([found], EVERY_S + 120)
    assert len(closed(s3)) == 1
    return found


def restored(rank: Rank) -> dict[str, bytes]:
    again = Rank(rank.path.parents[2], rank.s3, attempt=2, clock=rank.clock)
    again.restore()
    return read_bytes(again)


def write_half(rank: Rank) -> None:
    put(rank, "model.ckpt", NEW[:1000])


def write_half_of_an_archive(rank: Rank) -> None:
    put(rank, "model.pt", as_torch(NEW)[:-30])


def write_one_of_two(rank: Rank) -> None:
    put(rank, "optimizer.ckpt", OLD)
    rank.clock.now += EVERY_S
    put(rank, "model.ckpt", OLD)
    put(rank, "optimizer.ckpt", OLD)
    pass_time([rank], EVERY_S + 120)
    put(rank, "model.ckpt", NEW)
    rank.clock.now += 2.0


@pytest.mark.parametrize("save", [write_half, write_half_of_an_archive, write_one_of_two])
def test_what_was_being_written_when_its_trainer_died_hides_no_set(rank: Rank, save: Callable[[Rank], None]) -> None:
    save(rank)
    before = len(closed(rank.s3))
    rank.checkpoints.finish()
    assert len(closed(rank.s3)) == before
    assert restored(rank)["model.ckpt"].decode() == OLD
    assert "its trainer ended" in rank.notes[-1]


def test_what_was_written_well_before_its_trainer_died_is_kept(rank: Rank) -> None:
    put(rank, "model.ckpt", NEW)
    rank.clock.now += 30.0
    rank.checkpoints.finish()
    assert restored(rank)["model.ckpt"].decode() == NEW


def test_an_archive_that_is_all_there_is_kept_although_its_trainer_died_at_once(rank: Rank) -> None:
    put(rank, "model.pt", as_torch(NEW))
    rank.checkpoints.finish()
    assert restored(rank)["model.pt"] == as_torch(NEW)


def test_a_file_that_came_to_its_place_by_renaming_is_kept_although_its_trainer_died_at_once(rank: Rank) -> None:
    rank.write("model.ckpt", NEW)
    rank.checkpoints.finish()
    assert restored(rank)["model.ckpt"].decode() == NEW


def test_the_time_of_death_counts_and_not_that_of_the_last_commit(rank: Rank) -> None:
    write_half(rank)
    died_at = rank.clock.now + 0.1
    rank.clock.now += 300.0
    rank.checkpoints.finish(ended_at=died_at)
    assert restored(rank)["model.ckpt"].decode() == OLD


def test_a_command_that_ended_well_was_writing_nothing(rank: Rank) -> None:
    write_half(rank)
    rank.checkpoints.finish(ended_well=True)
    assert restored(rank)["model.ckpt"].decode() == NEW[:1000]


def test_without_a_set_before_what_may_be_whole_is_better_than_nothing(tmp_path: Path, s3: FakeS3) -> None:
    first = Rank(tmp_path, s3)
    put(first, "model.ckpt", NEW)
    first.checkpoints.finish()
    assert restored(first)["model.ckpt"].decode() == NEW


def test_without_a_set_before_what_is_certainly_cut_off_is_no_set(tmp_path: Path, s3: FakeS3) -> None:
    first = Rank(tmp_path, s3)
    put(first, "model.pt", as_torch(NEW)[:-30])
    first.checkpoints.finish()
    assert closed(s3) == []


def test_the_checkpoint_that_an_attempt_began_with_is_a_set_before(rank: Rank) -> None:
    again = Rank(rank.path.parents[2], rank.s3, attempt=2, clock=rank.clock)
    again.restore()
    write_half(again)
    again.checkpoints.finish()
    third = Rank(rank.path.parents[2], rank.s3, attempt=3, clock=rank.clock)
    third.restore()
    assert read_bytes(third)["model.ckpt"].decode() == OLD


@pytest.mark.parametrize("pause_s", [3, 12, 45])
def test_a_save_that_pauses_is_in_no_set_until_it_is_over(rank: Rank, pause_s: int) -> None:
    rank.clock.now += EVERY_S
    for part in range(1, 6):
        put(rank, "model.ckpt", NEW[: 500 * part])
        pass_time([rank], pause_s)
    assert len(closed(rank.s3)) == 1
    put(rank, "model.ckpt", NEW)
    pass_time([rank], 120)
    assert len(closed(rank.s3)) == 2
    assert restored(rank)["model.ckpt"].decode() == NEW


def test_an_archive_that_is_cut_off_is_in_no_set_however_long_it_rests(rank: Rank) -> None:
    put(rank, "model.pt", as_torch(NEW)[:-30])
    pass_time([rank], 3 * EVERY_S)
    assert len(closed(rank.s3)) == 1
    assert "model.pt is cut off" in rank.checkpoints.state.describe(rank.clock.now)


def test_a_trainer_that_replaces_its_file_all_the_time_has_sets_although_it_never_rests(rank: Rank) -> None:
    for second in range(3 * int(EVERY_S)):
        rank.write("model.ckpt", f"of {second}")
        pass_time([rank], 1)
    assert len(closed(rank.s3)) >= 2


def test_a_hard_link_that_came_meanwhile_takes_no_set_away(rank: Rank) -> None:
    """It changes the file's inode, and none of its bytes."""
    os.link(rank.path / "model.ckpt", rank.path / "best.ckpt")
    rank._date(rank.path / "best.ckpt")
    rank.clock.now += 60.0
    rank.checkpoints.finish()
    assert set(restored(rank)) == {"model.ckpt", "best.ckpt"}


def test_a_folder_that_was_renamed_into_its_place_is_whole(rank: Rank) -> None:
    put(rank, "new.tmp/model.ckpt", NEW)
    rank.clock.now += 30.0
    (rank.path / "new.tmp").rename(rank.path / "new")
    pass_time([rank], 2 * EVERY_S)
    assert restored(rank)["new/model.ckpt"].decode() == NEW


def test_files_of_a_rank_other_than_0_rest_as_well(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    for second in range(int(1.5 * EVERY_S)):
        put(every[1], "model.ckpt", NEW[: second + 1])
        pass_time(every, 1)
    assert closed(s3) == []
    pass_time(every, EVERY_S)
    assert len(closed(s3)) == 1


@pytest.mark.parametrize("nodes", [pytest.param(1, marks=pytest.mark.at_length), 2])
def test_a_trainer_that_replaces_and_names_its_file_several_times_a_second_has_sets(
    tmp_path: Path, s3: FakeS3, nodes: int
) -> None:
    """Each look at S3 and at the folder takes it a step further."""
    every = ranks(tmp_path, s3, nodes)
    step = 0

    def go_on(*_: object) -> None:
        nonlocal step
        step += 1
        every[0].clock.now += 0.1
        every[0].save(step, model=f"of {step}")

    s3.fault = go_on
    for _ in range(3 * int(EVERY_S)):
        every[0].clock.now += 0.7
        go_on()
        for rank in every:
            rank.checkpoints.tick()
    s3.fault = lambda *_: None
    assert len(closed(s3)) >= 2
    again = Rank(tmp_path, s3, attempt=2, nodes=nodes)
    assert again.content == {} if (at := again.restore()) is None else again.content == {"model": f"of {at}"}
