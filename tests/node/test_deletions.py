"""Objects of old checkpoints that are deleted, or may be: nothing refers to them any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.engine.places import SMALL
from agent.store import NotDeleted, Store
from contract.keys import BytesPrefix
from tests.node.engine_yard import BUCKET, client, content, yard
from tests.node.fakes import FakeS3
from tests.node.folders import Rank, bytes_of


@pytest.mark.parametrize("trouble", [TimeoutError("no answer"), NotDeleted("others stay")])
def test_a_file_that_was_deleted_without_an_answer_is_sent_again(
    tmp_path: Path, trouble: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3 = FakeS3()
    folder, delete = Rank(tmp_path, s3), s3.delete_objects

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
