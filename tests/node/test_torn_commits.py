"""What changes while a commit is made is in no commit, or whole in one."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent import snapshot
from agent.snapshot import Changed
from tests.node.fakes import FakeS3
from tests.node.folders import BUCKET, EVERY_S, Rank, closed


def test_a_small_file_that_changes_before_it_is_sent_is_committed_with_one_content(
    folder: Rank, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trainer that writes in place: the staged link shows the new bytes under what was seen of the old ones."""
    file, times, real = folder.write("a", "old"), iter(range(1)), Path.read_bytes

    def write_first(path: Path) -> bytes:
        if path.name == "a" and next(times, None) is not None:
            file.write_text("new bytes")
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", write_first)
    (sent,) = folder.folder.send()
    assert folder.s3.objects[BUCKET, sent.key] == b"new bytes"
    assert sent.size == len("new bytes")
    assert any("a changed" in note for note in folder.notes)


def test_a_small_file_that_never_rests_is_never_committed(folder: Rank, monkeypatch: pytest.MonkeyPatch) -> None:
    file, real = folder.write("a", "x"), Path.read_bytes

    def write_first(path: Path) -> bytes:
        if path.name == "a":
            file.write_text(file.read_text() + "x")
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", write_first)
    with pytest.raises(Changed):
        folder.folder.send()


@pytest.mark.parametrize("names", [True, False], ids=["and names it", "and has not named it yet"])
def test_a_trainer_that_finishes_another_checkpoint_while_the_commit_begins_is_in_no_commit_of_the_first(
    folder: Rank, s3: FakeS3, monkeypatch: pytest.MonkeyPatch, names: bool
) -> None:
    folder.save(50, a="of 50")
    folder.clock.now += EVERY_S
    real, looks = snapshot.look, iter(range(10))

    def finish_another_first(root: Path, note: object) -> dict[str, snapshot.FileState]:
        if next(looks) == 2:  # the set is open, and the files are about to be linked
            folder.clock.now += 1.0
            folder.write("a", "of 60")
            if names:
                folder.at(60, checkpoint=60)
        return real(root, note)  # type: ignore[arg-type]

    monkeypatch.setattr(snapshot, "look", finish_another_first)
    folder.checkpoints.tick()
    assert closed(s3) == []
    assert s3.sent("/checkpoints/rank-") == []
    assert any("a changed while the commit of checkpoint 50 began" in note for note in folder.notes)
