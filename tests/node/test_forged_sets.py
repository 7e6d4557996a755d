"""Documents that close sets, as code of the job may write them: they bring back a set of the job's ranks or none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent.failures import CannotStart
from contract.codec import decode, encode
from contract.commits import CheckpointSet, Commit
from tests.node.fakes import FakeS3
from tests.node.folders import BUCKET, Rank, closed, ranks


@pytest.fixture
def s3(tmp_path: Path) -> FakeS3:
    """With a closed set of two ranks."""
    made = FakeS3()
    every = ranks(tmp_path, made, 2)
    for rank in every:
        rank.save(100, **{f"shard-{rank.rank}": "100"})
    for rank in every:
        rank.checkpoints.finish()
    return made


def refused(tmp_path: Path, s3: FakeS3) -> Rank:
    """A rank of the next attempt, which finds nothing that it can restore."""
    rank = Rank(tmp_path, s3, attempt=2, nodes=2)
    with pytest.raises(CannotStart, match="none of the 1 checkpoints"):
        rank.restore()
    assert rank.content == {}
    return rank


def test_a_set_of_more_parts_than_the_job_has_ranks_is_not_read(tmp_path: Path, s3: FakeS3) -> None:
    (key,) = closed(s3)
    set_ = decode(CheckpointSet, s3.objects[BUCKET, key])
    s3.objects[BUCKET, key] = encode(replace(set_, parts=set_.parts * 1000))
    rank = refused(tmp_path, s3)
    assert any("2,000 parts; allowed: one of each rank, up to 2" in note for note in rank.notes)
    assert len([key for call, key in s3.calls if call == "get"]) < 5


def test_a_part_that_says_to_be_of_another_rank_hides_no_files(tmp_path: Path, s3: FakeS3) -> None:
    (key,) = [key for _, key in s3.objects if key.endswith("/r0001.json")]
    commit = decode(Commit, s3.objects[BUCKET, key])
    s3.objects[BUCKET, key] = encode(replace(commit, rank=0))
    assert any("parts are of other ranks than 0, 1" in note for note in refused(tmp_path, s3).notes)
