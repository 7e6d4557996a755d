"""Artifacts keep their own names; what did not change is committed once."""

from __future__ import annotations

from agent.commits import Artifacts, Folder
from agent.engine.engine import Engine
from agent.progress import ProgressFile
from contract.keys import BytesPrefix, CommitKind
from tests.node.fakes import FakeS3
from tests.node.folders import BUCKET, Rank, bytes_of


def artifacts(folder: Rank) -> Artifacts:
    made = Folder(
        Engine(folder.store), folder.path, kind=CommitKind.ARTIFACTS, job="job-1", rank=0, note=folder.notes.append,
        sleep=folder.clock.sleep,
    )  # fmt: skip
    return Artifacts(
        folder.store, made, job="job-1", attempt=1, rank=0, progress=ProgressFile(folder.progress), now=folder.clock
    )


def test_artifacts_keep_their_own_names_and_are_replaced(folder: Rank, s3: FakeS3) -> None:
    made = artifacts(folder)
    for step, text in enumerate("AB", 1):
        folder.at(step).write("out/model", text)
        assert made.commit() is not None
    assert s3.objects[BUCKET, "jobs/job-1/artifacts/rank-0000/out/model"] == b"B"
    assert made.newest_key == BytesPrefix("job-1").commit(CommitKind.ARTIFACTS, 1, 2, 0)


def test_artifacts_that_did_not_change_are_committed_once_and_make_no_request(folder: Rank, s3: FakeS3) -> None:
    made = artifacts(folder)
    folder.write("model", "A")
    assert made.commit() is not None
    s3.calls.clear()
    folder.at(9)
    assert made.commit() is None
    assert s3.calls == []


def test_an_artifact_that_a_checkpoints_name_outlives_is_committed_with_one_content(folder: Rank, s3: FakeS3) -> None:
    made = artifacts(folder)
    folder.save(1, model="A")
    commit = made.commit(final=True)
    assert commit is not None
    assert (commit.step, commit.final, bytes_of(s3, commit)) == (1, True, {"model": "A"})
