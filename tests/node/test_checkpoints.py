"""Commits and restores over a fake S3: readers see whole sets with the right bytes, or nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent import commits, snapshot
from agent.restore import Unusable, restore, union
from agent.snapshot import Changed
from agent.store import Store
from contract.codec import decode
from contract.commits import Commit, CommittedFile
from contract.keys import BytesPrefix, CommitKind
from tests.node.fakes import FakeS3, refusal
from tests.node.folders import BUCKET, Folder, bytes_of

# Commits


def test_an_empty_folder_makes_no_commit(folder: Folder, s3: FakeS3) -> None:
    assert folder.at(3).committer.commit() is None
    assert s3.objects == {}


def test_a_commit_lists_every_file_and_comes_last(folder: Folder, s3: FakeS3) -> None:
    commit = folder.commit(7, **{"a.pt": "A", "deep/er/b c+%ü.pt": "B"})
    assert commit is not None
    assert bytes_of(s3, commit) == {"a.pt": "A", "deep/er/b c+%ü.pt": "B"}
    assert s3.calls[-1] == ("put", BytesPrefix("job-1").commit(CommitKind.CHECKPOINTS, 1, 7, 0))


def test_nothing_new_is_no_commit_and_no_request(folder: Folder, s3: FakeS3) -> None:
    folder.commit(7, a="A")
    calls = list(s3.calls)
    assert folder.commit(8) is None
    assert s3.calls == calls


def test_only_what_changed_is_sent_again(folder: Folder, s3: FakeS3) -> None:
    folder.commit(1, a="A", b="B")
    s3.calls.clear()
    commit = folder.commit(2, b="C")
    assert commit is not None
    assert bytes_of(s3, commit) == {"a": "A", "b": "C"}
    assert len(s3.sent("/checkpoints/rank-")) == 1


def test_a_touched_file_with_the_same_bytes_is_not_sent_again(folder: Folder, s3: FakeS3) -> None:
    folder.commit(1, a="A")
    s3.calls.clear()
    assert folder.commit(2, a="A") is None
    assert s3.calls == []


def test_without_a_step_the_commit_says_so(folder: Folder) -> None:
    folder.write("a", "A")
    commit = folder.committer.commit()
    assert commit is not None
    assert commit.step == -1
    assert "/s000000000000/" in folder.committer.newest_key


def test_the_step_of_the_finished_checkpoint_wins(folder: Folder) -> None:
    folder.write("a", "A")
    commit = folder.at(55, checkpoint=50).committer.commit()
    assert commit is not None
    assert commit.step == 50


def test_unfinished_files_links_and_pipes_are_left_out(folder: Folder) -> None:
    folder.write("a", "A")
    (folder.path / "b.tmp").write_text("half")
    (folder.path / "link").symlink_to("/etc/passwd")
    (folder.path / "linked").symlink_to(folder.path.parent, target_is_directory=True)
    os.mkfifo(folder.path / "pipe")
    (folder.path / "x\udcff").write_text("no UTF-8")
    commit = folder.at(1).committer.commit()
    assert commit is not None
    assert [file.path for file in commit.files] == ["a"]
    assert len([note for note in folder.notes if "left out" in note]) == 4
    folder.commit(2, a="B")
    assert len([note for note in folder.notes if "left out" in note]) == 4


def test_a_commit_that_fails_leaves_the_one_before(folder: Folder, s3: FakeS3) -> None:
    folder.commit(1, a="A")
    newest = folder.committer.newest_key
    s3.fault = lambda call, _key: refusal("SlowDown") if call == "put" else None
    with pytest.raises(Exception, match="SlowDown"):
        folder.commit(2, a="B")
    assert folder.committer.newest_key == newest
    s3.fault = lambda _call, _key: None
    assert folder.commit(2) is not None


def on_upload(s3: FakeS3, act: Callable[[], object], times: int = 1) -> None:
    left = iter(range(times))

    def fault(call: str, key: str) -> None:
        if call in ("put", "upload") and "/rank-" in key and next(left, None) is not None:
            act()

    s3.fault = fault


def test_a_large_file_that_changes_under_its_upload_is_listed_by_no_commit(
    folder: Folder, s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "SMALL", 0)
    file = folder.write("a", "old bytes")
    on_upload(s3, lambda: file.write_text("new bytes"))
    commit = folder.commit(1)
    assert commit is not None
    assert bytes_of(s3, commit) == {"a": "new bytes"}
    assert commit.files[0].sha256 == commits.digest_of(file)
    assert any("a changed" in note for note in folder.notes)


def test_a_file_that_never_rests_is_never_committed(
    folder: Folder, s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "SMALL", 0)
    file = folder.write("a", "x")
    on_upload(s3, lambda: file.write_text(file.read_text() + "x"), times=1000)
    with pytest.raises(Changed):
        folder.commit(1)
    assert s3.sent("commits/") == []


def test_a_file_replaced_during_its_upload_is_committed_as_it_was(folder: Folder, s3: FakeS3) -> None:
    folder.write("a", "old")
    on_upload(s3, lambda: folder.write("a", "new"))
    commit = folder.commit(1)
    assert commit is not None
    assert bytes_of(s3, commit) == {"a": "old"}
    again = folder.commit(2)
    assert again is not None
    assert bytes_of(s3, again) == {"a": "new"}


def test_a_write_within_one_tick_of_the_clock_is_seen(folder: Folder, tmp_path: Path) -> None:
    file = folder.path / "a"
    file.write_text("old")
    facts = file.stat()

    def write_late(_seconds: float) -> None:
        file.write_text("new")
        os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))

    with pytest.raises(Changed), snapshot.staged(folder.path, tmp_path / "s", print, sleep=write_late):
        pytest.fail("a young file was trusted without a second look")


def test_staging_leaves_nothing_behind(folder: Folder) -> None:
    folder.commit(1, a="A")
    assert not folder.staging.exists()
    assert (folder.path / "a").stat().st_nlink == 1


def test_artifacts_keep_their_own_names_and_are_replaced(tmp_path: Path, s3: FakeS3) -> None:
    folder = Folder(tmp_path, s3, kind=CommitKind.ARTIFACTS)
    folder.commit(1, **{"out/model": "A"})
    folder.commit(2, **{"out/model": "B"})
    assert s3.objects[BUCKET, "jobs/job-1/artifacts/rank-0000/out/model"] == b"B"


# Thinning


def test_old_commits_and_their_files_go_and_every_kept_commit_is_whole(folder: Folder, s3: FakeS3) -> None:
    for step in range(1, 7):
        folder.commit(step, model=f"weights {step}", config="same")
        folder.committer.thin()
    store = Store(s3, BUCKET)
    left = [decode(Commit, store.get(key)) for key in store.keys(BytesPrefix("job-1").commits(CommitKind.CHECKPOINTS))]
    assert [commit.step for commit in left] == [4, 5, 6]
    for commit in left:
        assert bytes_of(s3, commit) == {"model": f"weights {commit.step}", "config": "same"}
    assert len(list(store.keys(BytesPrefix("job-1").checkpoints(0)))) == 4


def test_commits_go_before_their_files(folder: Folder, s3: FakeS3) -> None:
    for step in range(1, 5):
        folder.commit(step, model=f"weights {step}")
    folder.committer.thin()
    deleted = [key for call, key in s3.calls if call == "delete"]
    assert [("commits/" in key) for key in deleted] == [True, False]


def test_a_thinned_file_that_comes_back_is_sent_again(folder: Folder, s3: FakeS3) -> None:
    for step, text in enumerate(["A", "B", "C", "D"], 1):
        folder.commit(step, model=text)
    folder.committer.thin()
    commit = folder.commit(5, model="A")
    assert commit is not None
    assert bytes_of(s3, commit) == {"model": "A"}


# Restores


def test_nothing_committed_is_nothing_restored(tmp_path: Path, s3: FakeS3) -> None:
    assert Folder(tmp_path, s3, attempt=2).restore() is None


def test_every_node_restores_the_union(tmp_path: Path, s3: FakeS3) -> None:
    Folder(tmp_path, s3, rank=0).commit(5, **{"model.pt": "M", "deep/0.pt": "zero"})
    Folder(tmp_path, s3, rank=1).commit(5, **{"deep/1.pt": "one"})
    for rank in range(3):
        node = Folder(tmp_path, s3, rank=rank, attempt=2)
        assert node.restore() == 5
        assert node.content == {"model.pt": "M", "deep/0.pt": "zero", "deep/1.pt": "one"}


def test_an_incomplete_set_is_not_restored(tmp_path: Path, s3: FakeS3) -> None:
    first, second = Folder(tmp_path, s3, rank=0), Folder(tmp_path, s3, rank=1)
    first.commit(5, a="old 0")
    second.commit(5, b="old 1")
    first.commit(6, a="new 0")
    node = Folder(tmp_path, s3, attempt=2)
    assert node.restore() == 5
    assert node.content == {"a": "old 0", "b": "old 1"}


@pytest.mark.parametrize("damage", ["another digest", "cut short", "gone", "commit torn", "commit gone"])
def test_a_damaged_set_falls_back_to_the_one_before(tmp_path: Path, s3: FakeS3, damage: str) -> None:
    first = Folder(tmp_path, s3)
    first.commit(5, a="good", b="keeps")
    commit = first.commit(6, a="better")
    assert commit is not None
    file, key = (BUCKET, commit.files[0].key), (BUCKET, first.committer.newest_key)
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
    node = Folder(tmp_path, s3, attempt=2)
    assert node.restore() == 5
    assert node.content == {"a": "good", "b": "keeps"}
    assert any("cannot be used" in note for note in node.notes)


def test_a_bucket_that_cannot_be_read_is_no_fresh_start(tmp_path: Path, s3: FakeS3) -> None:
    Folder(tmp_path, s3).commit(5, a="A")
    s3.fault = lambda call, _key: refusal("AccessDenied") if call == "list" else None
    with pytest.raises(Exception, match="AccessDenied"):
        Folder(tmp_path, s3, attempt=2).restore()


@pytest.mark.parametrize("call", ["get", "download"])
def test_a_right_that_is_missing_is_no_reason_to_take_an_older_set_or_none(
    tmp_path: Path, s3: FakeS3, call: str
) -> None:
    """S3 says the same of an object that is not there, where the caller may not list the whole bucket."""
    Folder(tmp_path, s3).commit(5, a="A")
    s3.fault = lambda made, _key: refusal("AccessDenied") if made == call else None
    with pytest.raises(Exception, match="AccessDenied"):
        Folder(tmp_path, s3, attempt=2).restore()


def test_a_download_that_fails_is_no_reason_to_take_an_older_set(tmp_path: Path, s3: FakeS3) -> None:
    first = Folder(tmp_path, s3)
    first.commit(5, a="A")
    first.commit(6, a="B")
    s3.fault = lambda call, _key: refusal("SlowDown") if call == "download" else None
    node = Folder(tmp_path, s3, attempt=2)
    with pytest.raises(Exception, match="SlowDown"):
        node.restore()
    assert node.content == {}


def test_the_commits_of_ones_own_attempt_are_not_restored(tmp_path: Path, s3: FakeS3) -> None:
    Folder(tmp_path, s3, attempt=1).commit(5, a="first")
    Folder(tmp_path, s3, attempt=2, rank=1).commit(9, a="second")
    assert Folder(tmp_path, s3, attempt=2).restore() == 5


def test_after_a_restore_each_rank_answers_for_its_own_files(tmp_path: Path, s3: FakeS3) -> None:
    Folder(tmp_path, s3, rank=0).commit(5, r0="zero", config="c")
    Folder(tmp_path, s3, rank=1).commit(5, r1="one")
    first, second = Folder(tmp_path, s3, rank=0, attempt=2), Folder(tmp_path, s3, rank=1, attempt=2)
    s3.calls.clear()
    first.restore(), second.restore()
    assert s3.sent("/checkpoints/rank-") == []
    commit = first.commit(8, r0="zero again")
    assert commit is not None
    assert bytes_of(s3, commit) == {"r0": "zero again", "config": "c"}
    # Rank 1 was lost before it could commit: the set of step 8 would lack its file.
    third = Folder(tmp_path, s3, attempt=3)
    assert third.restore() == 5
    assert third.content == {"r0": "zero", "config": "c", "r1": "one"}


def test_a_rank_that_only_read_the_checkpoint_commits_nothing(tmp_path: Path, s3: FakeS3) -> None:
    Folder(tmp_path, s3, rank=0).commit(5, model="M")
    reader = Folder(tmp_path, s3, rank=1, attempt=2)
    reader.restore()
    assert reader.at(9).committer.commit() is None


def commit_of_rank(rank: int, *paths: str) -> Commit:
    files = tuple(CommittedFile(path=path, size=1, sha256=f"{rank}", key="k") for path in paths)
    return Commit(job="j", attempt=1, rank=rank, step=1, created_at=0.0, final=False, files=files)


def test_a_path_of_two_ranks_is_ones_own_or_the_lowest_ranks() -> None:
    both = [commit_of_rank(0, "rng", "model"), commit_of_rank(1, "rng")]
    assert {rank: [file.path for file in files] for rank, files in union(both, 1).items()} == {0: ["model"], 1: ["rng"]}
    assert {rank: [file.path for file in files] for rank, files in union(both, 2).items()} == {
        0: ["rng", "model"],
        1: [],
    }


@pytest.mark.parametrize("path", ["../evil", "/etc/evil", "a/../../evil", ""])
def test_a_commit_that_writes_elsewhere_is_unusable(path: str) -> None:
    with pytest.raises(Unusable):
        union([commit_of_rank(0, path)], 0)


def test_a_bucket_of_another_region_is_read_and_the_files_are_sent_here(tmp_path: Path, s3: FakeS3) -> None:
    Folder(tmp_path, s3).commit(5, a="A")
    s3.objects = {("elsewhere", key): value for (_, key), value in s3.objects.items()}
    node = Folder(tmp_path, s3, attempt=2)
    stores = [Store(s3, BUCKET), Store(s3, "elsewhere")]
    found = restore(stores, "job-1", 2, 0, node.path, node.staging, print)
    assert found is not None
    node.committer.adopt(found.files[0], rank=0, here=False)
    commit = node.committer.commit(step=found.step)
    assert commit is not None
    assert bytes_of(s3, commit) == {"a": "A"}
