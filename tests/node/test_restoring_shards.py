"""A node that gets back its own shard: what it reads, and what happens where one rank cannot use the set that others can."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.failures import CannotStart
from contract.codec import decode
from contract.commits import CheckpointSet, Commit
from contract.jobs import Scope, Selection
from tests.node.fakes import FakeS3, refusal
from tests.node.folders import BUCKET, Rank, before_sets, closed, pass_time, ranks

NODES = 4


def trained(root: Path, s3: FakeS3, sets: int = 1, attempt: int = 1) -> list[int]:
    """An attempt that closed so many sets, whose steps it returns; rank 0 writes what is common besides."""
    every = ranks(root, s3, NODES, attempt, Scope.SHARDS, Selection.OWN)
    for step in range(10, 1000, 10):
        for rank in every:
            rank.write(f"shard-{rank.rank}", f"{rank.rank} of {step}")
        every[0].write("common", f"of {step}")
        for rank in every:
            rank.at(step, checkpoint=step)
        pass_time(every, 200)
        if len(closed(s3)) == sets:
            break
    return sorted(decode(CheckpointSet, s3.objects[BUCKET, key]).step for key in closed(s3))


def again(root: Path, s3: FakeS3, attempt: int = 2) -> list[Rank]:
    return ranks(root, s3, NODES, attempt, Scope.SHARDS, Selection.OWN)


def damage(s3: FakeS3, rank: int) -> None:
    """The objects of the rank's newest commit are gone."""
    newest = max(key for _, key in s3.objects if key.endswith(f"/r{rank:04d}.json"))
    for file in decode(Commit, s3.objects[BUCKET, newest]).files:
        s3.objects.pop((BUCKET, file.key), None)


def test_a_node_gets_its_own_files_and_those_of_rank_0(tmp_path: Path, s3: FakeS3) -> None:
    [step] = trained(tmp_path, s3)
    every = again(tmp_path, s3)
    assert [rank.restore() for rank in every] == [step] * NODES
    common = {"shard-0": f"0 of {step}", "common": f"of {step}"}
    assert every[0].content == common
    assert every[2].content == {**common, "shard-2": f"2 of {step}"}


def test_a_node_reads_no_document_and_no_object_of_other_ranks(tmp_path: Path, s3: FakeS3) -> None:
    trained(tmp_path, s3)
    s3.calls.clear()
    again(tmp_path, s3)[2].restore()
    read = [key for call, key in s3.calls if call in ("get", "read")]
    assert [key for key in read if "r0002" in key] != []
    assert [key for key in read if "r0001" in key or "r0003" in key or "rank-0001" in key or "rank-0003" in key] == []


def test_ranks_that_restored_their_own_files_commit_no_others(tmp_path: Path, s3: FakeS3) -> None:
    [step] = trained(tmp_path, s3)
    every = again(tmp_path, s3)
    for rank in every:
        rank.restore()
    assert [file.path for file in every[2].folder.list_own()] == ["shard-2"]
    every[0].clock.now += 1000.0
    for rank in every:
        rank.write(f"shard-{rank.rank}", f"{rank.rank} of 2000")
        rank.at(2000, checkpoint=2000)
        rank.checkpoints.finish()
    for rank in every:
        rank.checkpoints.finish()
    third = again(tmp_path, s3, 3)
    assert [rank.restore() for rank in third] == [2000] * NODES
    assert third[3].content == {"shard-0": "0 of 2000", "common": f"of {step}", "shard-3": "3 of 2000"}


def test_a_set_that_one_rank_cannot_use_is_restored_by_nobody_any_more(tmp_path: Path, s3: FakeS3) -> None:
    first, second = trained(tmp_path, s3, sets=2)
    damage(s3, 3)
    assert [rank.restore() for rank in again(tmp_path, s3)] == [second, second, second, first]  # the attendant sees it
    third = again(tmp_path, s3, 3)
    assert [rank.restore() for rank in third] == [first] * NODES
    assert third[1].content == {"shard-0": f"0 of {first}", "common": f"of {first}", "shard-1": f"1 of {first}"}


def test_a_set_stays_usable_although_the_bucket_could_not_be_read(tmp_path: Path, s3: FakeS3) -> None:
    [step] = trained(tmp_path, s3)
    s3.fault = lambda call, _key: refusal("AccessDenied") if call == "read" else None
    with pytest.raises(Exception, match="AccessDenied"):
        again(tmp_path, s3)[1].restore()
    s3.fault = lambda _call, _key: None
    assert [rank.restore() for rank in again(tmp_path, s3, 3)] == [step] * NODES


def test_nodes_that_get_everything_write_nothing_down(tmp_path: Path, s3: FakeS3) -> None:
    """They all see the same damage."""
    first, _ = trained(tmp_path, s3, sets=2)
    damage(s3, 3)
    before = set(s3.objects)
    assert [rank.restore() for rank in ranks(tmp_path, s3, NODES, 2, Scope.SHARDS)] == [first] * NODES
    assert set(s3.objects) == before


def test_where_no_set_can_be_used_no_rank_starts_from_the_beginning(tmp_path: Path, s3: FakeS3) -> None:
    trained(tmp_path, s3)
    damage(s3, 1)
    for attempt, rank in ((2, 1), (3, 0), (4, 3)):
        with pytest.raises(CannotStart, match="none of the 1 checkpoints"):
            again(tmp_path, s3, attempt)[rank].restore()


def test_a_set_from_before_sets_were_closed_is_restored_whole(tmp_path: Path, s3: FakeS3) -> None:
    for rank in range(2):
        before_sets(s3, 1, 5, rank, **{f"shard-{rank}": f"{rank}"})
    node = Rank(tmp_path, s3, 1, 2, nodes=2, selection=Selection.OWN)
    assert node.restore() == 5
    assert node.content == {"shard-0": "0", "shard-1": "1"}
