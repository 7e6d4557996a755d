"""What helpers move, and what becomes of a send or a fetch whose helpers fail."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from agent.engine import engine
from agent.engine.helpers import Crowd, HelperFailed, Helpers, LineEnded, OrderLine, choose_crowd
from agent.engine.moving import describe_request
from agent.engine.places import PART
from agent.engine.wanted import Unusable
from agent.snapshot import Changed
from contract.commits import CommittedFile
from localaws.model import Refused
from localaws.sink.server import Cut, Flipped
from localaws.sink.wire import Request
from localaws.testing.waiting import HANG_S
from tests.architecture.sources import ROOT
from tests.node.engine_yard import BUCKET, MIB, ONE, Yard, content, yard
from tests.node.proxies import tunnel

BYTES_CALLS = ("put_object", "upload_part", "get_object")
LARGE = content(3 * PART + 11, "large")


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Yard]:
    with yard(tmp_path, crowd=ONE) as made:
        yield made


@pytest.fixture
def own(it: Yard, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls that the agent made itself, with boto3."""
    calls = list[str]()

    def counting(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(**given: Any) -> Any:
            calls.append(name)
            return real(**given)

        return call

    for name in BYTES_CALLS:
        monkeypatch.setattr(it.client, name, counting(name, getattr(it.client, name)))
    return calls


def stored(it: Yard, file: CommittedFile) -> bytes:
    return b"".join(it.bucket.objects[file.key].range(file.offset, file.offset + file.size))


def helpers_of(parent: int) -> list[int]:
    """Processes that this one has started to help, and those that these have."""
    found = list[int]()
    for one in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            of = int((one / "stat").read_text().rpartition(")")[2].split()[1])
            if of == parent and b"agent.engine.helper" in (one / "cmdline").read_bytes():
                found += [int(one.name), *helpers_of(int(one.name))]
    return found


def wait_until(done: Callable[[], bool]) -> None:
    until = time.monotonic() + HANG_S
    while not done():
        assert time.monotonic() < until
        time.sleep(0.02)


def on_first(method: str, do: Callable[[], object]) -> Callable[[Request], None]:
    left, turn = [do], threading.Lock()

    def of(request: Request) -> None:
        with turn:
            if left and request.method == method and request.key:
                left.pop()()

    return of


def test_helpers_move_all_bytes_there_and_back(it: Yard, own: list[str]) -> None:
    files = {"large": LARGE, "medium": content(3 * MIB, 2), "a/small": b"small", "empty": b""}
    it.write(files)
    sent = it.send()
    it.engine.fetch(list(sent.values()), it.staging)
    assert (it.restored(), own) == (files, [])
    assert helpers_of(os.getpid()) == []


def test_holes_come_back_as_holes(it: Yard, own: list[str]) -> None:
    it.write({"sparse": b""})
    os.truncate(it.folder / "sparse", 3 * PART)
    with (it.folder / "sparse").open("r+b") as file:
        file.seek(PART + 5)
        file.write(b"x")
    it.engine.fetch(list(it.send().values()), it.staging)
    assert (it.staging / "sparse").read_bytes() == (it.folder / "sparse").read_bytes()
    assert (it.staging / "sparse").stat().st_blocks * 512 <= 128 * 1024
    assert own == []


def test_no_helper_is_started_where_nothing_is_new(it: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    started = list[Crowd]()
    real = engine.Helpers

    def counting(crowd: Crowd, *given: Any, **more: Any) -> Helpers:
        started.append(crowd)
        return real(crowd, *given, **more)

    monkeypatch.setattr(engine, "Helpers", counting)
    it.engine._choose = choose_crowd
    it.write({"large": LARGE})
    it.send()
    it.send()
    assert [crowd.helpers for crowd in started] == [0, 0]


@pytest.mark.parametrize(
    "fault",
    [Cut(0), Cut(100_000), Refused("SlowDown", "less", 503), Refused("InternalError", "again", 500), Flipped(7)],
    ids=repr,
)
@pytest.mark.parametrize("method", ["PUT", "GET"])
def test_what_fails_once_is_done_by_the_agent_itself(it: Yard, own: list[str], fault: Any, method: str) -> None:
    """A bit that changes on its way back is the one fault that nobody but the digest sees."""
    it.write({"large": LARGE})
    left, turn = [fault], threading.Lock()

    def once(request: Request) -> Any:
        with turn:
            return left.pop() if left and request.method == method else None

    if method == "PUT":
        it.sink.fault = once
    [sent] = it.send().values()
    assert stored(it, sent) == LARGE
    it.sink.fault = once
    if method == "GET" and isinstance(fault, Flipped):
        with pytest.raises(Unusable, match="differs"):
            it.engine.fetch([sent], it.staging)
        return
    it.engine.fetch([sent], it.staging)
    assert it.restored() == {"large": LARGE}
    assert len(own) <= 2


def test_a_refusal_is_raised_as_boto3_raises_it(it: Yard) -> None:
    it.write({"large": LARGE})
    it.sink.fault = lambda request: Refused("AccessDenied", "no", 403) if request.method == "PUT" else None
    with pytest.raises(ClientError, match="AccessDenied"):
        it.send()


def test_credentials_that_expire_in_the_middle_are_said_to_be_expired(it: Yard) -> None:
    it.write({"large": LARGE})

    def expire() -> None:
        it.sink.expired = "AKIAFIRST"

    it.sink.fault = on_first("PUT", expire)
    with pytest.raises(ClientError, match="ExpiredToken"):
        it.send()


def test_bytes_that_do_not_arrive_as_they_were_sent_are_refused(it: Yard) -> None:
    it.write({"large": LARGE})
    it.sink.fault = lambda request: Flipped(3) if request.method == "PUT" else None
    with pytest.raises(ClientError, match="BadDigest"):
        it.send()
    assert (it.bucket.objects, it.memory.places) == ({}, {})


@pytest.mark.parametrize("method", ["PUT", "GET"])
def test_a_helper_that_is_killed_in_the_middle_costs_nothing_but_time(it: Yard, own: list[str], method: str) -> None:
    it.write({"large": LARGE})

    def kill() -> None:
        for pid in helpers_of(os.getpid()):
            os.kill(pid, signal.SIGKILL)

    if method == "PUT":
        it.sink.fault = on_first("PUT", kill)
    [sent] = it.send().values()
    assert stored(it, sent) == LARGE
    it.sink.fault = on_first("GET", kill)
    it.engine.fetch([sent], it.staging)
    assert it.restored() == {"large": LARGE}
    assert own
    assert len(it.notes) == 1
    assert helpers_of(os.getpid()) == []


@pytest.mark.parametrize("ends", ["before the order", "with the order unread", "after the order"])
def test_a_helper_that_ended_is_said_to_have_ended_whenever_it_did(ends: str) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def end() -> None:
        if ends == "with the order unread":
            wait_until(lambda: bool(select.select([theirs], [], [], 0)[0]))
        elif ends == "after the order":
            os.close(socket.recv_fds(theirs, 65536, 1)[1][0])
        theirs.close()

    helper = threading.Thread(target=end)
    helper.start()
    if ends == "before the order":
        helper.join()
    with ours, Path(os.devnull).open() as file, pytest.raises(LineEnded, match=r"^a helper has ended$"):
        OrderLine(ours).ask({"do": "send"}, file.fileno())
    helper.join()


def test_helpers_that_cannot_be_started_are_not_missed(
    it: Yard, own: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(subprocess, "Popen", no_memory)
    it.write({"large": LARGE})
    [sent] = it.send().values()
    assert stored(it, sent) == LARGE
    assert own == ["upload_part"] * 4


def test_the_log_says_once_why_bytes_move_without_helpers(it: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    it.write({"large": LARGE})
    it.send()
    assert it.notes == []

    def no_memory(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(subprocess, "Popen", no_memory)
    for text in ("large", "later"):
        it.write({text: content(3 * PART, text)})
        it.send()
    [note] = it.notes
    assert note.startswith("the agent moves large files by itself, which is slower: helpers cannot be started")
    assert "Cannot allocate memory" in note


def test_helpers_end_with_the_agent_however_it_ends(it: Yard, tmp_path: Path) -> None:
    code = (
        "import sys, time; from agent.engine.helpers import *\n"
        f"one = Helpers(Crowd(2, 4), {str(it.sink.authority)!r}); print(flush=True); time.sleep(1000)"
    )
    variables = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'node'}"}
    with subprocess.Popen([sys.executable, "-c", code], env=variables, stdout=subprocess.PIPE, cwd=tmp_path) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        wait_until(lambda: len(helpers_of(parent.pid)) == 2)
        helpers = helpers_of(parent.pid)
        parent.kill()
    wait_until(lambda: not any(_lives(pid) for pid in helpers))


def _lives(pid: int) -> bool:
    try:
        return "agent.engine.helper" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


def test_a_helper_knows_no_credentials(it: Yard) -> None:
    """Neither its environment nor its arguments have any; an order has a request that is signed for minutes."""
    it.write({"large": LARGE})
    seen = list[bytes]()

    def read() -> None:
        for pid in helpers_of(os.getpid()):
            seen.extend(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("environ", "cmdline"))

    it.sink.fault = on_first("PUT", read)
    it.sink.keep = True
    it.send()
    assert len(seen) == 2
    assert seen[0] == b""
    assert b"secret" not in seen[1]
    parts = [request for request in it.sink.seen if request.method == "PUT"]
    assert {request.query["X-Amz-Expires"] for request in parts} == {"900"}
    assert all("authorization" not in request.headers for request in parts)


def test_a_server_that_nobody_vouches_for_gets_nothing_of_a_helper(it: Yard) -> None:
    with Helpers(Crowd(1, 4), _system_authorities()) as helpers, (it.folder / "file").open("w+b") as file:
        file.write(b"told")
        file.flush()
        url = it.client.generate_presigned_url("put_object", Params={"Bucket": BUCKET, "Key": "k"})
        order = {"do": "put", **describe_request(url, {}), "start": 0, "size": 4}
        with pytest.raises(HelperFailed, match="CERTIFICATE_VERIFY_FAILED"):
            helpers.ask(order, file.fileno())
    assert it.sink.calls == {}


def _system_authorities() -> str:
    from botocore.httpsession import get_cert_path

    return str(get_cert_path(True))


def test_a_proxy_is_used_where_the_environment_names_one(
    it: Yard, own: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tunnel() as (address, asked):
        monkeypatch.setenv("HTTPS_PROXY", address.replace("http://", "http://me:pass@"))
        monkeypatch.setenv("NO_PROXY", "")
        it.write({"large": LARGE})
        [sent] = it.send().values()
    assert stored(it, sent) == LARGE
    assert own == []
    assert all("Proxy-Authorization: Basic bWU6cGFzcw==" in head for head in asked)
    assert len(asked) >= 2


def test_a_file_that_is_replaced_while_helpers_read_it_is_sent_as_it_was_seen(it: Yard) -> None:
    it.write({"file": LARGE})
    seen = it.seen()

    def replace_file() -> None:
        (it.folder / "new.tmp").write_bytes(b"newer")
        (it.folder / "new.tmp").replace(it.folder / "file")

    it.sink.fault = on_first("PUT", replace_file)
    assert stored(it, it.send_only(seen)["file"]) == LARGE


@pytest.mark.parametrize("how", ["is written", "becomes shorter"])
def test_a_file_that_changes_in_place_while_helpers_read_it_is_not_listed(it: Yard, how: str) -> None:
    it.write({"file": LARGE})

    def change() -> None:
        if how == "is written":
            with (it.folder / "file").open("r+b") as file:
                file.seek(2 * PART)
                file.write(b"another")
        else:
            os.truncate(it.folder / "file", PART)

    it.sink.fault = on_first("PUT", change)
    with pytest.raises(Changed, match="file"):
        it.send()
    assert (it.bucket.objects, it.bucket.uploads, it.memory.places) == ({}, {}, {})


def test_an_upload_that_is_cut_goes_on_where_it_was(it: Yard) -> None:
    it.write({"large": LARGE})
    it.sink.fault = lambda request: Refused("SlowDown", "less", 503) if request.query.get("partNumber") == "4" else None
    with pytest.raises(ClientError, match="SlowDown"):
        it.send()
    [upload] = it.bucket.uploads.values()
    arrived = set(upload.parts)
    it.sink.calls.clear()
    it.sink.fault = lambda _: None
    [sent] = it.send().values()
    assert stored(it, sent) == LARGE
    assert it.sink.calls == {"UploadPart": 4 - len(arrived), "CompleteMultipartUpload": 1}


def test_a_full_disk_is_told_as_such(it: Yard) -> None:
    """By the kernel: the device refuses each write."""
    it.bucket.put("k", LARGE)
    with Path("/dev/full").open("wb") as full, Helpers(ONE, str(it.sink.authority)) as helpers:
        url = it.client.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": "k"})
        order = {
            "do": "get",
            **describe_request(url, {}),
            "offset": 0,
            "start": 0,
            "size": 100,
            "part": PART,
            "sparse": True,
        }
        with pytest.raises(HelperFailed, match="No space left"):
            helpers.ask(order, full.fileno())


def test_an_order_that_no_helper_understands_ends_nothing(it: Yard) -> None:
    with Helpers(ONE, str(it.sink.authority)) as helpers, (it.folder / "file").open("w+b") as file:
        with pytest.raises(HelperFailed):
            helpers.ask({"do": "check", "start": 0, "size": 10}, file.fileno())
        file.write(b"told")
        file.flush()
        assert helpers.ask({"do": "check", "start": 0, "size": 4}, file.fileno())["crc32"] == zlib.crc32(b"told")
