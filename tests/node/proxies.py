"""A proxy for tests: opens tunnels, and keeps what it was asked."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def tunnel() -> Iterator[tuple[str, list[str]]]:
    """Yields its address, and the heads of requests."""
    heads = list[str]()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    near, _ = listener.accept()
                    threading.Thread(target=_connect, args=(near, heads), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", heads
        listener.shutdown(socket.SHUT_RDWR)


def _connect(near: socket.socket, heads: list[str]) -> None:
    head = b""
    while b"\r\n\r\n" not in head:
        head += near.recv(4096)
    heads.append(head.decode())
    host, _, port = head.split()[1].decode().rpartition(":")
    far = socket.create_connection((host, int(port)))
    near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    threading.Thread(target=_copy, args=(far, near), daemon=True).start()
    _copy(near, far)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
