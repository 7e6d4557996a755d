"""A node with a slow network: its all-reduces are slow on a computer that has no time for anything, and nothing else of it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from rehearsal import machine_faults
from rehearsal.slow_link import STANDS_S

BYTES = 32 * 1024**2
"""Of an all-reduce between nodes without GPUs."""
ROUNDS = 20
"""How often processes answer each other before they have found each other."""
SENDS = f"""
import signal, socket, sys, time
stood = []
signal.signal(signal.SIGCONT, lambda *_: stood.append(1))
until = time.process_time() + 0.5  # as PyTorch is imported
while time.process_time() < until:
    pass
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as peer:
    for _ in range({ROUNDS}):
        peer.sendall(b"?")
        peer.recv(1)
    peer.sendall(bytes({BYTES}))
    peer.recv(1)
    peer.sendall(b"s" if stood else b"n")
"""
PEER = f"""
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    peer = server.accept()[0]
peer.settimeout(float(sys.argv[1]) or None)
try:
    for _ in range({ROUNDS}):
        peer.recv(1)
        peer.sendall(b"!")
    left = {BYTES}
    while left:
        chunk = peer.recv(2**20)
        assert chunk, "the sender is gone"
        left -= len(chunk)
    peer.sendall(b"!")
    print("stood still" if peer.recv(1) == b"s" else "never stood still", flush=True)
except TimeoutError:
    print("late", flush=True)
"""
INIT = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]])"
SPINS = "while True: pass"


@pytest.fixture
def busy() -> Iterator[None]:
    """Programs that want every processor, four times over, and threads of this one that want its interpreter."""
    stop = threading.Event()
    threads = [threading.Thread(target=spin, args=(stop,)) for _ in range(16)]
    with ExitStack() as stack:
        for _ in range(8):
            stack.callback(stack.enter_context(subprocess.Popen([sys.executable, "-c", SPINS])).kill)
        for thread in threads:
            thread.start()
            stack.callback(thread.join)
        stack.callback(stop.set)
        yield


def spin(stop: threading.Event) -> None:
    while not stop.is_set():
        sum(range(1000))


def end(node: subprocess.Popen[bytes]) -> None:
    """Ends the node with its program, which may be over already: its peer has left."""
    if node.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(node.pid, signal.SIGKILL)


def arrives(place: Path, within_s: float = 0.0) -> str:
    """How the bytes of a program at that place arrive on a node with a slow network: `late` where none come within so many seconds, which
    says nothing of a program on a busy computer; without seconds, whether the program ever stood still."""
    place.parent.mkdir(parents=True)
    place.write_text(SENDS)
    with ExitStack() as stack:
        peer = stack.enter_context(
            subprocess.Popen([sys.executable, "-c", PEER, str(within_s)], stdout=subprocess.PIPE, text=True)
        )
        assert peer.stdout is not None
        command = [sys.executable, "-c", INIT, str(place), peer.stdout.readline().strip()]
        node = stack.enter_context(subprocess.Popen(command, process_group=0))
        stack.callback(end, node)
        machine_faults.slow_down(node.pid, lambda: node.poll() is None)
        said: str = peer.stdout.readline().strip()
        return said


@pytest.mark.usefixtures("busy")
def test_an_all_reduce_is_slow_on_a_busy_computer_too(tmp_path: Path) -> None:
    assert arrives(tmp_path / "links" / "collective.py", STANDS_S * 0.9) == "late"


def test_what_is_no_all_reduce_is_as_fast_as_ever(tmp_path: Path) -> None:
    assert arrives(tmp_path / "training" / "collective.py") == "never stood still"
