"""Commits and restores over a fake S3: readers see whole sets with the right bytes, or nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent import snapshot
from agent.commits import Folder
from agent.engine.engine import Engine
from agent.engine.places import PART
from agent.failures import CannotStart
from agent.restore import restore, union
from agent.store import MIB, Store
from agent.symlinks import Links
from contract.commits import Commit, CommittedFile
from contract.keys import BytesPrefix, CommitKind
from tests.node.fakes import FakeS3, refusal
from tests.node.folders import BUCKET, EVERY_S, Rank, bytes_of

# What is sent


def test_an_empty_folder_makes_no_commit_and_no_request(folder: Rank, s3: FakeS3) -> None:
    assert folder.commit(3) is None
    assert s3.calls == []


def test_a_commit_lists_every_file_and_comes_after_them(folder: Rank, s3: FakeS3) -> None:
    commit = folder.commit(7, **{"a.pt": "A", "deep/er/b c+%ü.pt": "B"})
    assert commit is not None
    assert bytes_of(s3, commit) == {"a.pt": "A", "deep/er/b c+%ü.pt": "B"}
    prefix = BytesPrefix("job-1")
    assert [key for call, key in s3.calls if call == "put"][-2:] == [prefix.part(1, 1, 0), prefix.closed(1, 1)]


def test_nothing_new_is_no_commit_and_no_request(folder: Rank, s3: FakeS3) -> None:
    folder.commit(7, a="A")
    calls = list(s3.calls)
    folder.clock.now += 10 * EVERY_S
    assert folder.checkpoints.tick() is False
    assert s3.calls == calls


def test_only_what_changed_is_sent_again(folder: Rank, s3: FakeS3) -> None:
    folder.commit(1, a="A", b="B")
    s3.calls.clear()
    commit = folder.commit(2, b="C")
    assert commit is not None
    assert bytes_of(s3, commit) == {"a": "A", "b": "C"}
    assert len(s3.sent("/checkpoints/rank-")) == 1


def test_a_touched_file_with_the_same_bytes_is_not_sent_again(folder: Rank, s3: FakeS3) -> None:
    folder.commit(1, a="A")
    s3.calls.clear()
    assert folder.commit(2, a="A") is not None
    assert s3.sent("/checkpoints/rank-") == []


def test_a_checkpoint_is_committed_once_however_often_it_is_named(folder: Rank, s3: FakeS3) -> None:
    folder.commit(1, a="A")
    s3.calls.clear()
    assert folder.commit(1) is None
    assert s3.calls == []


def test_what_a_trainer_named_is_never_overwritten(folder: Rank, s3: FakeS3) -> None:
    first, key = folder.commit(5, a="A"), folder.checkpoints.newest_key
    before = s3.objects[BUCKET, key]
    folder.commit(6, a="B")
    folder.commit(5, a="C")
    assert first is not None
    assert s3.objects[BUCKET, key] == before
    assert bytes_of(s3, first) == {"a": "A"}


def test_without_a_step_the_commit_says_so(folder: Rank) -> None:
    folder.write("a", "A")
    folder.clock.now += EVERY_S + 60
    folder.checkpoints.tick()
    assert folder.checkpoints.newest is not None
    assert (folder.checkpoints.newest.step, folder.checkpoints.newest.named) == (-1, False)


def test_the_step_of_the_finished_checkpoint_wins(folder: Rank) -> None:
    folder.clock.now += EVERY_S
    folder.write("a", "A")
    folder.at(55, checkpoint=50).checkpoints.tick()
    assert folder.checkpoints.newest is not None
    assert folder.checkpoints.newest.step == 50


def test_unfinished_files_links_and_pipes_are_left_out(folder: Rank) -> None:
    folder.write("a", "A")
    (folder.path / "b.tmp").write_text("half")
    (folder.path / "link").symlink_to("/etc/passwd")
    (folder.path / "linked").symlink_to(folder.path.parent, target_is_directory=True)
    os.mkfifo(folder.path / "pipe")
    (folder.path / "x\udcff").write_text("no UTF-8")
    for _ in range(2):
        assert [file.path for file in folder.folder.send().files] == ["a"]
    assert len([note for note in folder.notes if "left out" in note]) == 4


def test_a_commit_that_fails_leaves_the_one_before_and_is_tried_again(folder: Rank, s3: FakeS3) -> None:
    folder.commit(1, a="A")
    newest = folder.checkpoints.newest_key
    s3.fault = lambda call, key: refusal("SlowDown") if call == "put" and "/rank-" in key else None
    with pytest.raises(Exception, match="SlowDown"):
        folder.commit(2, a="B")
    assert folder.checkpoints.newest_key == newest
    s3.fault = lambda _call, _key: None
    assert folder.checkpoints.tick()
    assert folder.checkpoints.closed_step == 2


def test_a_save_in_progress_when_the_time_has_come_waits_for_its_name(folder: Rank, s3: FakeS3) -> None:
    """The file of the next checkpoint is there, and the trainer still names the one before."""
    folder.save(1, a="A")
    folder.clock.now += EVERY_S
    folder.write("a", "B")
    folder.checkpoints.tick()
    assert s3.calls == []
    folder.save(2, b="B")
    folder.checkpoints.tick()
    assert folder.checkpoints.newest is not None
    assert bytes_of(s3, folder.checkpoints.newest) == {"a": "B", "b": "B"}


def on_upload(s3: FakeS3, act: Callable[[], object], times: int = 1) -> None:
    left = iter(range(times))

    def fault(call: str, key: str) -> None:
        if call in ("put", "upload") and "/rank-" in key and next(left, None) is not None:
            act()

    s3.fault = fault


def test_a_file_that_is_written_to_under_its_upload_is_listed_by_no_commit(folder: Rank, s3: FakeS3) -> None:
    old, new = "o" * 4 * PART, "n" * 4 * PART
    file = folder.write("a", old)
    on_upload(s3, lambda: file.write_text(new))
    sent = folder.folder.send()
    assert bytes_of(s3, sent) == {"a": new}
    assert any("once more" in note for note in folder.notes)


def test_a_file_that_never_rests_is_never_committed(folder: Rank, s3: FakeS3) -> None:
    file = folder.write("a", "x" * 4 * PART)
    on_upload(s3, lambda: file.write_text(file.read_text() + "x"), times=1000)
    folder.clock.now += EVERY_S + 60
    assert folder.checkpoints.tick() is False
    assert s3.sent("commits/") == []


@pytest.mark.parametrize("size", [3, 2 * MIB, PART])
def test_a_file_replaced_during_its_upload_is_committed_as_it_was(folder: Rank, s3: FakeS3, size: int) -> None:
    old, new = "old" * size, "new" * size
    folder.write("a", old)
    on_upload(s3, lambda: folder.write("a", new))
    assert bytes_of(s3, folder.folder.send()) == {"a": old}
    assert bytes_of(s3, folder.folder.send()) == {"a": new}


def test_files_that_were_never_together_are_in_no_commit(
    folder: Rank, s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trainer replaces both between the look at the first file and the look at the second one."""
    folder.write("a", "old")
    folder.write("b", "old")
    real, looks = snapshot.observe, iter(range(2))

    def between(root: Path, note: Callable[[str], None], links: Links | None) -> snapshot.Observed:
        first = real(root, note, links)
        if next(looks, None) == 0:
            folder.write("b", "new")
            first.files["b"] = real(root, note, links).files["b"]
            folder.write("a", "new")
        return first

    monkeypatch.setattr(snapshot, "observe", between)
    assert bytes_of(s3, folder.folder.send()) == {"a": "new", "b": "new"}


def test_a_write_within_one_tick_of_the_clock_is_seen(folder: Rank, s3: FakeS3) -> None:
    file = folder.path / "a"
    file.write_text("old")
    folder.clock.now = file.stat().st_ctime
    slept = list[float]()

    def write_late(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 1:
            file.write_text("new")

    made = Folder(
        Engine(folder.store), folder.path, kind=CommitKind.CHECKPOINTS, job="job-1", rank=0, note=folder.notes.append,
        now=folder.clock, sleep=write_late,
    )  # fmt: skip
    assert bytes_of(s3, made.send()) == {"a": "new"}
    assert slept[0] == snapshot.RACY_S


def test_nothing_is_linked_or_left_behind(folder: Rank) -> None:
    file = folder.write("a", "A")
    before = file.stat()
    assert folder.commit(1) is not None
    assert (file.stat().st_nlink, file.stat().st_ctime_ns) == (1, before.st_ctime_ns)
    assert {each.name for each in folder.path.parent.iterdir()} == {folder.progress.name, folder.path.name}


# Restores


def test_nothing_committed_is_nothing_restored(tmp_path: Path, s3: FakeS3) -> None:
    assert Rank(tmp_path, s3, attempt=2).restore() is None


@pytest.mark.parametrize("damage", ["another digest", "cut short", "gone", "commit torn", "commit gone"])
def test_a_damaged_set_falls_back_to_the_one_before(tmp_path: Path, s3: FakeS3, damage: str) -> None:
    first = Rank(tmp_path, s3)
    first.commit(5, a="good", b="keeps")
    commit = first.commit(6, a="better")
    assert commit is not None
    file, key = (BUCKET, commit.files[0].key), (BUCKET, first.checkpoints.newest_key)
    if damage == "another digest":
        s3.objects[file] = b"bitten"
    elif damage == "cut short":
        s3.objects[file] = s3.objects[file][:-1]
    elif damage == "gone":
        del s3.objects[file]
    elif damage == "commit torn":
        s3.objects[key] = s3.objects[key][:-5]
    else:
        s3.fault = lambda call, asked: refusal("NoSuchKey") if call == "get" and asked == key[1] else None
    node = Rank(tmp_path, s3, attempt=2)
    assert node.restore() == 5
    assert node.content == {"a": "good", "b": "keeps"}
    assert any("cannot be used" in note for note in node.notes)


def test_a_bucket_that_cannot_be_read_is_no_fresh_start(tmp_path: Path, s3: FakeS3) -> None:
    Rank(tmp_path, s3).commit(5, a="A")
    s3.fault = lambda call, _key: refusal("AccessDenied") if call == "list" else None
    with pytest.raises(Exception, match="AccessDenied"):
        Rank(tmp_path, s3, attempt=2).restore()


@pytest.mark.parametrize("call", ["get", "read"])
def test_a_right_that_is_missing_is_no_reason_to_take_an_older_set_or_none(
    tmp_path: Path, s3: FakeS3, call: str
) -> None:
    """S3 says the same of an object that is not there, where the caller may not list the whole bucket."""
    Rank(tmp_path, s3).commit(5, a="A")
    s3.fault = lambda made, _key: refusal("AccessDenied") if made == call else None
    with pytest.raises(Exception, match="AccessDenied"):
        Rank(tmp_path, s3, attempt=2).restore()


def test_a_download_that_fails_is_no_reason_to_take_an_older_set(tmp_path: Path, s3: FakeS3) -> None:
    first = Rank(tmp_path, s3)
    first.commit(5, a="A")
    first.commit(6, a="B")
    s3.fault = lambda call, _key: refusal("SlowDown") if call == "read" else None
    node = Rank(tmp_path, s3, attempt=2)
    with pytest.raises(Exception, match="SlowDown"):
        node.restore()
    assert node.content == {}


def test_the_commits_of_ones_own_attempt_are_not_restored(tmp_path: Path, s3: FakeS3) -> None:
    Rank(tmp_path, s3, attempt=1).commit(5, a="first")
    Rank(tmp_path, s3, attempt=2, rank=1).commit(9, a="second")
    assert Rank(tmp_path, s3, attempt=2).restore() == 5


def test_a_rank_that_only_read_the_checkpoint_has_no_files_of_its_own(tmp_path: Path, s3: FakeS3) -> None:
    Rank(tmp_path, s3, rank=0).commit(5, model="M")
    reader = Rank(tmp_path, s3, rank=1, attempt=2)
    assert reader.restore() == 5
    assert (reader.folder.list_own(), reader.folder.is_saving) == ([], False)


def test_where_every_set_is_damaged_training_does_not_start_from_the_beginning(tmp_path: Path, s3: FakeS3) -> None:
    first = Rank(tmp_path, s3)
    first.commit(5, a="A")
    for at in [at for at in s3.objects if "/checkpoints/rank-" in at[1]]:
        del s3.objects[at]
    with pytest.raises(CannotStart, match="none of the 1 checkpoints"):
        Rank(tmp_path, s3, attempt=2).restore()


def test_parts_of_a_set_that_was_never_closed_are_told_and_not_restored(tmp_path: Path, s3: FakeS3) -> None:
    first = Rank(tmp_path, s3)
    first.commit(5, a="A")
    s3.objects = {at: body for at, body in s3.objects.items() if not at[1].endswith("closed.json")}
    again = Rank(tmp_path, s3, attempt=2)
    assert (again.restore(), again.content) == (None, {})
    assert any("were never whole on all ranks" in note for note in again.notes)


def commit_of_rank(rank: int, *paths: str) -> Commit:
    files = tuple(CommittedFile(path=path, size=1, sha256=f"{rank}", key="k") for path in paths)
    return Commit(job="j", attempt=1, rank=rank, step=1, created_at=0.0, final=False, files=files)


def test_a_path_of_two_ranks_is_ones_own_or_the_lowest_ranks() -> None:
    both = [commit_of_rank(0, "rng", "model"), commit_of_rank(1, "rng")]
    assert {rank: [file.path for file in own.files] for rank, own in union(both, 1).items()} == {
        0: ["model"],
        1: ["rng"],
    }
    assert {rank: [file.path for file in own.files] for rank, own in union(both, 2).items()} == {
        0: ["rng", "model"],
        1: [],
    }


def test_a_bucket_of_another_region_is_read_and_the_files_are_sent_here(tmp_path: Path, s3: FakeS3) -> None:
    Rank(tmp_path, s3).commit(5, a="A")
    s3.objects = {("elsewhere", key): value for (_, key), value in s3.objects.items()}
    node = Rank(tmp_path, s3, attempt=2)
    stores = [Store(s3, BUCKET), Store(s3, "elsewhere")]
    found = restore(stores, node.place, node.path, node.staging, print)
    assert found is not None
    node.folder.adopt(found.contents, here=False)
    assert bytes_of(s3, node.folder.send()) == {"a": "A"}
