"""Objects of old checkpoints that are deleted, or may be: nothing refers to them any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.store import NotDeleted
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
