"""The first checkpoint of an attempt that ends while a rank still saves: the others do not close a set without it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.node.fakes import FakeS3
from tests.node.folders import EVERY_S, Rank, closed, pass_time, ranks


def within_the_folder(rank: Rank) -> None:
    (rank.path / "shard-1.tmp").write_text("half")


def in_a_folder_within(rank: Rank) -> None:
    (rank.path / "step-5.tmp").mkdir()
    (rank.path / "step-5.tmp" / "shard-1").write_text("half")


def beside_the_folder(rank: Rank) -> None:
    """As the module for trainers does."""
    beside = rank.path.with_name("checkpoints.tmp") / "step-5"
    beside.mkdir(parents=True)
    (beside / "shard-1").write_text("half")


@pytest.mark.parametrize("saves", [within_the_folder, in_a_folder_within, beside_the_folder])
def test_a_set_is_not_closed_without_a_rank_that_still_saved_its_first_checkpoint(
    tmp_path: Path, s3: FakeS3, saves: Callable[[Rank], None]
) -> None:
    every = ranks(tmp_path, s3, 2)
    every[0].save(5, **{"shard-0": "of 5"})
    saves(every[1])
    for rank in every:
        rank.checkpoints.finish()
    assert closed(s3) == []
    assert "its trainer ended while it saved its first checkpoint" in every[1].notes[0]


def test_a_rank_that_saves_nothing_keeps_no_set_open(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    every[0].save(5, model="of 5")
    (every[1].path / "notes.fifo").symlink_to("/dev/null")
    for rank in every:
        rank.checkpoints.finish()
    assert len(closed(s3)) == 1


def test_what_a_rank_leaves_unfinished_after_sets_were_closed_keeps_none_open(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    for step in (10, 20):
        every[0].save(step, model=f"of {step}")
        pass_time(every, EVERY_S + 60)
    before = len(closed(s3))
    assert before
    within_the_folder(every[1])
    every[0].save(30, model="of 30")
    for rank in every:
        rank.checkpoints.finish()
    assert len(closed(s3)) == before + 1
