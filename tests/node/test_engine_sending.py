"""What the engine sends, and what it leaves out: packs, parts, files that change, and connections that do not hold."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from agent.engine import sending
from agent.engine.pace import Pace
from agent.engine.places import PACK, PART, Location
from agent.snapshot import Changed
from localaws.model import Refused
from localaws.sink.server import Cut, Flipped, Mute
from localaws.sink.wire import Request
from localaws.testing.waiting import until
from tests.node.engine_yard import MIB, Yard, content, yard

UNAVAILABLE = Refused("SlowDown", "Please reduce your request rate.", 503)
SMALL = {f"layer-{number:03d}/w.bin": content(40_000 + number, number) for number in range(300)}


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Yard]:
    with yard(tmp_path) as made:
        yield made


def stored(it: Yard, path: str) -> bytes:
    """What the bucket has at the place of a file, whoever reads it."""
    file = it.send()[path]
    return b"".join(it.bucket.objects[file.key].range(file.offset, file.offset + file.size))


def test_small_files_share_objects_and_lie_where_the_commit_says(it: Yard) -> None:
    it.write(SMALL)
    sent = it.send()
    assert it.sink.calls == {"PutObject": 2}
    for path, told in SMALL.items():
        file = sent[path]
        assert b"".join(it.bucket.objects[file.key].range(file.offset, file.offset + file.size)) == told
    assert all(one.size <= PACK for one in it.bucket.objects.values())


def test_what_did_not_change_is_neither_read_nor_sent(it: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    it.write({**SMALL, "large": content(PART + 5, "large"), "medium": content(2 * MIB, "medium")})
    first = it.send()
    it.sink.calls.clear()
    monkeypatch.setattr(sending, "fill", None)
    assert it.send() == first
    assert it.sink.calls == {}


def test_only_a_file_that_changed_is_sent_in_a_pack_of_its_own(it: Yard) -> None:
    it.write(SMALL)
    first = it.send()
    it.write({"layer-007/w.bin": b"new"})
    second = it.send()
    assert {path for path in SMALL if first[path].key != second[path].key} == {"layer-007/w.bin"}
    assert it.bucket.objects[second["layer-007/w.bin"].key].size == 3


def test_a_copy_of_a_small_file_takes_no_place(it: Yard) -> None:
    it.write({"step-1.bin": b"the same", "latest.bin": b"the same"})
    sent = it.send()
    assert (sent["step-1.bin"].key, sent["step-1.bin"].offset) == (sent["latest.bin"].key, sent["latest.bin"].offset)
    assert sum(one.size for one in it.bucket.objects.values()) == 8


def test_a_large_file_that_was_written_again_with_the_same_bytes_is_not_sent_again(it: Yard) -> None:
    it.write({"frozen.bin": content(3 * PART, 1)})
    first = it.send()
    it.sink.calls.clear()
    it.write({"new.tmp": content(3 * PART, 1)})
    (it.folder / "new.tmp").replace(it.folder / "frozen.bin")
    assert it.send()["frozen.bin"].key == first["frozen.bin"].key
    assert it.sink.calls == {}


def test_a_large_file_that_begins_like_one_that_was_sent_is_sent(it: Yard) -> None:
    it.write({"model.bin": content(2 * PART, 1)})
    first = it.send()["model.bin"]
    it.write({"model.bin": content(2 * PART, 1) + b"more"})
    second = it.send()["model.bin"]
    assert second.key != first.key
    assert stored(it, "model.bin") == content(2 * PART, 1) + b"more"


def test_a_large_file_whose_object_was_deleted_is_sent_again(it: Yard) -> None:
    it.write({"model.bin": content(2 * PART, 1)})
    first = it.send()["model.bin"]
    it.memory.forget({first.key})
    it.write({"model.bin": content(2 * PART, 1)})
    assert it.send()["model.bin"].key != first.key


def test_a_large_file_that_is_there_under_another_name_leaves_no_parts(it: Yard) -> None:
    it.write({"step-1.bin": content(PART + 1, 1)})
    first = it.send()
    it.write({"latest.bin": content(PART + 1, 1)})
    assert it.send()["latest.bin"].key == first["step-1.bin"].key
    assert (len(it.bucket.objects), it.bucket.uploads) == (1, {})


@pytest.mark.parametrize("size", [0, 1, MIB, MIB + 1, PART, PART + 1, 2 * PART, 2 * PART + 7])
def test_a_file_of_any_size_arrives_as_it_is(it: Yard, size: int) -> None:
    it.write({"a/file": content(size, size)})
    assert stored(it, "a/file") == content(size, size)
    assert it.bucket.uploads == {}


def test_artifacts_have_objects_of_their_own_and_a_newer_one_takes_the_place(it: Yard) -> None:
    for told in (b"one", b"two", b"one"):
        it.write({"a.txt": told, "copy.txt": told})
        it.send(packed=False)
        assert {key: bytes(one.range(0, 9)[0]) for key, one in it.bucket.objects.items()} == {
            "own/a.txt": told,
            "own/copy.txt": told,
        }


def test_every_body_comes_with_a_checksum_that_s3_compares(it: Yard) -> None:
    it.sink.keep = True
    it.write({"s": b"small", "m": content(2 * MIB, 1), "l": content(PART + 1, 2)})
    it.send()
    bodies = [one for one in it.sink.seen if one.method == "PUT"]
    assert len(bodies) == 4
    assert all("x-amz-checksum-crc32" in one.headers for one in bodies)
    assert {one.headers["x-amz-content-sha256"] for one in bodies} == {"UNSIGNED-PAYLOAD"}  # TLS and the checksum do


@pytest.mark.parametrize("size", [5, 2 * MIB, PART + 1])
def test_bytes_that_do_not_arrive_as_they_were_sent_are_refused_and_not_listed(it: Yard, size: int) -> None:
    it.write({"file": content(size, 1)})
    it.sink.fault = lambda request: Flipped(3) if request.method == "PUT" else None
    with pytest.raises(ClientError, match="BadDigest"):
        it.send()
    assert it.bucket.objects == {}
    assert (it.memory.places, it.memory.objects) == ({}, {})


def first_only(fault: object, method: str = "PUT") -> object:
    """The fault, for the first request of this method."""
    left, turn = [fault], threading.Lock()

    def of(request: Request) -> object:
        with turn:
            return left.pop() if left and request.method == method else None

    return of


@pytest.mark.parametrize("fault", [Cut(0), Cut(100_000), UNAVAILABLE, Mute(0.1)], ids=repr)
@pytest.mark.parametrize("size", [MIB, PART + 1])
def test_a_request_that_fails_once_is_repeated(it: Yard, fault: object, size: int) -> None:
    it.write({"file": content(size, 1)})
    it.sink.fault = first_only(fault)  # type: ignore[assignment]
    assert stored(it, "file") == content(size, 1)


def test_a_server_that_never_answers_is_given_up_in_bounded_time(tmp_path: Path) -> None:
    with yard(tmp_path, attempts=2, read_s=0.3) as it:
        it.write({"file": b"x"})
        it.sink.fault = lambda _: Mute(5)
        with pytest.raises(BotoCoreError, match="timeout"):
            it.send()
        until(lambda: it.sink.calls["PutObject"] >= 2)  # the server reads a request late whose client has given up
        assert it.sink.calls["PutObject"] == 2


def test_a_server_that_nobody_vouches_for_gets_no_bytes(tmp_path: Path) -> None:
    with yard(tmp_path, trusted=True, attempts=1) as it:
        it.write({"file": b"x"})
        with pytest.raises(BotoCoreError, match="SSL"):
            it.send()
        assert it.sink.calls == {}


def test_keys_that_expired_are_said_to_be_expired(it: Yard) -> None:
    it.write({"file": b"x"})
    it.sink.expired = "AKIAFIRST"
    with pytest.raises(ClientError, match="ExpiredToken"):
        it.send()


def test_an_upload_that_is_cut_half_way_goes_on_where_it_was(it: Yard) -> None:
    told = content(5 * PART + 3, 1)
    it.write({"large": told, "small": b"s"})
    it.sink.fault = lambda request: UNAVAILABLE if request.query.get("partNumber") == "4" else None
    with pytest.raises(ClientError, match="SlowDown"):
        it.send()
    [upload] = it.bucket.uploads.values()
    arrived = set(upload.parts)
    assert arrived >= {1, 2}
    it.sink.calls.clear()
    it.sink.fault = lambda _: None
    assert stored(it, "large") == told
    assert it.sink.calls == {"UploadPart": 6 - len(arrived), "CompleteMultipartUpload": 1}
    assert (it.bucket.uploads, it.memory.unfinished) == ({}, {})


def test_a_cut_upload_that_s3_forgot_is_begun_anew(it: Yard) -> None:
    it.write({"large": content(3 * PART, 1)})
    it.sink.fault = lambda request: UNAVAILABLE if request.query.get("partNumber") == "2" else None
    with pytest.raises(ClientError):
        it.send()
    it.bucket.uploads.clear()
    it.sink.fault = lambda _: None
    with pytest.raises(ClientError, match="NoSuchUpload"):
        it.send()
    assert stored(it, "large") == content(3 * PART, 1)


def test_packs_that_arrived_before_a_failure_are_not_sent_again(it: Yard) -> None:
    it.write({f"{number:02d}": content(MIB, number) for number in range(40)})
    turn, count = threading.Lock(), [0]

    def third_fails(request: Request) -> Refused | None:
        with turn:
            count[0] += request.method == "PUT"
            return UNAVAILABLE if count[0] >= 3 and request.method == "PUT" else None

    it.sink.fault = third_fails
    with pytest.raises(ClientError):
        it.send()
    assert len(it.bucket.objects) == 2
    it.sink.calls.clear()
    it.sink.fault = lambda _: None
    it.send()
    assert it.sink.calls == {"PutObject": 3}


def test_the_upload_of_a_file_that_is_gone_is_given_up(it: Yard) -> None:
    it.write({"large": content(3 * PART, 1)})
    it.sink.fault = lambda request: UNAVAILABLE if request.query.get("partNumber") == "2" else None
    with pytest.raises(ClientError):
        it.send()
    it.sink.fault = lambda _: None
    (it.folder / "large").unlink()
    it.send()
    assert (it.bucket.uploads, it.memory.unfinished) == ({}, {})


@pytest.mark.parametrize("size", [5, 2 * MIB, 2 * PART])
@pytest.mark.parametrize("how", ["grows", "shrinks", "is touched", "goes", "is replaced", "becomes a pipe"])
def test_a_file_that_is_not_what_was_seen_is_not_sent(it: Yard, size: int, how: str) -> None:
    it.write({"file": content(size, 1)})
    seen, file = it.seen(), it.folder / "file"
    if how == "grows":
        file.write_bytes(content(size + 1, 1))
    elif how == "shrinks":
        os.truncate(file, size - 1)
    elif how == "is touched":
        os.utime(file, ns=(1, 1))
    elif how == "goes":
        file.unlink()
    elif how == "becomes a pipe":
        file.unlink()
        os.mkfifo(file)
    else:
        (it.folder / "new.tmp").write_bytes(content(size, 2))
        (it.folder / "new.tmp").replace(file)
    with pytest.raises(Changed, match="file"):
        it.send_only(seen)
    assert (it.bucket.objects, it.bucket.uploads) == ({}, {})


@pytest.mark.parametrize("size", [5, 2 * MIB])
def test_a_file_that_changes_while_it_is_read_is_not_listed(
    it: Yard, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    it.write({"file": content(size, 1)})
    real = sending.fill

    def writing(file: int, piece: memoryview, start: int) -> None:
        real(file, piece, start)
        os.utime(it.folder / "file", ns=(1, 1))  # as a write does

    monkeypatch.setattr(sending, "fill", writing)
    with pytest.raises(Changed, match="file changed"):
        it.send()
    assert (it.memory.places, it.memory.objects, it.bucket.uploads) == ({}, {}, {})


@pytest.mark.parametrize("how", [lambda file: os.utime(file, ns=(1, 1)), lambda file: os.truncate(file, PART)])
def test_a_large_file_that_changes_while_its_parts_are_sent_is_not_listed(
    it: Yard, how: Callable[[Path], None]
) -> None:
    it.write({"file": content(3 * PART, 1)})

    def changing(request: Request) -> None:
        if request.query.get("partNumber") == "1":
            how(it.folder / "file")

    it.sink.fault = changing
    with pytest.raises(Changed, match="file"):
        it.send()
    assert (it.memory.places, it.memory.objects, it.bucket.uploads) == ({}, {}, {})


def test_a_file_that_is_replaced_while_others_are_sent_is_sent_as_it_was_seen(it: Yard) -> None:
    it.write({"a": content(2 * PART, 1), "z": content(2 * PART, 2)})
    seen = it.seen()

    def replaced(request: Request) -> None:
        if request.key.endswith("/a") and (it.folder / "z").stat().st_size > 9:
            (it.folder / "new.tmp").write_bytes(b"newer")
            (it.folder / "new.tmp").replace(it.folder / "z")

    it.sink.fault = replaced
    sent = it.send_only(seen)
    assert b"".join(it.bucket.objects[sent["z"].key].range(0, 2 * PART)) == content(2 * PART, 2)


def test_a_link_is_not_followed(it: Yard, tmp_path: Path) -> None:
    it.write({"file": b"secret"})
    seen = it.seen()
    (it.folder / "file").replace(tmp_path / "elsewhere")
    (it.folder / "file").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Changed, match="went away"):
        it.send_only(seen)


def test_files_in_objects_that_were_deleted_are_sent_again(it: Yard) -> None:
    it.write(SMALL)
    keys = {file.key for file in it.send().values()}
    it.memory.forget(keys)
    it.bucket.delete(list(keys))
    assert stored(it, "layer-001/w.bin") == SMALL["layer-001/w.bin"]


def test_restored_files_are_not_sent_again(it: Yard) -> None:
    it.write(SMALL)
    first = it.send()
    it.memory.places.clear()
    it.memory.digests.clear()
    for seen in it.seen():
        it.memory.adopt(seen, first[seen.path])
    it.sink.calls.clear()
    assert (it.send(), it.sink.calls) == (first, {})


def test_a_restored_file_of_another_bucket_is_sent(it: Yard) -> None:
    it.write({"file": b"x"})
    first = it.send()["file"]
    it.memory.places.clear()
    it.memory.adopt(it.seen()[0], replace(first, key="elsewhere"), here=False)
    assert it.memory.places == {}
    it.send()
    assert it.memory.places[first.sha256] == Location(first.key)


def test_threads_sleep_once_they_are_ahead_of_their_share() -> None:
    clock, used, slept = [0.0], [0.0], list[float]()
    pace = Pace(0.5, now=lambda: clock[0], used=lambda: used[0], sleep=slept.append)
    pace.wait()
    used[0], clock[0] = 1.0, 1.5
    pace.wait()
    assert slept == [0.5]
    clock[0] = 2.5
    pace.wait()
    assert slept == [0.5]


def test_without_a_share_nobody_sleeps() -> None:
    pace = Pace(None, used=lambda: 1e9, sleep=lambda _: pytest.fail("slept"))
    pace.wait()
    pace.wait()
