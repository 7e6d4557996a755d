"""A relay: a node's own way to AWS, which can be cut and then acts like a network that drops every packet; or a door to a server."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

CHUNK = 65536


class Wire:
    """Listens at once. Raises OSError if the address cannot be bound."""

    def __init__(
        self,
        address: str,
        reach: Callable[[], socket.socket],
        *,
        port: int = 0,
        accepts: Callable[[socket.socket], bool] = lambda _: True,
    ) -> None:
        """Relays a port of `address`, any by default, to what `reach` connects to; closes connections that are not accepted."""
        self._reach, self._accepts = reach, accepts
        self._cut = threading.Event()
        self._ends: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._server = socket.create_server((address, port), backlog=64)
        self._stopped = False
        threading.Thread(target=self._accept, name="wire", daemon=True).start()

    @property
    def endpoint(self) -> str:
        address, port = self._server.getsockname()
        return f"http://{address}:{port}"

    def cut(self) -> None:
        """Drops everything from now on, without telling either end."""
        self._cut.set()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            ends = {self._server, *self._ends}
        for end in ends:
            with contextlib.suppress(OSError):  # wakes whoever waits for it
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            try:
                if not self._accepts(near):
                    raise PermissionError("a stranger")
                far = self._reach()
            except OSError:
                near.close()
                continue
            with self._lock:
                if self._stopped:
                    near.close()
                    far.close()
                    return
                self._ends |= {near, far}
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, other), name="wire", daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        """Drops what comes in while the wire is cut, including the end of the connection."""
        with contextlib.suppress(OSError):
            while chunk := source.recv(CHUNK):
                if not self._cut.is_set():
                    sink.sendall(chunk)
            if not self._cut.is_set():
                sink.shutdown(socket.SHUT_WR)
