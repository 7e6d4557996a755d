"""What changes while a commit is made is in no commit, or whole in one."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from agent import snapshot
from agent.checkpoints import Checkpoints
from agent.commits import Folder
from agent.engine import sending
from agent.engine.engine import Engine
from agent.position import Position
from agent.progress import ProgressFile
from agent.sets.resting import RESTS_S
from agent.snapshot import Changed
from agent.store import Store
from agent.symlinks import Links
from contract.keys import CommitKind
from tests.node.fakes import FakeS3
from tests.node.folders import BUCKET, EVERY_S, Rank, bytes_of, closed, job, pass_time, ranks
from tests.node.layout_worlds import as_torch, put, save

Fill = Callable[[int, memoryview, int], None]


def before_each_read(act: Callable[[], object], times: int) -> Fill:
    left, real = iter(range(times)), sending.fill

    def read(file: int, piece: memoryview, start: int) -> None:
        if next(left, None) is not None:
            act()
        real(file, piece, start)

    return read


def test_a_small_file_that_changes_before_it_is_read_is_committed_with_one_content(
    folder: Rank, s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trainer that writes in place: the open file shows the new bytes under what was seen of the old ones."""
    file = folder.write("a", "old")
    monkeypatch.setattr(sending, "fill", before_each_read(lambda: file.write_text("new"), 1))
    sent = folder.folder.send()
    assert bytes_of(s3, sent) == {"a": "new"}
    assert sent.files[0].sha256 == sha256(b"new").hexdigest()
    assert any("a changed" in note for note in folder.notes)


def test_a_small_file_that_never_rests_is_never_committed(folder: Rank, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder.write("a", "x")
    monkeypatch.setattr(sending, "fill", before_each_read(lambda: file.write_text(file.read_text() + "x"), 1000))
    with pytest.raises(Changed):
        folder.folder.send()


def test_a_look_that_meets_files_of_two_checkpoints_is_no_commit(
    folder: Rank, s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that changed is in S3 already as it was, so that nobody opens it again."""
    for name in ("a", "b"):
        folder.write(name, "of 50")
    folder.folder.send()
    real, looks = snapshot.observe, iter(range(10))

    def meet_both(root: Path, note: object, links: Links) -> snapshot.Observed:
        seen = real(root, note, links)  # type: ignore[arg-type]
        if next(looks) == 0:  # the look came to `b` once the trainer had replaced both
            for name in ("a", "b"):
                folder.write(name, "of 60 now")
            seen.files["b"] = real(root, note, links).files["b"]  # type: ignore[arg-type]
        return seen

    monkeypatch.setattr(snapshot, "observe", meet_both)
    assert bytes_of(s3, folder.folder.send()) == {"a": "of 60 now", "b": "of 60 now"}
    assert any("a changed during the commit" in note for note in folder.notes)


def act_before(look: int, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """The trainer does something before that look of the commit at the folder."""
    real, looks = snapshot.observe, iter(range(1000))

    def observe(root: Path, note: object, links: Links) -> snapshot.Observed:
        if next(looks) == look:
            act()
        return real(root, note, links)  # type: ignore[arg-type]

    monkeypatch.setattr(snapshot, "observe", observe)


def finish_another_before(
    look: int, folder: Rank, monkeypatch: pytest.MonkeyPatch, then: Callable[[], object] = lambda: None
) -> None:
    """Before that look of the commit the trainer replaces its file."""

    def finish() -> None:
        folder.clock.now += 1.0
        folder.write("a", "of 60")
        then()

    act_before(look, monkeypatch, finish)


@pytest.mark.parametrize("look", [3, 4], ids=["before the files are opened", "once they are open"])
def test_a_file_of_a_checkpoint_that_is_not_named_yet_is_in_no_commit_of_the_one_before(
    folder: Rank, s3: FakeS3, monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    folder.save(50, a="of 50")
    folder.clock.now += EVERY_S
    finish_another_before(look, folder, monkeypatch)
    folder.checkpoints.tick()
    assert closed(s3) == []
    assert s3.sent("/checkpoints/rank-") == []
    assert any(
        "a is newer than its checkpoint 50, as the commit of checkpoint 50 began" in note for note in folder.notes
    )


@pytest.mark.parametrize("look", [3, 4], ids=["before the files are opened", "once they are open"])
def test_a_checkpoint_that_is_finished_and_named_while_the_commit_of_the_one_before_begins_is_committed_in_its_place(
    folder: Rank, s3: FakeS3, monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    folder.save(50, a="of 50")
    folder.clock.now += EVERY_S
    finish_another_before(look, folder, monkeypatch, then=lambda: folder.at(60, checkpoint=60))
    folder.checkpoints.tick()
    assert folder.checkpoints.closed_step == 60
    later = Rank(folder.path.parents[2], s3, attempt=2)
    assert (later.restore(), later.content) == (60, {"a": "of 60"})


@pytest.mark.parametrize("look", [3, 4], ids=["before the files are opened", "once they are open"])
@pytest.mark.parametrize("gone", ["", "checkpoint-20", "checkpoint-20/optimizer.pt"])
def test_a_checkpoint_that_its_trainer_removes_while_its_commit_begins_is_in_no_set(
    folder: Rank, s3: FakeS3, monkeypatch: pytest.MonkeyPatch, look: int, gone: str
) -> None:
    """Also where nothing else lies there then, or the first files of the next one do."""
    save("transformers", [folder], 20)
    folder.clock.now += EVERY_S

    def remove() -> None:
        path = folder.path / (gone or "checkpoint-20")
        path.unlink() if path.is_file() else shutil.rmtree(path)
        if not gone:
            save("transformers", [folder], 40, upto=2)

    act_before(look, monkeypatch, remove)
    folder.checkpoints.tick()
    assert closed(s3) == []
    assert any("was removed while the commit of checkpoint 20 began" in note for note in folder.notes)


def test_a_rank_alone_commits_the_checkpoint_that_a_pointer_names_by_now(
    folder: Rank, monkeypatch: pytest.MonkeyPatch
) -> None:
    save("deepspeed", [folder], 20)
    folder.clock.now += EVERY_S
    act_before(3, monkeypatch, lambda: save("deepspeed", [folder], 40))
    folder.checkpoints.tick()
    assert folder.checkpoints.closed_step == 40


def test_files_that_are_all_removed_while_their_commit_begins_are_no_set(
    folder: Rank, s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder.write("model", "rests")
    folder.clock.now += EVERY_S
    act_before(3, monkeypatch, file.unlink)
    folder.checkpoints.tick()
    assert closed(s3) == []
    assert any("all files were removed while the commit" in note for note in folder.notes)


@pytest.mark.parametrize("look", [3, 4], ids=["before the files are opened", "once they are open"])
def test_a_file_that_only_rest_shows_to_be_whole_is_in_no_set_where_its_trainer_writes_it_as_its_commit_begins(
    folder: Rank, s3: FakeS3, monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    file = folder.write("model", "of 50")
    folder.clock.now += EVERY_S

    def begin_the_next() -> None:
        file.write_text("half of 6")
        os.utime(file, (folder.clock.now, folder.clock.now))

    act_before(look, monkeypatch, begin_the_next)
    folder.checkpoints.tick()
    assert closed(s3) == []
    pass_time([folder], 3 * RESTS_S)
    assert len(closed(s3)) == 1


STATES = "global_step20/zero_pp_rank_1_mp_rank_00_optim_states.pt"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda rank: (rank.path / STATES).unlink(), "was removed while"),
        (lambda rank: put(rank, STATES, as_torch("of the next save")[:-30]), ", as"),
    ],
    ids=["removed", "written again"],
)
def test_shards_that_change_while_their_commit_begins_are_in_no_set(
    tmp_path: Path, s3: FakeS3, monkeypatch: pytest.MonkeyPatch, change: Callable[[Rank], object], reason: str
) -> None:
    every = ranks(tmp_path, s3, 2)
    save("deepspeed", every, 20)
    every[0].clock.now += EVERY_S
    every[0].checkpoints.tick()
    act_before(2, monkeypatch, lambda: change(every[1]))
    every[1].checkpoints.tick()
    assert closed(s3) == []
    said = [*every[1].notes, every[1].checkpoints.state.why]
    assert any(f"{reason} the commit of checkpoint 20 began" in one for one in said)


def test_a_rank_that_goes_on_while_it_commits_what_another_opened_misses_the_set(
    tmp_path: Path, s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has is of another checkpoint now, and three sets of parts that do not fit would end the job."""
    every = ranks(tmp_path, s3, 2)
    for rank in every:
        rank.save(10, **{f"shard-{rank.rank}": "of 10"})
    every[0].clock.now += 2 * EVERY_S
    every[0].checkpoints.tick()
    act_before(2, monkeypatch, lambda: every[1].save(20, **{"shard-1": "of 20"}))
    every[1].checkpoints.tick()
    assert any(key.endswith("r0001.missed") for _, key in s3.objects)


class Trainer:
    """By the clocks of this machine and of its file system, which nobody can set: a trainer, and the agent of its rank."""

    def __init__(self, root: Path, s3: FakeS3) -> None:
        self.path, self.named = root / "checkpoints", root / "progress.json"
        self.path.mkdir()
        store, self.notes = Store(s3, BUCKET), list[str]()
        folder = Folder(
            Engine(store), self.path, kind=CommitKind.CHECKPOINTS, job="job-1", rank=0, note=self.notes.append
        )
        soon = replace(job(), admitted_at=time.time() - 1.0, checkpoint_minutes=0.5 / 60)
        self.checkpoints = Checkpoints(
            Position(soon, 1, 0), store, folder, ProgressFile(self.named), now=time.time, note=self.notes.append
        )
        time.sleep(0.5)

    def name(self, step: int) -> None:
        self.named.write_text(json.dumps({"step": step, "checkpoint": step}))
        time.sleep(0.05)  # longer than a tick of the file system's clock


def rename_a_file(trainer: Trainer) -> None:
    (trainer.path / "model.tmp").rename(trainer.path / "model")


def rename_a_folder(trainer: Trainer) -> None:
    (trainer.path / "20.tmp").rename(trainer.path / "20")


def link_a_file(trainer: Trainer) -> None:
    (trainer.path / "model").unlink()
    (trainer.path / "model").hardlink_to(trainer.path / "model.tmp")


def rename_a_folder_within_another(trainer: Trainer) -> None:
    rename_a_folder(trainer)
    (trainer.path / "20" / "inner").rename(trainer.path / "20" / "renamed")


@pytest.mark.parametrize("move", [rename_a_file, rename_a_folder, link_a_file, rename_a_folder_within_another])
def test_a_file_that_was_written_before_the_name_and_came_to_its_place_after_it_is_of_the_next_checkpoint(
    tmp_path: Path, s3: FakeS3, move: Callable[[Trainer], None]
) -> None:
    trainer = Trainer(tmp_path, s3)
    for path in ("model", "model.tmp", "20.tmp/inner/shard"):
        (trainer.path / path).parent.mkdir(parents=True, exist_ok=True)
        (trainer.path / path).write_text("of 10" if path == "model" else "of 20")
    time.sleep(0.05)
    trainer.name(10)
    move(trainer)
    assert trainer.checkpoints.tick() is False
    assert closed(s3) == []
    time.sleep(0.05)
    trainer.name(20)
    assert trainer.checkpoints.tick() is True
    assert len(closed(s3)) == 1


def test_unfinished_folders_are_left_out(tmp_path: Path, s3: FakeS3) -> None:
    trainer = Trainer(tmp_path, s3)
    (trainer.path / "20.tmp" / "inner").mkdir(parents=True)
    (trainer.path / "20.tmp" / "inner" / "shard").write_text("half")
    (trainer.path / "model").write_text("of 10")
    time.sleep(0.05)
    trainer.name(10)
    (trainer.path / "20.tmp" / "inner" / "other").write_text("half")
    assert trainer.checkpoints.tick() is True
    newest = trainer.checkpoints.newest
    assert newest is not None
    assert bytes_of(s3, newest) == {"model": "of 10"}


def test_files_of_the_next_checkpoint_that_are_written_beside_do_not_make_the_named_one_newer(
    tmp_path: Path, s3: FakeS3
) -> None:
    """They change the times of their folder, and of nothing that is committed."""
    trainer = Trainer(tmp_path, s3)
    (trainer.path / "layers").mkdir()
    (trainer.path / "layers" / "a").write_text("of 10")
    time.sleep(0.05)
    trainer.name(10)
    (trainer.path / "layers" / "a.tmp").write_text("of 20")
    assert trainer.checkpoints.tick() is True
    assert len(closed(s3)) == 1
