"""What changes while a commit is made is in no commit, or whole in one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent import snapshot
from agent.snapshot import Changed
from tests.node.fakes import FakeS3
from tests.node.folders import Folder, bytes_of


def test_a_small_file_that_changes_before_it_is_sent_is_committed_with_one_content(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trainer that writes in place: the staged link shows the new bytes under what was seen of the old ones."""
    file, times, real = folder.write("a", "old"), iter(range(1)), Path.read_bytes

    def write_first(path: Path) -> bytes:
        if path.name == "a" and next(times, None) is not None:
            file.write_text("new bytes")
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", write_first)
    commit = folder.commit(1)
    assert commit is not None
    assert bytes_of(folder.s3, commit) == {"a": "new bytes"}
    assert commit.files[0].size == len("new bytes")
    assert any("a changed" in note for note in folder.notes)


def test_a_small_file_that_never_rests_is_never_committed(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    file, real = folder.write("a", "x"), Path.read_bytes

    def write_first(path: Path) -> bytes:
        if path.name == "a":
            file.write_text(file.read_text() + "x")
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", write_first)
    with pytest.raises(Changed):
        folder.commit(1)
    assert folder.s3.sent("commits/") == []


def test_a_commit_across_a_finished_checkpoint_has_the_files_and_the_step_of_one(
    folder: Folder, s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trainer finishes checkpoint 60 after the agent has read that 50 is the newest one."""
    folder.write("a", "of 50")
    folder.at(55, checkpoint=50)
    real, times = snapshot.look, iter(range(1))

    def finish_another_first(root: Path, note: object) -> dict[str, snapshot.FileState]:
        if next(times, None) is not None:
            folder.write("a", "of 60")
            folder.progress.write_text(json.dumps({"step": 61, "checkpoint": 60}))
        return real(root, note)  # type: ignore[arg-type]

    monkeypatch.setattr(snapshot, "look", finish_another_first)
    commit = folder.committer.commit()
    assert commit is not None
    assert (commit.step, bytes_of(s3, commit)) == (60, {"a": "of 60"})
