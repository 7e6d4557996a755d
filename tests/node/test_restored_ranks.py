"""What the first checkpoint after a restore is made of: files that lie there as they were restored are of an earlier one."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.jobs import Scope, Selection
from tests.node.fakes import FakeS3
from tests.node.folders import EVERY_S, Rank, closed, pass_time, ranks


@pytest.fixture
def s3() -> FakeS3:
    return FakeS3()


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
    assert "rank 1 has no newer files than were restored, rank 0 checkpoint 120" in every[1].notes[-1]


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


def test_a_file_that_never_changes_is_in_the_sets_of_a_trainer_that_names_several_checkpoints(
    tmp_path: Path, s3: FakeS3
) -> None:
    every = second_attempt(tmp_path, s3, Scope.AUTO)
    for step in (120, 140):
        save(every[0], step)
        pass_time(every, 1)
    for rank in every:
        rank.checkpoints.finish()
    assert restored(tmp_path, s3) == {"140", "100"}


def test_ranks_that_end_as_they_were_restored_end_with_that_checkpoint(tmp_path: Path, s3: FakeS3) -> None:
    every = second_attempt(tmp_path, s3, Scope.SHARDS)
    for rank in every:
        rank.checkpoints.finish()
    assert restored(tmp_path, s3) == {"100"}
