"""HTTP/1.1 over TLS in large blocks.

http.client writes and reads a record of TLS (16 KiB) a system call, with Python's lock taken and given back for each. Here a call
encrypts 256 KiB into memory and a second one sends them; both run without the lock.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

AT_ONCE = 256 * 1024
"""Bytes for one system call."""
MOST_HEAD = 64 * 1024
MOST_CHUNKED = 1024 * 1024
"""S3 sends errors, and nothing else that is asked for here, in chunks."""
IDLE_S = 4.0
"""S3 ends a connection that nobody used for a while; one that is younger is likely to be open still."""


class Cut(ConnectionError):
    """The other side ended the connection, or what it says is no HTTP."""


@dataclass(frozen=True)
class Server:
    """Where to connect to."""

    host: str
    port: int
    tls: bool


@dataclass(frozen=True)
class Head:
    """The first lines of an answer."""

    status: int
    headers: dict[str, str]
    """Names in lower case."""


class Connection:
    """One request at a time. Whatever it raises, it is of no use after that."""

    def __init__(self, place: Server, context: ssl.SSLContext | None, *, connect_s: float, read_s: float) -> None:
        self.place, self.last = place, 0.0
        self._plain = socket.create_connection((place.host, place.port), timeout=connect_s)
        self._plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._scratch = memoryview(bytearray(AT_ONCE))
        self._ahead = memoryview(b"")
        self._tls: ssl.SSLObject | None = None
        if context is not None:
            self._tls = context.wrap_bio(self._in, self._out, server_hostname=place.host)
            try:
                self._shake_hands()
            except BaseException:
                self.close()
                raise
        self._plain.settimeout(read_s)

    def ask(self, head: bytes, body: memoryview | None) -> Head:
        """Sends a request and returns the head of its answer. Raises OSError, of which Cut, ssl.SSLError and TimeoutError are kinds."""
        try:
            self._send(memoryview(head))
            if body is not None:
                self._send(body)
        except (ConnectionError, ssl.SSLError):
            with suppress(OSError):  # a server that wants no more of a request may have said why
                return self._head()
            raise
        return self._head()

    def read_into(self, view: memoryview) -> int:
        """Fills `view` with what follows, less only where the connection ends."""
        have = min(len(view), len(self._ahead))
        view[:have], self._ahead = self._ahead[:have], self._ahead[have:]
        while have < len(view) and (got := self._receive(view[have:])):
            have += got
        return have

    def chunks(self) -> bytes:
        """A body in chunks, whole."""
        content = bytearray()
        while size := _hexadecimal(self._line()):
            if len(content) + size > MOST_CHUNKED:
                raise Cut(f"an answer in chunks is larger than {MOST_CHUNKED} bytes")
            chunk = bytearray(size)
            if self.read_into(memoryview(chunk)) < size:
                raise Cut("the connection ended in a chunk")
            content += chunk
            self._line()
        while self._line():
            pass
        return bytes(content)

    def is_usable(self) -> bool:
        """Whether it seems open: what has nothing to say and can be read has ended."""
        return not self._ahead and not select.select([self._plain], [], [], 0)[0]

    def close(self) -> None:
        with suppress(OSError):
            self._plain.close()

    def _shake_hands(self) -> None:
        assert self._tls is not None
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                self._more()
            except ssl.SSLError:
                with suppress(OSError):
                    self._flush()  # tells the other side why
                raise
            else:
                self._flush()
                return

    def _send(self, view: memoryview) -> None:
        for start in range(0, len(view), AT_ONCE):
            block = view[start : start + AT_ONCE]
            if self._tls is None:
                self._plain.sendall(block)
            else:
                self._tls.write(block)
                self._flush()

    def _flush(self) -> None:
        if self._out.pending:
            self._plain.sendall(self._out.read())

    def _more(self) -> None:
        got = self._plain.recv_into(self._scratch)
        if not got:
            raise Cut("the connection ended")
        self._in.write(self._scratch[:got])

    def _receive(self, view: memoryview) -> int:
        """Some bytes; none where the connection has ended."""
        if self._tls is None:
            return self._plain.recv_into(view)
        while True:
            try:
                return self._tls.read(len(view), view)  # type: ignore[arg-type]
            except ssl.SSLWantReadError:
                try:
                    self._more()
                except Cut:
                    return 0
            except ssl.SSLZeroReturnError:
                return 0

    def _head(self) -> Head:
        while True:
            first = self._line().decode("latin-1").split(" ", 2)
            if len(first) < 2 or not first[0].startswith("HTTP/1.") or not first[1].isdigit():
                raise Cut("the answer is no HTTP/1.1")
            headers = {}
            while line := self._line():
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.strip().lower()] = value.strip()
            if int(first[1]) >= 200:
                return Head(int(first[1]), headers)

    def _line(self) -> bytes:
        content = bytes(self._ahead)
        while (end := content.find(b"\r\n")) < 0:
            piece = memoryview(bytearray(16 * 1024))
            got = self._receive(piece)
            if not got or len(content) > MOST_HEAD:
                raise Cut("the connection ended in a line" if not got else "a line is too long")
            content += piece[:got]
        self._ahead = memoryview(content)[end + 2 :]
        return content[:end]


def _hexadecimal(line: bytes) -> int:
    try:
        return int(line.partition(b";")[0], 16)
    except ValueError:
        raise Cut("a chunk without a length") from None


class Pool:
    """Connections that wait for another request. Safe to use from any thread."""

    def __init__(self, make: Callable[[Server], Connection], *, now: Callable[[], float] = time.monotonic) -> None:
        self._make, self._now = make, now
        self._idle: list[Connection] = []
        self._turn = threading.Lock()

    def take(self, place: Server) -> Connection:
        while (found := self._next(place)) is not None:
            if found.is_usable():
                return found
            found.close()
        return self._make(place)

    def give(self, connection: Connection) -> None:
        """Takes back a connection whose answer was read to its end."""
        connection.last = self._now()
        with self._turn:
            self._idle.append(connection)

    def close(self) -> None:
        with self._turn:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _next(self, place: Server) -> Connection | None:
        with self._turn:
            old = [one for one in self._idle if self._now() - one.last > IDLE_S]
            self._idle = [one for one in self._idle if one not in old]
            found = next((one for one in reversed(self._idle) if one.place == place), None)
            if found is not None:
                self._idle.remove(found)
        for one in old:
            one.close()
        return found
