"""The last set of an attempt, what the next attempt restores of it, and which sets stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.codec import decode
from contract.commits import CheckpointSet
from tests.node.fakes import FakeS3
from tests.node.folders import (
    BUCKET,
    EVERY_S,
    Rank,
    before_sets,
    closed,
    pass_time,
    ranks,
    restored,
    to_boundary,
)


def test_the_last_commits_are_a_set_where_all_ranks_end_with_the_same_checkpoint(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 3)
    for one in every[:2]:
        one.save(7, **{f"s{one.rank}": f"{one.rank} of 7"})
    for one in every:
        one.clock.now += 3.0
        one.checkpoints.finish()
    assert len(closed(s3)) == 1
    assert restored(tmp_path, s3, 3)[2].content == {"s0": "0 of 7", "s1": "1 of 7"}


@pytest.mark.parametrize("how", ["other", "mid-save", "lost"])
def test_last_commits_that_differ_leave_the_set_before(tmp_path: Path, s3: FakeS3, how: str) -> None:
    every = ranks(tmp_path, s3, 2)
    to_boundary(every)
    for one in every:
        one.save(10, **{f"s{one.rank}": f"{one.rank} of 10"})
    pass_time(every, 5)
    every[0].save(20, s0="0 of 20")
    if how == "other":
        every[1].save(30, s1="1 of 30")
    else:
        every[1].write("s1", "1 of 20")  # renamed, and not named
    every[0].checkpoints.finish()
    if how != "lost":
        every[1].checkpoints.finish()
    assert [decode(CheckpointSet, s3.objects[BUCKET, key]).step for key in closed(s3)] == [10]
    assert restored(tmp_path, s3, 2)[0].content == {"s0": "0 of 10", "s1": "1 of 10"}


def test_a_restored_checkpoint_is_not_committed_again_and_opens_no_round(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    to_boundary(every)
    for one in every:
        one.save(10, **{f"s{one.rank}": f"{one.rank} of 10"})
    pass_time(every, 5)
    again = restored(tmp_path, s3, 2)
    s3.calls.clear()
    pass_time(again, 3 * EVERY_S)
    assert {call for call, _ in s3.calls} <= {"list"}


def test_an_attempt_that_ended_before_its_first_save_leaves_the_checkpoint_that_it_restored_with_its_step(
    tmp_path: Path, s3: FakeS3
) -> None:
    Rank(tmp_path, s3).commit(120, model="M")
    second = Rank(tmp_path, s3, attempt=2)
    second.restore()
    second.checkpoints.finish()
    third = Rank(tmp_path, s3, attempt=3)
    assert (third.restore(), third.content) == (120, {"model": "M"})


def test_three_attempts_whose_last_died_in_its_first_set_go_on_from_the_set_before(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    to_boundary(every)
    for one in every:
        one.save(10, **{f"s{one.rank}": f"{one.rank} of 10"})
    pass_time(every, 5)
    second = restored(tmp_path, s3, 2)
    to_boundary(second)
    second[0].save(20, s0="0 of 20")
    second[0].checkpoints.tick()  # rank 1 is lost
    third = restored(tmp_path, s3, 2, attempt=3)
    assert [one.content for one in third] == [{"s0": "0 of 10", "s1": "1 of 10"}] * 2


def test_sets_from_before_there_were_closed_ones_are_restored(tmp_path: Path, s3: FakeS3) -> None:
    for step in (5, 6):
        before_sets(s3, 1, step, 0, s0=f"0 of {step}")
    before_sets(s3, 1, 5, 1, s1="1 of 5")
    assert [one.content for one in restored(tmp_path, s3, 2)] == [{"s0": "0 of 5", "s1": "1 of 5"}] * 2


def test_old_sets_go_and_three_sets_stay(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    for step in range(1, 9):
        to_boundary(every, [])
        for one in every:
            one.save(step, **{f"s{one.rank}": f"{one.rank} of {step}", "same": "x"})
        pass_time(every, 10)
    assert [decode(CheckpointSet, s3.objects[BUCKET, key]).step for key in closed(s3)][-3:] == [6, 7, 8]
    assert len(closed(s3)) <= 4
    kept = [key for _, key in s3.objects if "/checkpoints/rank-0000/" in key]
    assert len(kept) <= 5
    for one in restored(tmp_path, s3, 2):
        assert one.content == {"s0": "0 of 8", "s1": "1 of 8", "same": "x"}
