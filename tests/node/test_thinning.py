"""Old sets go, with the objects that nothing lists any more; what is kept stays whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.engine.places import SMALL
from agent.retention import history
from agent.store import NotDeleted, Store
from contract.codec import decode
from contract.commits import Commit
from contract.keys import BytesPrefix, CommitKind
from tests.node.engine_yard import BUCKET, client, content, yard
from tests.node.fakes import FakeS3, refusal
from tests.node.folders import Rank, bytes_of


def test_old_commits_and_their_files_go_and_every_kept_commit_is_whole(folder: Rank, s3: FakeS3) -> None:
    for step in range(1, 7):
        folder.commit(step, model=f"weights {step}", config="same")
    known = history(folder.store.keys(BytesPrefix("job-1").commits(CommitKind.CHECKPOINTS)))
    left = [decode(Commit, folder.store.get(key)) for key in sorted(known.files_of(0))]
    assert [commit.step for commit in left] == [4, 5, 6]
    for commit in left:
        assert bytes_of(s3, commit) == {"model": f"weights {commit.step}", "config": "same"}
    assert len(list(folder.store.keys(BytesPrefix("job-1").checkpoints(0)))) == 4


def test_what_closes_a_set_goes_before_its_parts_and_these_before_their_files(folder: Rank, s3: FakeS3) -> None:
    for step in range(1, 5):
        folder.commit(step, model=f"weights {step}")
    deleted = [key.split("/")[-2:] for call, key in s3.calls if call == "delete"]
    assert [name for _, name in deleted[:2]] == ["closed.json", "r0000.json"]
    assert [folder for folder, _ in deleted[2:]] == ["packs"]


def test_a_thinned_file_that_comes_back_is_sent_again(folder: Rank, s3: FakeS3) -> None:
    for step, text in enumerate(["A", "B", "C", "D"], 1):
        folder.commit(step, model=text)
    commit = folder.commit(5, model="A")
    assert commit is not None
    assert bytes_of(s3, commit) == {"model": "A"}


def test_a_set_during_which_nothing_can_be_deleted_is_closed_all_the_same(folder: Rank, s3: FakeS3) -> None:
    s3.fault = lambda call, _key: refusal("SlowDown") if call == "delete" else None
    for step in range(1, 6):
        assert folder.commit(step, model=f"weights {step}") is not None
    assert folder.checkpoints.closed_step == 5
    assert any("stay for now" in note for note in folder.notes)


def test_a_checkpoint_of_many_small_files_costs_a_tenth_of_a_request_a_file(folder: Rank, s3: FakeS3) -> None:
    files = [f"layer-{number}/weights" for number in range(200)]
    for step in range(1, 4):
        s3.calls.clear()
        folder.commit(step, **{path: f"{path} of {step} " * 400 for path in files})
        requests = [call for call in s3.calls if call[0] != "list"]
        assert len(requests) <= len(files) / 10
        newest = folder.checkpoints.newest
        assert newest is not None
        assert bytes_of(s3, newest) == {path: f"{path} of {step} " * 400 for path in files}


def test_packs_in_which_little_is_alive_do_not_fill_the_bucket(folder: Rank, s3: FakeS3) -> None:
    """Of every checkpoint's files one never changes again."""
    size, files = 2_000, [f"file-{number}" for number in range(100)]
    now = {path: path.ljust(size, ".") for path in files}
    folder.commit(1, **now)
    for step in range(2, 42):
        now |= {path: f"{path} of {step}".ljust(size, ".") for path in files[step:]}
        commit = folder.commit(step, **now)
        assert commit is not None
        assert bytes_of(s3, commit) == now
    stored = sum(len(body) for (_, key), body in s3.objects.items() if "/packs/" in key)
    assert stored <= 4 * size * len(files)


def test_an_agent_that_still_runs_deletes_nothing_that_the_next_attempt_has_sent_and_not_listed_yet(
    tmp_path: Path, s3: FakeS3
) -> None:
    """EC2 says that the machine is terminated, and its agent works on for a while."""
    zombie = Rank(tmp_path, s3)
    for step in range(1, 4):
        zombie.commit(step, model=f"weights {step}")
    second = Rank(tmp_path, s3, attempt=2, clock=zombie.clock)
    assert second.restore() == 3
    second.write("model", "weights of the second attempt")
    before = set(s3.objects)
    second.folder.send()
    sent = set(s3.objects) - before
    assert sent
    for step in range(4, 9):
        zombie.commit(step, model=f"weights {step}")
        assert sent <= set(s3.objects)
    commit = second.commit(5)
    assert commit is not None
    assert bytes_of(s3, commit) == {"model": "weights of the second attempt"}


def test_a_file_that_the_next_attempt_has_sent_again_stays_although_an_old_document_listed_its_like(
    tmp_path: Path, s3: FakeS3
) -> None:
    """Keys come of content: what comes back has the key that it had."""
    zombie = Rank(tmp_path, s3)
    for step, text in enumerate(["A", "B", "C"], 1):
        zombie.commit(step, model=text)
    second = Rank(tmp_path, s3, attempt=2, clock=zombie.clock)
    assert second.restore() == 3
    second.write("model", "A")
    second.clock.now += 5.0
    second.folder.send()
    zombie.commit(4, model="D")
    commit = second.commit(5)
    assert commit is not None
    assert bytes_of(s3, commit) == {"model": "A"}


@pytest.mark.parametrize(("hours", "stays"), [(20, True), (30, False)])
def test_what_no_document_lists_goes_after_a_day(folder: Rank, s3: FakeS3, hours: float, stays: bool) -> None:
    key = BytesPrefix("job-1").pack(0, "sent by an agent that was killed")
    s3.put_object(folder.store.bucket, key, b"bytes")
    for step in range(1, 6):
        folder.commit(step, model=f"weights {step}")
    assert (folder.store.bucket, key) in s3.objects
    folder.clock.now += hours * 3600
    folder.commit(6, model="weights 6")
    assert ((folder.store.bucket, key) in s3.objects) is stays


def test_a_document_that_cannot_be_read_keeps_no_other_from_being_thinned(folder: Rank, s3: FakeS3) -> None:
    for step in range(1, 4):
        folder.commit(step, model=f"weights {step}")
    first = min(key for _, key in s3.objects if key.endswith("/r0000.json"))
    s3.objects[folder.store.bucket, first] = b"not JSON"
    folder.checkpoints._thinning._documents.clear()  # as in an agent of a later attempt
    for step in range(4, 8):
        folder.commit(step, model=f"weights {step}")
    assert (folder.store.bucket, first) not in s3.objects
    assert not [note for note in folder.notes if "stay for now" in note]


@pytest.mark.parametrize("trouble", [TimeoutError("no answer"), NotDeleted("others stay")])
def test_a_file_that_was_deleted_without_an_answer_is_sent_again(
    folder: Rank, s3: FakeS3, trouble: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = s3.delete_objects

    def deleted(Bucket: str, Delete: dict[str, Any]) -> dict[str, Any]:  # noqa: N803
        answer = delete(Bucket, Delete)
        if any("/packs/" in one["Key"] for one in Delete["Objects"]):
            raise trouble
        return answer

    monkeypatch.setattr(s3, "delete_objects", deleted)
    for step, text in enumerate(["A", "B", "C", "D"], 1):
        folder.commit(step, model=text)
    assert "old checkpoints stay for now" in folder.notes[-1]
    commit = folder.commit(5, model="A")
    assert commit is not None
    assert bytes_of(s3, commit) == {"model": "A"}


@pytest.mark.parametrize("name", ["a\x01b", "a\ufffeb", "a\nb", "a\rb", "a&<b", "a b+%2F", "\u00e4"])
def test_a_large_file_of_any_name_can_be_deleted(tmp_path: Path, name: str) -> None:
    prefix = BytesPrefix("job-1")
    with yard(tmp_path) as it:
        it.write({name: content(SMALL + 1, name)})
        sent = it.engine.send(
            it.folder, it.seen(), it.memory,
            pack_key=lambda digest: prefix.pack(0, digest), file_key=lambda unique, path: prefix.checkpoint(0, unique, path),
        )  # fmt: skip
        it.engine.fetch(list(sent.values()), it.staging)
        assert list(it.restored()) == [name]
        store = Store(client(it.sink, read_s=2, attempts=1), BUCKET)
        assert list(store.keys(prefix.root)) == [sent[name].key]
        store.delete([sent[name].key])
        assert not it.bucket.objects
