"""A command that ended well has written what it wanted: all that is there is kept. One that ended otherwise may have been at a save."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from contract.commits import Part
from contract.jobs import Scope
from tests.node.fakes import FakeS3
from tests.node.folders import Rank, closed, ranks
from tests.node.world import Site


def named_and_gone_on(rank: Rank) -> None:
    """The trainer names its last checkpoint, and writes its results beside it."""
    rank.save(100, weights="of 100")
    rank.clock.now += 4.0
    rank.write("final.weights", "final")
    rank.write("results.json", "{}")


@pytest.mark.parametrize("again", [False, True], ids=["", "and names it again"])
def test_what_came_after_the_last_name_is_kept(tmp_path: Path, s3: FakeS3, again: bool) -> None:
    first = Rank(tmp_path, s3)
    named_and_gone_on(first)
    if again:
        first.at(100, checkpoint=100)
    first.checkpoints.finish(ended_well=True)
    later = Rank(tmp_path, s3, attempt=2)
    assert later.restore() == 100
    assert later.content == {"weights": "of 100", "final.weights": "final", "results.json": "{}"}


def test_a_set_that_was_closed_before_is_followed_by_the_last_one(tmp_path: Path, s3: FakeS3) -> None:
    first = Rank(tmp_path, s3)
    first.commit(100, weights="of 100")
    first.clock.now += 4.0
    first.write("weights", "averaged")
    first.checkpoints.finish(ended_well=True)
    later = Rank(tmp_path, s3, attempt=2)
    assert (later.restore(), later.content) == (100, {"weights": "averaged"})


def test_results_of_every_rank_are_kept(tmp_path: Path, s3: FakeS3) -> None:
    """Rank 0 names; rank 1 writes its own after that."""
    first = ranks(tmp_path, s3, 2)
    named_and_gone_on(first[0])
    first[1].clock.now += 9.0
    first[1].write("results-1.json", "{}")
    for rank in first:
        rank.checkpoints.finish(ended_well=True)
    later = Rank(tmp_path, s3, attempt=2, nodes=2)
    assert later.restore() == 100
    assert "results-1.json" in later.content


def test_a_command_that_did_not_end_well_may_have_been_at_a_save(tmp_path: Path, s3: FakeS3) -> None:
    first = Rank(tmp_path, s3)
    named_and_gone_on(first)
    first.checkpoints.finish()
    assert closed(s3) == []
    assert "its trainer ended while it saved" in first.notes[-1]


def test_one_rank_that_did_not_end_well_keeps_the_last_set_open(tmp_path: Path, s3: FakeS3) -> None:
    first = ranks(tmp_path, s3, 2)
    first[0].save(100, weights="of 100")
    first[1].clock.now += 9.0
    first[1].write("shard", "half of\x00its weights")
    first[0].checkpoints.finish(ended_well=True)
    first[1].checkpoints.finish()
    assert closed(s3) == []


def test_files_after_the_name_need_every_rank_to_have_ended_well(tmp_path: Path, s3: FakeS3) -> None:
    """Shards that were averaged at the end on one rank, and not on the other."""
    first = ranks(tmp_path, s3, 2, scope=Scope.SHARDS)
    for rank in first:
        rank.save(100, **{f"shard-{rank.rank}": "of 100"})
    first[0].clock.now += 5.0
    first[0].write("shard-0", "averaged")
    first[0].checkpoints.finish(ended_well=True)
    first[1].checkpoints.finish()
    assert closed(s3) == []


def test_a_rank_that_removed_its_restored_shard_at_the_end_keeps_no_set_open(tmp_path: Path, s3: FakeS3) -> None:
    first = ranks(tmp_path, s3, 2)
    for rank in first:
        rank.save(100, **{f"shard-{rank.rank}": "of 100"})
    for rank in first:
        rank.checkpoints.finish()
    second = ranks(tmp_path, s3, 2, attempt=2)
    for rank in second:
        rank.restore()
        for number in (0, 1):
            (rank.path / f"shard-{number}").unlink()
    second[0].clock.now += 5.0
    second[0].save(200, final="all of it")
    for rank in second:
        rank.checkpoints.finish(ended_well=True)
    later = Rank(tmp_path, s3, attempt=3, nodes=2)
    assert (later.restore(), later.content) == (200, {"final": "all of it"})


def test_ranks_that_ended_well_with_different_checkpoints_are_no_set(tmp_path: Path, s3: FakeS3) -> None:
    """One of them went on from what was restored, and never saved."""
    first = ranks(tmp_path, s3, 2, scope=Scope.SHARDS)
    for rank in first:
        rank.save(100, **{f"shard-{rank.rank}": "of 100"})
    first[0].save(120, **{"shard-0": "of 120"})
    for rank in first:
        rank.checkpoints.finish(ended_well=True)
    assert closed(s3) == []


def test_an_unfinished_file_is_left_out_however_the_command_ended(tmp_path: Path, s3: FakeS3) -> None:
    first = Rank(tmp_path, s3)
    first.save(100, weights="of 100")
    (first.path / "next.tmp").write_text("half")
    first.checkpoints.finish(ended_well=True)
    later = Rank(tmp_path, s3, attempt=2)
    later.restore()
    assert later.content == {"weights": "of 100"}


SCRIPT = """
import json, os, pathlib, signal, sys, time
out, progress = (pathlib.Path(os.environ[name]) for name in ("CHECKPOINT_DIR", "PROGRESS_FILE"))
(out / "weights").write_text("of 100")
progress.write_text(json.dumps({"step": 100, "checkpoint": 100}))
time.sleep(0.1)
(out / "results").write_text("late")
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize(("code", "kept"), [(0, True), (3, False)])
def test_the_agent_tells_a_command_that_ended_well_from_others(site: Site, code: int, kept: bool) -> None:
    site.offer(SCRIPT, command=("python", "train.py", str(code)))
    assert site.run().code == code
    parts = [
        key for _, key in site.aws.s3.objects if "/commits/checkpoints/" in key and f"r0000.{Part.FILES.value}" in key
    ]
    assert bool(parts) == kept, sys.exc_info()
