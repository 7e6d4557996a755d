"""Another user of the computer reaches every port of a rehearsal, and no door opens: a test is this user where it may become one."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from localaws.containers import inputs, real
from localaws.git_host import GitHosts
from localaws.machines.imds import Imds
from localaws.machines.init import Init
from localaws.machines.wire import Wire
from localaws.peers import find_user, is_own, read_user
from localaws.runtime_api import Worker
from localaws.tests.metadata import ADDRESS, METADATA

NOBODY = 65534
PYTHON = "/usr/bin/python3"
WAITS_S = 10.0
stranger = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None or not Path(PYTHON).exists(),
    reason="nobody may become another user",
)
LISTED = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:A41D 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 71 1 0 100 0 0 10 0
   1: 0100007F:D2F0 0100007F:A41D 01 00000000:00000000 00:00000000 00000000  1000        0 72 1 0 20 4 0 10 -1
   2: 0100007F:A41D 0100007F:D2F0 01 00000000:00000000 00:00000000 00000000     0        0 73 1 0 20 4 0 10 -1
"""
SERVER, CLIENT = ("127.0.0.1", 0xA41D), ("127.0.0.1", 0xD2F0)


def as_stranger(code: str, *words: str) -> str:
    """Runs Python as a user who has nothing here; returns what it prints."""
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    done = subprocess.run(
        [*drop, PYTHON, "-I", "-c", code, *words], capture_output=True, text=True, timeout=WAITS_S, cwd="/", check=False
    )
    return done.stdout + done.stderr


FETCH = """
import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=5).read())
except Exception as problem:
    print('refused', type(problem).__name__)
"""


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(WAITS_S)
        yield made


def test_the_other_end_of_a_connection_is_this_users(listener: socket.socket) -> None:
    with socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert (read_user(accepted), is_own(accepted)) == (os.getuid(), True)


def test_a_client_of_ipv6_that_reaches_ipv4_is_found(listener: socket.socket) -> None:
    with socket.socket(socket.AF_INET6) as client:
        try:
            client.connect(("::ffff:127.0.0.1", listener.getsockname()[1]))
        except OSError:
            pytest.skip("this computer has no IPv6")
        accepted, _ = listener.accept()
        with accepted:
            assert is_own(accepted)


@stranger
@pytest.mark.parametrize("over", ["tcp", "unix"])
def test_the_other_end_of_a_strangers_connection_is_not(over: str, listener: socket.socket) -> None:
    name = f"local-aws-test-{os.getpid()}"
    family, place = ("AF_INET", listener.getsockname()) if over == "tcp" else ("AF_UNIX", f"\0{name}")
    with socket.socket(getattr(socket, family)) as other:
        if over == "unix":
            other.bind(place)
            other.listen()
            other.settimeout(WAITS_S)
        code = f"import socket; one = socket.socket(socket.{family}); one.connect({place!r}); one.recv(1)"
        caller = threading.Thread(target=as_stranger, args=(code,))
        caller.start()
        accepted, _ = (listener if over == "tcp" else other).accept()
        with accepted:
            assert (read_user(accepted), is_own(accepted)) == (NOBODY, False)
        caller.join()


@stranger
def test_a_stranger_that_has_sent_and_closed_is_nobody(listener: socket.socket) -> None:
    """The kernel lists root for a socket that its process has closed, and what was sent before can be read."""
    code = f"import socket; one = socket.socket(); one.connect({listener.getsockname()!r}); one.sendall(b'POST'); one.close()"
    as_stranger(code)
    accepted, _ = listener.accept()
    with accepted:
        assert accepted.recv(4) == b"POST"
        assert (read_user(accepted), is_own(accepted)) == (None, False)


def test_the_kernels_list_names_the_user_of_the_clients_end() -> None:
    assert find_user(CLIENT, SERVER, [LISTED]) == 1000
    assert find_user(SERVER, CLIENT, [LISTED]) == 0


@pytest.mark.parametrize(
    ("near", "far"),
    [
        (("127.0.0.1", 1), SERVER),
        (CLIENT, ("127.0.0.1", 1)),
        (("127.0.0.2", CLIENT[1]), SERVER),
        (CLIENT, ("0.0.0.0", 0)),
    ],
)
def test_a_connection_that_the_kernel_does_not_list_is_nobodys(near: tuple[str, int], far: tuple[str, int]) -> None:
    assert find_user(near, far, [LISTED]) is None


def test_a_connection_that_is_gone_is_not_this_users(monkeypatch: pytest.MonkeyPatch, listener: socket.socket) -> None:
    with socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
    with accepted:
        monkeypatch.setattr("localaws.peers.LISTS", ())
        assert not is_own(accepted)


# Doors


def fetched(url: str) -> bool:
    with suppress(OSError, http.client.HTTPException):
        urllib.request.urlopen(url, timeout=5).close()
        return True
    return False


@stranger
def test_a_stranger_takes_no_event_of_a_function(tmp_path: Path) -> None:
    worker = Worker([sys.executable, "-c", "import time; time.sleep(60)"], {}, tmp_path, lambda _: None)
    try:
        url = f"http://127.0.0.1:{worker._api.server_port}/2018-06-01/runtime/invocation/next"
        assert as_stranger(FETCH, url).startswith("refused")
        assert not worker._ready.is_set()
    finally:
        worker.stop()


@stranger
def test_a_stranger_orders_nothing_of_a_machine(tmp_path: Path) -> None:
    name = f"local-aws-test-init-{os.getpid()}"
    init = Init(tmp_path, 0.0, name, tmp_path)
    order = b'["poweroff"]\n'
    code = f"import socket; one = socket.socket(socket.AF_UNIX); one.connect({chr(0) + name!r}); one.sendall({order}); print(one.recv(9))"
    said = list[str]()
    caller = threading.Thread(target=lambda: said.append(as_stranger(code)))
    caller.start()
    init.server.settimeout(WAITS_S)
    try:
        init.serve()
    finally:
        caller.join()
        init.server.close()
    assert "b''" in said[0] or "ConnectionResetError" in said[0] or "BrokenPipeError" in said[0]


@stranger
def test_a_stranger_reads_no_repository(tmp_path: Path) -> None:
    with GitHosts(tmp_path, ["git.example"]) as hosts:
        assert as_stranger(FETCH, hosts.variables["HTTPS_PROXY"]).startswith("refused")
        assert hosts.asked == []


def test_a_relay_closes_what_it_does_not_accept(listener: socket.socket) -> None:
    def reach() -> socket.socket:
        return socket.create_connection(listener.getsockname())

    door = Wire("127.0.0.1", reach, accepts=lambda _: False)
    try:
        with socket.create_connection(("127.0.0.1", urlsplit(door.endpoint).port or 0)) as client:
            client.settimeout(WAITS_S)
            assert client.recv(1) == b""
        listener.settimeout(0.2)
        with pytest.raises(TimeoutError):
            listener.accept()
    finally:
        door.stop()


@pytest.mark.skipif(shutil.which("docker-registry") is None, reason="there is no registry")
def test_the_registry_of_images_is_this_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real.subprocess, "run", lambda *_, **__: None)
    monkeypatch.setattr(inputs, "keep", lambda _: None)
    images = tmp_path / ("long" * 30) / "images"
    ends = list[Callable[[], None]]()
    address = real.begin(images, ends.append)
    monkeypatch.undo()
    try:
        assert fetched(f"http://{address}/v2/_catalog")
        if os.geteuid() == 0 and shutil.which("setpriv"):
            assert as_stranger(FETCH, f"http://{address}/v2/_catalog").startswith("refused")
    finally:
        for end in ends:
            end()


# Metadata


@pytest.mark.parametrize(
    "path", ["/latest/api/token", "/latest/meta-data/instance-id", "/", "", "/wrong/latest/api/token"]
)
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_metadata_is_read_by_whoever_has_the_secret_of_the_node(path: str, method: str) -> None:
    one, other = Imds(METADATA, ADDRESS), Imds(METADATA, ADDRESS)
    try:
        at = urlsplit(one.endpoint)
        for beginning in ("", urlsplit(other.endpoint).path, at.path[:-1], at.path.upper()):
            request = urllib.request.Request(
                f"http://{at.netloc}{beginning}{path}",
                method=method,
                headers={"X-aws-ec2-metadata-token-ttl-seconds": "60"},
            )
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(request, timeout=5)
        assert one._tokens == {}
    finally:
        one.stop()
        other.stop()
