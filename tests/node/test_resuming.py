"""A job that begins from another job's checkpoint: it reads that job's, writes under its own name alone, and never begins from nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.failures import CannotStart
from contract.jobs import Selection
from contract.keys import BytesPrefix
from tests.node.fakes import FakeS3
from tests.node.folders import BUCKET, Rank, bytes_of, closed
from tests.node.sources import OWN, SOURCE, begins, begun_from, trained


def test_a_first_attempt_begins_with_the_checkpoint_of_the_other_job(tmp_path: Path, s3: FakeS3) -> None:
    trained(tmp_path, s3)
    rank = begins(tmp_path, s3)
    assert rank.restore() == 100
    assert rank.content == {"shard-0": "100 of 0"}


def test_what_it_began_with_is_committed_under_its_own_name(tmp_path: Path, s3: FakeS3) -> None:
    """The other job's objects may be deleted one day."""
    trained(tmp_path, s3)
    rank = begins(tmp_path, s3)
    rank.restore()
    commit = rank.commit(120, model="new")
    assert commit is not None
    assert {file.path for file in commit.files} == {"shard-0", "model"}
    assert all(file.key.startswith(BytesPrefix(OWN).root) for file in commit.files)
    assert bytes_of(s3, commit)["shard-0"] == "100 of 0"


def test_an_own_checkpoint_comes_before_that_of_the_other_job(tmp_path: Path, s3: FakeS3) -> None:
    trained(tmp_path, s3)
    first = begins(tmp_path, s3)
    first.restore()
    first.commit(120, **{"shard-0": "120 of 0"})
    first.checkpoints.finish()
    second = begins(tmp_path, s3, attempt=2)
    assert second.restore() == 120
    assert second.content == {"shard-0": "120 of 0"}


def test_an_attempt_after_one_without_a_checkpoint_begins_with_the_other_job_again(tmp_path: Path, s3: FakeS3) -> None:
    trained(tmp_path, s3)
    begins(tmp_path, s3).restore()
    assert begins(tmp_path, s3, attempt=2).restore() == 100


def test_nothing_of_the_other_job_is_written_or_deleted(tmp_path: Path, s3: FakeS3) -> None:
    trained(tmp_path, s3)
    before = dict(s3.objects)
    rank = begins(tmp_path, s3)
    rank.restore()
    for step in (110, 120, 130, 140, 150):
        rank.commit(step, **{"shard-0": f"{step}"})
    rank.checkpoints.finish()
    root = BytesPrefix(SOURCE).root
    assert {place: body for place, body in s3.objects.items() if place[1].startswith(root)} == before


def test_a_set_that_was_closed_after_admission_is_not_what_it_begins_with(tmp_path: Path, s3: FakeS3) -> None:
    """Nodes that begin a minute apart must begin with the same."""
    trained(tmp_path, s3, 1, 100, 200)
    numbers = sorted(int(key.split("/n")[1][:6]) for key in closed(s3))
    assert begins(tmp_path, s3, resume=begun_from(numbers[0])).restore() == 100
    assert begins(tmp_path / "again", s3, resume=begun_from(numbers[-1])).restore() == 200


def test_where_the_named_set_is_damaged_it_begins_with_the_one_before(tmp_path: Path, s3: FakeS3) -> None:
    trained(tmp_path, s3, 1, 100, 200)
    newest = max(closed(s3))
    s3.objects[BUCKET, newest] = b"torn"
    rank = begins(tmp_path, s3)
    assert rank.restore() == 200  # the same step is closed twice: once in its turn, once at the end
    s3.objects[BUCKET, sorted(closed(s3))[-2]] = b"torn"
    assert begins(tmp_path / "again", s3).restore() == 100
    assert any("cannot be used" in note for note in rank.notes)


@pytest.mark.parametrize("harm", ["gone", "torn", "no object", "wrong bytes"])
def test_without_a_usable_set_it_does_not_begin_from_nothing(tmp_path: Path, s3: FakeS3, harm: str) -> None:
    trained(tmp_path, s3)
    for place in [place for place in s3.objects if "/checkpoints/" in place[1]]:
        documents = "/commits/" in place[1]
        if harm == "gone" or (harm == "no object" and not documents):
            del s3.objects[place]
        elif harm == "torn" and documents:
            s3.objects[place] = b"{"
        elif harm == "wrong bytes" and not documents:
            s3.objects[place] = b"x" * len(s3.objects[place])
    with pytest.raises(CannotStart, match="no checkpoint of job job-1 can be used"):
        begins(tmp_path, s3).restore()


def test_more_nodes_get_every_file(tmp_path: Path, s3: FakeS3) -> None:
    trained(tmp_path, s3)
    for rank in range(2):
        one = Rank(tmp_path, s3, rank, nodes=2, resume=begun_from(), name=OWN)
        assert one.restore() == 100
        assert one.content == {"shard-0": "100 of 0"}


def test_fewer_nodes_get_every_file_and_rank_0_commits_those_of_ranks_that_are_no_more(
    tmp_path: Path, s3: FakeS3
) -> None:
    trained(tmp_path, s3, 3)
    rank = begins(tmp_path, s3)
    assert rank.restore() == 100
    commit = rank.commit(120, model="new")
    assert commit is not None
    assert {file.path for file in commit.files} == {"model", "shard-0", "shard-1", "shard-2"}


def test_a_rank_that_restores_its_own_files_gets_those_of_its_rank_in_the_other_job(tmp_path: Path, s3: FakeS3) -> None:
    trained(tmp_path, s3, 3)
    one = Rank(tmp_path, s3, 2, nodes=3, selection=Selection.OWN, resume=begun_from(), name=OWN)
    assert one.restore() == 100
    assert one.content == {"shard-0": "100 of 0", "shard-2": "100 of 2"}


def test_a_part_that_names_a_path_outside_the_folder_restores_nothing(tmp_path: Path, s3: FakeS3) -> None:
    """A node of the other job wrote it."""
    trained(tmp_path, s3)
    for part in [place for place in s3.objects if place[1].endswith("/r0000.json")]:
        forged = json.loads(s3.objects[part])
        forged["files"][0]["path"] = "../../escaped"
        s3.objects[part] = json.dumps(forged).encode()
    with pytest.raises(CannotStart):
        begins(tmp_path, s3).restore()
    assert not list(tmp_path.rglob("escaped"))
