"""What the engine fetches, and which commits it does not believe."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, HTTPClientError, IncompleteReadError

from agent.engine import moving
from agent.engine.places import PART
from agent.engine.wanted import GAP, SPAN, TOGETHER, Piece, Span, Unusable, plan_reads
from agent.failures import is_full
from agent.snapshot import PATH_BYTES, observe
from agent.symlinks import Links
from contract.codec import decode
from contract.commits import Commit, CommittedFile
from contract.keys import KEY_BYTES
from localaws.model import Refused
from localaws.sink.server import Cut, Fault, Flipped
from localaws.sink.wire import Request
from tests.node.engine_yard import MIB, Yard, content, yard

LARGE = content(3 * PART + 11, "large")
FILES = {
    **{f"layer-{number:03d}/w.bin": content(30_000 + number, number) for number in range(300)},
    "empty": b"",
    "medium": content(3 * MIB, "medium"),
    "large": LARGE,
}


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Yard]:
    with yard(tmp_path) as made:
        yield made


def listed(path: str, told: bytes, **more: Any) -> CommittedFile:
    file = CommittedFile(path=path, size=len(told), sha256=sha256(told).hexdigest(), key="k")
    return replace(file, **more)


def test_everything_comes_back_as_it_was_with_its_mode(it: Yard) -> None:
    it.write(FILES)
    (it.folder / "medium").chmod(0o640)
    (it.folder / "empty").chmod(0o600)
    (it.folder / "large").chmod(0o444)
    sent = it.send()
    it.sink.calls.clear()
    it.engine.fetch(list(sent.values()), it.staging)
    assert it.restored() == FILES
    assert [(it.staging / name).stat().st_mode & 0o777 for name in ("medium", "empty", "large")] == [
        0o640,
        0o600,
        0o444,
    ]
    assert it.sink.calls["GetObject"] <= 2 + 1 + 4 + 1


def test_files_of_a_commit_without_offsets_come_back(it: Yard) -> None:
    """As the version before wrote them: each file an object."""
    it.bucket.put("old", b"told")
    document = (
        b'{"job": "j", "attempt": 1, "rank": 0, "step": 1, "created_at": 1, "final": false, "files": [{"path": "a/b", '
        b'"size": 4, "sha256": "%s", "key": "old"}]}' % sha256(b"told").hexdigest().encode()
    )
    it.engine.fetch(decode(Commit, document).files, it.staging)
    assert it.restored() == {"a/b": b"told"}


@pytest.mark.parametrize(
    "path",
    [
        *("../x", "a/../../x", "/etc/x", "a/../b", "..", ".", "", "a//b", "./a", "a/", "a\0b", "/"),
        *("n" * 256, "\u00e4" * 128, "a/" * 500_000 + "b"),  # the folders of the last would take 250 GB
    ],
    ids=lambda path: repr(path[:20]),
)
def test_a_path_that_leaves_the_folder_or_is_none_is_refused_before_anything_is_fetched(it: Yard, path: str) -> None:
    it.bucket.put("k", b"told")
    with pytest.raises(Unusable, match="path"):
        it.engine.fetch([listed("fine", b"told"), listed(path, b"told")], it.staging)
    assert (it.sink.calls, it.restored()) == ({}, {})


def test_the_longest_path_that_is_committed_comes_back(it: Yard) -> None:
    path = "/".join(["n" * 255, "\u00e4" * 127, "n" * 255, "n" * 33])
    assert len(path.encode()) == KEY_BYTES
    it.write({path: b"told"})
    it.engine.fetch(list(it.send().values()), it.staging)
    assert it.restored() == {path: b"told"}


def test_a_checkpoint_with_a_path_longer_than_a_key_comes_back(it: Yard) -> None:
    path = "/".join([*["n" * 255] * 13, "\u00e4" * 127, "n" * 217])
    assert len(path.encode()) == PATH_BYTES
    it.write({path: b"told"})
    seen = observe(it.folder, print, Links(str(it.folder), {str(it.folder): str(it.folder)}, keeps=True))
    it.engine.fetch(list(it.send_only(list(seen.files.values())).values()), it.staging)
    assert it.restored() == {path: b"told"}


def test_a_path_longer_than_any_that_is_committed_is_refused(it: Yard) -> None:
    path = "/".join([*["n" * 255] * 13, "\u00e4" * 127, "n" * 218])
    with pytest.raises(Unusable, match="longer than any"):
        it.engine.fetch([listed(path, b"told")], it.staging)


@pytest.mark.parametrize(("first", "second"), [("a", "a"), ("a", "a/b"), ("a/b/c", "a/b")])
def test_paths_that_exclude_each_other_are_refused(it: Yard, first: str, second: str) -> None:
    with pytest.raises(Unusable, match="path"):
        it.engine.fetch([listed(first, b"told"), listed(second, b"told")], it.staging)
    assert it.sink.calls == {}


@pytest.mark.parametrize(
    "wrong",
    [{"size": -1}, {"offset": -1}, {"key": ""}, {"sha256": ""}, {"sha256": "g" * 64}, {"sha256": "A" * 64}],
)
def test_a_file_without_a_place_a_size_or_a_digest_is_refused(it: Yard, wrong: dict[str, Any]) -> None:
    with pytest.raises(Unusable, match="no place, no size or no digest"):
        it.engine.fetch([listed("a", b"told", **wrong)], it.staging)
    assert it.sink.calls == {}


@pytest.mark.parametrize("size", [4, SPAN + 1, 3 * PART + 2])
@pytest.mark.parametrize(
    "wrong",
    [{"offset": 1}, {"offset": 10**17}, {"size": 10**17}, {"size": 10**17, "offset": 10**17}, {"key": "other"}],
    ids=str,
)
def test_a_place_outside_of_its_object_is_refused(it: Yard, size: int, wrong: dict[str, Any]) -> None:
    told = content(size, 1)
    it.bucket.put("k", told)
    with pytest.raises(Unusable, match=r"ends before|missing"):
        it.engine.fetch([replace(listed("a", told), **wrong)], it.staging)


def test_an_offset_that_s3_would_not_read_as_a_number_is_refused(it: Yard) -> None:
    it.bucket.put("k", b"told")
    with pytest.raises(Unusable):
        it.engine.fetch([listed("a", b"told", offset=10**18)], it.staging)


@pytest.mark.parametrize("size", [0, 4, SPAN + 1, 2 * PART + 2])
def test_another_digest_is_refused(it: Yard, size: int) -> None:
    told = content(size, 1)
    it.bucket.put("k", told)
    with pytest.raises(Unusable, match="'a' differs from what was committed"):
        it.engine.fetch([listed("a", told, sha256="0" * 64)], it.staging)


@pytest.mark.parametrize("size", [4, SPAN + 1, 2 * PART + 2])
def test_a_bit_that_differs_is_refused(it: Yard, size: int) -> None:
    told = content(size, 1)
    it.bucket.put("k", told)
    it.sink.fault = lambda request: Flipped(2) if request.method == "GET" else None
    with pytest.raises(Unusable, match="differs from what was committed"):
        it.engine.fetch([listed("a", told)], it.staging)


@pytest.mark.parametrize("target", ["a", "sub"])
def test_nothing_is_written_through_a_link(it: Yard, tmp_path: Path, target: str) -> None:
    it.bucket.put("k", b"told")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_bytes(b"mine")
    it.staging.mkdir()
    (it.staging / target).symlink_to(outside / "a" if target == "a" else outside)
    with pytest.raises(OSError, match=r"exists|levels of symbolic links|Not a directory"):
        it.engine.fetch([listed("a" if target == "a" else "sub/a", b"told")], it.staging)
    assert (outside / "a").read_bytes() == b"mine"


@pytest.mark.parametrize("fault", [Cut(0), Cut(1000), Refused("InternalError", "again", 500)], ids=repr)
@pytest.mark.parametrize("size", [4000, 2 * PART + 2])
def test_an_answer_that_breaks_off_is_asked_for_again(it: Yard, fault: Fault, size: int) -> None:
    told = content(size, 1)
    it.bucket.put("k", told)
    turn, left = threading.Lock(), [fault]

    def once(request: Request) -> Fault | None:
        with turn:
            return left.pop() if left and request.method == "GET" else None

    it.sink.fault = once
    it.engine.fetch([listed("a", told)], it.staging)
    assert it.restored() == {"a": told}


def test_an_answer_that_always_breaks_off_is_given_up(it: Yard) -> None:
    it.bucket.put("k", content(4000, 1))
    it.sink.fault = lambda request: Cut(1000) if request.method == "GET" else None
    with pytest.raises((HTTPClientError, IncompleteReadError)):
        it.engine.fetch([listed("a", content(4000, 1))], it.staging)
    assert it.sink.calls["GetObject"] == moving.TRIES


def test_a_bucket_that_may_not_be_read_is_not_a_checkpoint_that_is_missing(it: Yard) -> None:
    it.bucket.put("k", b"told")
    it.sink.fault = lambda request: Refused("AccessDenied", "no", 403) if request.key else None
    with pytest.raises(ClientError, match="AccessDenied"):
        it.engine.fetch([listed("a", b"told")], it.staging)


def test_of_two_problems_the_one_that_is_not_the_checkpoints_is_told(it: Yard) -> None:
    """A training must not start from an older checkpoint because a bucket could not be read."""
    it.bucket.put("k", b"told")
    it.sink.fault = lambda request: Refused("AccessDenied", "no", 403) if request.key == "k" else None
    with pytest.raises(ClientError):
        it.engine.fetch([listed("a", b"told"), listed("b", b"told", key="missing")], it.staging)


@pytest.mark.parametrize("size", [4, 2 * PART])
def test_a_full_disk_is_told_as_such(it: Yard, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    told = content(size, 1)
    it.bucket.put("k", told)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space") as caught:
        it.engine.fetch([listed("a", told)], it.staging)
    assert is_full(caught.value)


def test_nothing_stays_open(it: Yard) -> None:
    it.write(FILES)
    sent = list(it.send().values())
    it.engine.fetch(sent, it.staging)
    with pytest.raises(FileExistsError):
        it.engine.fetch(sent, it.staging)
    numbers = [one for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
    assert [one for one in numbers if str(it.staging) in str(one.readlink())] == []


def test_neighbours_share_a_request_and_strangers_do_not() -> None:
    here = [listed(f"{at}", b"x" * 10, offset=at * 10) for at in range(5)]
    far = listed("far", b"x", offset=50 + GAP + 1)
    other = listed("other", b"x", key="l")
    assert [(one.key, one.start, one.end) for one in plan_reads([far, other, *here]) if isinstance(one, Span)] == [
        ("k", 0, 50),
        ("k", 51 + GAP, 52 + GAP),
        ("l", 0, 1),
    ]


def test_no_request_is_larger_than_its_bound() -> None:
    many = [listed(f"{at}", b"", size=MIB, offset=at * MIB) for at in range(40)]
    large = listed("large", b"", size=500 * PART + 1, key="l")
    spans, pieces = (
        [one.end - one.start for one in plan_reads([*many, large], 4) if isinstance(one, kind)]
        for kind in (Span, Piece)
    )
    assert max(spans) <= SPAN
    assert max(pieces) <= TOGETHER
    assert sum(pieces) == large.size
    assert pieces[-4:] == [PART, PART, PART, 1]  # no connection waits long for the last one
    assert max(one.end - one.start for one in plan_reads(many)) <= SPAN
    assert sum(one.end - one.start for one in plan_reads([large]) if isinstance(one, Piece)) == large.size


def test_a_file_of_an_agent_before_this_one_is_checked_by_its_sha256(it: Yard) -> None:
    it.bucket.put("k", LARGE)
    file = CommittedFile(path="large", size=len(LARGE), sha256=sha256(LARGE).hexdigest(), key="k")
    it.engine.fetch([file], it.staging)
    assert it.restored() == {"large": LARGE}
    with pytest.raises(Unusable, match="differs"):
        it.engine.fetch([replace(file, path="other", sha256="0" * 64)], it.staging)


@pytest.mark.parametrize(
    "wrong",
    [
        {"crc32": "0" * 64},
        {"crc32": f"{PART}-{'0' * 63}"},
        {"crc32": f"{PART - 1}-{'0' * 64}"},
        {"crc32": f"{6 * 1024**3}-{'0' * 64}"},
        {"crc32": f"{'9' * 30}-{'0' * 64}"},
        {"crc32": f"-{PART}-{'0' * 64}"},
        {"size": 10**17},
        {"size": PART},
        {"sha256": "0" * 64},
    ],
    ids=str,
)
def test_a_digest_of_parts_that_no_upload_has_is_refused_before_anything_is_fetched(
    it: Yard, wrong: dict[str, Any]
) -> None:
    it.bucket.put("k", LARGE)
    fine = CommittedFile(path="a", size=len(LARGE), crc32=f"{PART}-{'0' * 64}", key="k")
    with pytest.raises(Unusable, match="no digest"):
        it.engine.fetch([replace(fine, **wrong)], it.staging)
    assert it.sink.calls == {}


def test_another_digest_of_parts_is_refused(it: Yard) -> None:
    it.write({"large": LARGE})
    [sent] = it.send().values()
    assert (sent.sha256, sent.crc32.partition("-")[0]) == ("", str(PART))
    with pytest.raises(Unusable, match="differs"):
        it.engine.fetch([replace(sent, crc32=f"{PART}-{'0' * 64}")], it.staging)
