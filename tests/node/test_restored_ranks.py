"""What the first checkpoint after a restore is made of: files that lie there as they were restored are of an earlier one."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.jobs import Scope, Selection
from tests.node.fakes import FakeS3
from tests.node.folders import EVERY_S, Rank, closed, pass_time, ranks


def second_attempt(tmp_path: Path, s3: FakeS3, scope: Scope, selection: Selection = Selection.ALL) -> list[Rank]:
    """Two ranks that have restored checkpoint 100, in which each has a shard."""
    first = ranks(tmp_path, s3, 2, scope=scope)
    first[0].clock.now += EVERY_S
    for rank in first:
        save(rank, 100)
    for rank in first:
        rank.checkpoints.finish()
    second = ranks(tmp_path, s3, 2, attempt=2, scope=scope, selection=selection)
    assert [rank.restore() for rank in second] == [100, 100]
    return second


def save(rank: Rank, step: int) -> None:
    rank.save(step, **{f"shard-{rank.rank}": f"{step} of rank {rank.rank}"})


def restored(tmp_path: Path, s3: FakeS3) -> set[str]:
    """The checkpoints of which a third attempt gets shards."""
    third = ranks(tmp_path, s3, 2, attempt=3)
    for rank in third:
        rank.restore()
    return {text.split()[0] for rank in third for text in rank.content.values()}


@pytest.mark.parametrize("scope", [Scope.AUTO, Scope.SHARDS])
@pytest.mark.parametrize("selection", list(Selection))
def test_a_rank_whose_trainer_ended_in_its_first_save_does_not_end_with_the_checkpoint_of_the_others(
    tmp_path: Path, s3: FakeS3, scope: Scope, selection: Selection
) -> None:
    every = second_attempt(tmp_path, s3, scope, selection)
    save(every[0], 120)
    for rank in every:
        rank.checkpoints.finish()
    assert restored(tmp_path, s3) == {"100"}
    assert "the newest checkpoints differ: rank 0 120, rank 1 100" in every[1].notes[-1]


def test_a_trainer_that_ended_in_its_first_save_leaves_the_checkpoint_that_was_restored(
    tmp_path: Path, s3: FakeS3
) -> None:
    first = Rank(tmp_path, s3)
    first.save(100, a="100", b="100").checkpoints.finish()
    second = Rank(tmp_path, s3, attempt=2)
    assert second.restore() == 100
    second.clock.now += 1
    second.write("a", "110")
    second.checkpoints.finish()
    assert "its trainer ended while it saved" in second.notes[-1]
    third = Rank(tmp_path, s3, attempt=3)
    assert (third.restore(), third.content) == (100, {"a": "100", "b": "100"})


def test_a_rank_that_removed_what_was_restored_before_it_saved_is_not_taken_for_one_without_files(
    tmp_path: Path, s3: FakeS3
) -> None:
    every = second_attempt(tmp_path, s3, Scope.AUTO, Selection.OWN)
    save(every[0], 120)
    (every[1].path / "shard-1").unlink()
    for rank in every:
        rank.checkpoints.finish()
    assert restored(tmp_path, s3) == {"100"}


@pytest.mark.parametrize("scope", [Scope.AUTO, Scope.SHARDS])
def test_restored_shards_are_in_no_set_of_the_first_checkpoint_of_an_attempt(
    tmp_path: Path, s3: FakeS3, scope: Scope
) -> None:
    every = second_attempt(tmp_path, s3, scope)
    every[0].clock.now += EVERY_S
    save(every[0], 120)
    pass_time(every, 30)
    assert len(closed(s3)) == 1
    save(every[1], 120)
    pass_time(every, EVERY_S / 2)
    assert len(closed(s3)) == 2
    assert restored(tmp_path, s3) == {"120"}


def test_a_file_that_never_changes_of_a_rank_that_names_nothing_stays_in_the_sets(tmp_path: Path, s3: FakeS3) -> None:
    first = ranks(tmp_path, s3, 2)
    first[1].write("shard-1", "once")
    save(first[0], 100)
    second = ranks(tmp_path, s3, 2, attempt=2)
    for every in (first, second):
        for rank in every:
            rank.checkpoints.finish()
        if every is first:
            assert [rank.restore() for rank in second] == [100, 100]
            second[0].clock.now += 1
            save(second[0], 120)
    assert restored(tmp_path, s3) == {"120", "once"}


def test_ranks_that_end_as_they_were_restored_end_with_that_checkpoint(tmp_path: Path, s3: FakeS3) -> None:
    every = second_attempt(tmp_path, s3, Scope.SHARDS)
    for rank in every:
        rank.checkpoints.finish()
    assert restored(tmp_path, s3) == {"100"}
