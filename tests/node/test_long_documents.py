"""Documents in the bucket of any length, as code of a job may write them: none is read that is longer than a node writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent import code, restore
from agent.environments import Installed
from agent.failures import CannotStart
from agent.store import Store, TooLong
from contract.codec import decode, encode
from contract.commits import MOST_DOCUMENT, MOST_SET, CheckpointSet
from contract.keys import BytesPrefix
from tests.node.fakes import FakeS3
from tests.node.folders import BUCKET, Rank, closed, ranks
from tests.node.sources import OWN, begins, begun_from, trained


class Unread:
    """The body of an answer that must not be read."""

    def __init__(self) -> None:
        self.closed = False

    def read(self, *_: object) -> bytes:
        raise AssertionError("a body that is too long was read")

    def close(self) -> None:
        self.closed = True


class Long:
    """S3 with one object of so many bytes."""

    def __init__(self, size: int) -> None:
        self.size, self.body = size, Unread()

    def get_object(self, **_: object) -> dict[str, Any]:
        return {"Body": self.body, "ContentLength": self.size}


@pytest.mark.parametrize("size", [MOST_DOCUMENT + 1, 5 * 1024**4])
def test_a_document_that_is_too_long_is_not_read(size: int) -> None:
    s3 = Long(size)
    with pytest.raises(TooLong, match=f"s3://b/k has {size:,} bytes; allowed: up to {MOST_DOCUMENT:,}"):
        Store(s3, "b").get("k")
    assert s3.body.closed


def test_a_reader_names_a_bound_of_its_own() -> None:
    with pytest.raises(TooLong, match="has 11 bytes; allowed: up to 10"):
        Store(Long(11), "b").get("k", most=10)


def test_the_longest_document_is_read(s3: FakeS3) -> None:
    s3.objects[BUCKET, "k"] = bytes(MOST_DOCUMENT)
    assert len(Store(s3, BUCKET).get("k")) == MOST_DOCUMENT


def test_a_document_that_no_reader_takes_is_not_written(s3: FakeS3) -> None:
    store = Store(s3, BUCKET)
    for write in (store.put, store.create):
        with pytest.raises(TooLong, match=f"allowed: up to {MOST_DOCUMENT:,}"):
            write("k", bytes(MOST_DOCUMENT + 1))
    assert s3.calls == []


def lengthen(s3: FakeS3, part: str, size: int) -> None:
    """Appends space to the documents with this in their keys: they decode as before."""
    for (bucket, key), body in list(s3.objects.items()):
        if part in key:
            s3.objects[bucket, key] = body + b" " * (size - len(body))


@pytest.mark.parametrize(("part", "most"), [("/closed.json", MOST_SET), ("/r0001.json", MOST_DOCUMENT)])
def test_a_set_of_documents_that_are_too_long_is_not_restored(tmp_path: Path, s3: FakeS3, part: str, most: int) -> None:
    every = ranks(tmp_path, s3, 2)
    for rank in every:
        rank.save(100, **{f"shard-{rank.rank}": "100"})
    for rank in every:
        rank.checkpoints.finish()
    lengthen(s3, part, most + 1)
    late = Rank(tmp_path, s3, attempt=2, nodes=2)
    with pytest.raises(CannotStart, match="none of the 1 checkpoints"):
        late.restore()
    assert any(f"allowed: up to {most:,}" in note for note in late.notes)
    assert late.content == {}


def test_documents_that_are_too_long_together_are_not_restored(
    tmp_path: Path, s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(tmp_path, s3, 3)
    lengthen(s3, "/r000", 100_000)
    monkeypatch.setattr(restore, "MOST_TOGETHER", 250_000)
    rank = begins(tmp_path, s3)
    with pytest.raises(CannotStart):
        rank.restore()
    assert any("its documents have more than 250,000 bytes" in note for note in rank.notes)
    monkeypatch.setattr(restore, "MOST_TOGETHER", 300_000)
    assert begins(tmp_path / "again", s3).restore() == 100


def test_a_set_of_another_job_names_no_more_parts_than_a_job_has_nodes(tmp_path: Path, s3: FakeS3) -> None:
    trained(tmp_path, s3)
    keys = closed(s3)
    for key in keys:
        set_ = decode(CheckpointSet, s3.objects[BUCKET, key])
        s3.objects[BUCKET, key] = encode(replace(set_, parts=("", *set_.parts * restore.MOST_PARTS)))
    rank = Rank(tmp_path, s3, resume=begun_from(), name=OWN)
    before = len(s3.calls)
    with pytest.raises(CannotStart):
        rank.restore()
    assert any(
        f"it has {restore.MOST_PARTS + 1:,} parts; allowed: one of each rank, up to {restore.MOST_PARTS:,}" in note
        for note in rank.notes
    )
    assert len([call for call, _ in s3.calls[before:] if call == "get"]) == len(keys)


def test_an_environment_whose_document_is_too_long_is_installed_again(tmp_path: Path, s3: FakeS3) -> None:
    for name in ("env", code.FOLDER):
        (tmp_path / name).mkdir()
    s3.objects[BUCKET, BytesPrefix("job-1").environment("name")] = bytes(MOST_DOCUMENT + 1)
    notes = list[str]()
    kept = Installed(Store(s3, BUCKET), "job-1", "name", tmp_path / "env", note=notes.append)
    assert not kept.restore()
    assert "the environment of an earlier attempt is installed again" in notes[0]
