"""HTTP/1.1 over TLS for helpers: one connection at a time of many in one thread, each a generator that yields what it waits for.

Threads would take turns at Python's lock for each record of 16 KiB; `ssl.SSLSocket` makes two system calls for each.
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
import ssl
from collections.abc import Generator
from typing import Any, NamedTuple, TypeVar

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
MOST_HEAD = 64 * 1024


class Wait(NamedTuple):
    """What a generator waits for: that a socket can be read or written."""

    file: socket.socket
    events: int


T = TypeVar("T")
Waiting = Generator[Wait, None, T]


class Broken(ConnectionError):
    """The other side went away, or does not speak HTTP as it should."""


class Proxy(NamedTuple):
    """A proxy that opens tunnels, and what it wants to know of us: the value of `Proxy-Authorization`, or nothing."""

    host: str
    port: int
    login: str


class Origin(NamedTuple):
    """Where requests go, and by which proxy."""

    secure: bool
    host: str
    port: int
    proxy: Proxy | None


class ResponseHead(NamedTuple):
    """The head of an answer, names in lower case, and what has come of its body already."""

    status: int
    headers: dict[str, str]
    ahead: bytes

    @property
    def length(self) -> int:
        """Bytes of the body. Raises Broken where the answer does not tell."""
        told = self.headers.get("content-length", "")
        if not told.isdecimal() or len(told) > 18:
            raise Broken("an answer without a length")
        return int(told)


class Connection:
    """One connection to an origin."""

    def __init__(self, origin: Origin, context: ssl.SSLContext, scratch: memoryview) -> None:
        """`scratch` is shared by all connections: nothing stays in it while others have their turn."""
        self.origin, self._context, self._scratch = origin, context, scratch
        self._plain: socket.socket
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None

    def open(self) -> Waiting[None]:
        """Connects, through the proxy if there is one, and agrees on keys. Raises OSError."""
        secure, host, port, proxy = self.origin
        yield from self._connect(*(proxy[:2] if proxy else (host, port)))
        if proxy:
            yield from self._tunnel(f"{host}:{port}", proxy.login)
        if secure:
            self._tls = self._context.wrap_bio(self._in, self._out, server_hostname=host)
            yield from self._shake_hands(self._tls)

    def close(self) -> None:
        if hasattr(self, "_plain"):
            self._plain.close()

    def read_into(self, view: memoryview) -> Waiting[int]:
        """Fills `view` as far as something has arrived, one byte at least; returns how far. Raises Broken."""
        if self._tls is None:
            return (yield from self._receive(view))
        tls: Any = self._tls  # whose types do not know that it fills any writable buffer
        while True:
            have = 0
            try:
                while have < len(view):
                    got: int = tls.read(len(view) - have, view[have:])
                    if not got:
                        break
                    have += got
            except ssl.SSLWantReadError:
                if not have:
                    yield from self._more()
                    continue
            if not have:
                raise Broken("the connection ended")
            return have

    def send(self, content: bytes | memoryview) -> Waiting[None]:
        """Sends all bytes, which are encrypted in memory first. Raises OSError."""
        left = memoryview(content)
        if self._tls is None:
            yield from self._transmit(left)
            return
        while left:
            left = left[self._tls.write(left) :]
        yield from self._flush()

    def answer(self) -> Waiting[ResponseHead]:
        """Reads the head of an answer. Raises Broken."""
        ahead, piece = b"", memoryview(bytearray(4096))
        while (end := ahead.find(b"\r\n\r\n")) < 0:
            if len(ahead) > MOST_HEAD:
                raise Broken("a head without an end")
            got = yield from self.read_into(piece)
            ahead += bytes(piece[:got])
        first, *lines = ahead[:end].decode("latin-1").split("\r\n")
        words = first.split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdecimal():
            raise Broken("an answer that is not HTTP")
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        return ResponseHead(int(words[1]), headers, ahead[end + 4 :])

    def _connect(self, host: str, port: int) -> Waiting[None]:
        """To any of the host's addresses: S3's share its load."""
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        first = os.urandom(1)[0] % len(found)
        problem = OSError(f"{host} has no address")
        for family, kind, number, _, address in found[first:] + found[:first]:
            try:
                self._plain = socket.socket(family, kind, number)
                self._plain.setblocking(False)
                self._plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                code = self._plain.connect_ex(address)
                if code == errno.EINPROGRESS:
                    yield Wait(self._plain, WRITE)
                    code = self._plain.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code:
                    raise OSError(code, f"{host} cannot be reached")
            except OSError as why:
                self._plain.close()
                problem = why
            else:
                return
        raise problem

    def _tunnel(self, to: str, login: str) -> Waiting[None]:
        said = f"Proxy-Authorization: {login}\r\n" if login else ""
        yield from self.send(f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{said}\r\n".encode())
        answer = yield from self.answer()
        if answer.status != 200 or answer.ahead:
            raise Broken(f"the proxy answered {answer.status}")

    def _shake_hands(self, tls: ssl.SSLObject) -> Waiting[None]:
        while True:
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                yield from self._flush()
                yield from self._more()
            else:
                yield from self._flush()
                return

    def _more(self) -> Waiting[None]:
        """Takes in what has arrived, encrypted."""
        got = yield from self._receive(self._scratch)
        self._in.write(self._scratch[:got])

    def _flush(self) -> Waiting[None]:
        yield from self._transmit(memoryview(self._out.read()))

    def _receive(self, view: memoryview) -> Waiting[int]:
        while True:
            try:
                got = self._plain.recv_into(view)
            except BlockingIOError:
                yield Wait(self._plain, READ)
                continue
            if not got:
                raise Broken("the connection ended")
            return got

    def _transmit(self, content: memoryview) -> Waiting[None]:
        while content:
            try:
                content = content[self._plain.send(content) :]
            except BlockingIOError:
                yield Wait(self._plain, WRITE)
