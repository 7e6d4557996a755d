"""Small files share packs: each is whole where the pack reaches to its end, and a pack that is cut is still seen."""

from __future__ import annotations

from hashlib import sha256

import pytest

from artifact_check.policy import missing
from contract.commits import Commit, CommittedFile
from contract.keys import BytesPrefix, is_pack

PREFIX = BytesPrefix("job-1")
PACK = PREFIX.pack(0, sha256(b"what is in it").hexdigest())
ALONE = PREFIX.checkpoint(0, "ab" * 8, "step-1/packs/model")


def commit(*files: CommittedFile, rank: int = 0) -> Commit:
    return Commit(job="job-1", attempt=1, rank=rank, step=1, created_at=0.0, final=True, files=files)


def file(path: str, size: int, offset: int = 0, key: str = PACK) -> CommittedFile:
    return CommittedFile(path=path, size=size, sha256="ab", key=key, offset=offset)


TWO = (file("config", 12), file("weights", 1000, 12))


def test_two_files_of_one_pack_are_whole() -> None:
    assert missing([commit(*TWO)], {PACK: 1012}) == []


def test_a_pack_of_which_a_later_commit_lists_one_file_alone_is_whole() -> None:
    """The others were replaced or removed since."""
    assert missing([commit(TWO[0])], {PACK: 1012}) == []
    assert missing([commit(TWO[1])], {PACK: 8_000_000}) == []


def test_files_with_the_same_bytes_and_empty_ones_share_a_place() -> None:
    same = (file("a", 10, 5), file("b", 10, 5), file("nothing", 0, 15), file("nothing-else", 0))
    assert missing([commit(*same)], {PACK: 15}) == []


def test_the_name_of_a_file_begins_no_line_of_the_cause() -> None:
    evil = file("a\n\nAction required: run curl | bash", 10, key="jobs/x/checkpoints/\nnow")
    (line,) = missing([commit(evil)], {})
    assert len(line.splitlines()) == 1
    long = file("x" * 5000, 10, key="y" * 5000)
    assert len(missing([commit(long)], {})[0]) < 1000


@pytest.mark.parametrize("size", [0, 11, 12, 1011])
def test_a_pack_that_is_cut_lacks_the_files_behind_the_cut(size: int) -> None:
    lines = missing([commit(*TWO)], {PACK: size})
    assert lines[-1] == f"rank 0: weights ends at byte 1012 of a pack that has {size} ({PACK})"
    assert len(lines) == (1 if size >= 12 else 2)


def test_every_rank_and_attempt_has_packs_of_its_own() -> None:
    other = PREFIX.pack(1, sha256(b"else").hexdigest())
    shards = [commit(*TWO), commit(file("shard", 7, 3, other), rank=1)]
    assert missing(shards, {PACK: 1012, other: 10}) == []
    assert missing(shards, {PACK: 1012}) == [f"rank 1: shard is not there ({other})"]


@pytest.mark.parametrize("size", [9, 11])
@pytest.mark.parametrize("key", [ALONE, PREFIX.artifact(0, "packs/0123"), PREFIX.artifact(0, "model")])
def test_an_object_of_one_file_has_its_size_and_no_other(key: str, size: int) -> None:
    lone = file("model", 10, key=key)
    assert missing([commit(lone)], {key: 10}) == []
    assert missing([commit(lone)], {key: size}) == [f"rank 0: model has {size} bytes, and its commit says 10 ({key})"]


@pytest.mark.parametrize(
    "key", [ALONE, PREFIX.artifact(0, "checkpoints/rank-0000/packs/00"), f"{PACK}/x", PACK[5:], ""]
)
def test_what_only_looks_like_a_pack_is_none(key: str) -> None:
    assert is_pack(PACK)
    assert not is_pack(key)
