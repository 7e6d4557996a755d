"""Serves many TLS connections from one thread: threads would spend their time on waiting for Python's lock.

A handler is a generator that yields what it waits for: READ, WRITE, or a number of seconds.
"""

from __future__ import annotations

import heapq
import itertools
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, cast

READ, WRITE = "read", "write"
AT_ONCE = 512 * 1024
"""Bytes for one system call; a record of TLS has 16 KiB."""
Waiting = Generator[str | float, None, None]


class Gone(ConnectionError):
    """The other side went away."""


class Channel:
    """One connection's bytes in the clear. Its generators yield to the loop."""

    def __init__(self, plain: socket.socket, context: ssl.SSLContext, scratch: bytearray, rate: float = 0.0) -> None:
        """`scratch` is everybody's: nothing stays in it while others have their turn. `rate`: bytes a second in either direction; 0 for
        any."""
        self.plain, self._scratch, self.events = plain, scratch, 0
        self._rate, self._due = rate, 0.0
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=True)

    def open(self) -> Generator[str | float, None, None]:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                yield from self._flush()
                yield from self._more()
            else:
                yield from self._flush()
                return

    def read_into(self, view: memoryview) -> Generator[str | float, None, int]:
        """Fills `view` as far as something has arrived. Raises Gone."""
        while True:
            have = 0
            try:
                while have < len(view):
                    got = int(cast(Any, self._tls).read(len(view) - have, view[have:]))
                    if not got:
                        break
                    have += got
            except ssl.SSLWantReadError:
                if not have:
                    yield from self._more()
                    continue
            if not have:
                raise Gone("the connection ended")
            yield from self._pace(have)
            return have

    def send(self, content: bytes | memoryview) -> Generator[str | float, None, None]:
        view = memoryview(content)
        for start in range(0, len(view), AT_ONCE):
            piece = view[start : start + AT_ONCE]
            self._tls.write(piece)
            yield from self._flush()
            yield from self._pace(len(piece))

    def _pace(self, size: int) -> Generator[str | float, None, None]:
        """Waits until so many more bytes fit the rate."""
        if self._rate:
            now = time.monotonic()
            self._due = max(self._due, now) + size / self._rate
            if self._due > now:
                yield self._due - now

    def close(self) -> None:
        with suppress(OSError):
            self.plain.close()

    def _more(self) -> Generator[str | float, None, None]:
        while True:
            try:
                got = self.plain.recv_into(self._scratch)
            except BlockingIOError:
                yield READ
                continue
            if not got:
                raise Gone("the connection ended")
            self._in.write(memoryview(self._scratch)[:got])
            return

    def _flush(self) -> Generator[str | float, None, None]:
        pending = memoryview(self._out.read())
        while pending:
            try:
                pending = pending[self.plain.send(pending) :]
            except BlockingIOError:
                yield WRITE


class Loop:
    """Runs in a thread of its own until `close`."""

    def __init__(
        self, context: ssl.SSLContext, handler: Callable[[Channel], Waiting], port: int = 0, rate: float = 0.0
    ) -> None:
        self._context, self._handler, self._rate = context, handler, rate
        self._listener = socket.create_server(("127.0.0.1", port), backlog=512)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._selector, self._wake = selectors.DefaultSelector(), socket.socketpair()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._selector.register(self._wake[0], selectors.EVENT_READ, None)
        self._scratch = bytearray(AT_ONCE)
        self._timers: list[tuple[float, int, Channel, Waiting]] = []
        self._numbers, self._open, self._over = itertools.count(), set[Channel](), False
        self._thread = threading.Thread(target=self._run, name="sink", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends every connection."""
        self._over = True
        self._wake[1].send(b"x")
        self._thread.join()

    def _run(self) -> None:
        while not self._over:
            until = max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None
            for key, _ in self._selector.select(until):
                if key.data is not None:
                    self._go_on(*key.data)
                elif key.fileobj is self._listener:
                    self._accept()
            now = time.monotonic()  # timers that these handlers set have to wait for those that can read or write
            while self._timers and self._timers[0][0] <= now:
                _, _, channel, handler = heapq.heappop(self._timers)
                self._go_on(channel, handler)
        for channel in list(self._open):
            self._end(channel)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            while True:
                plain, _ = self._listener.accept()
                plain.setblocking(False)
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                channel = Channel(plain, self._context, self._scratch, self._rate)
                self._open.add(channel)
                self._go_on(channel, self._handler(channel))

    def _go_on(self, channel: Channel, handler: Waiting) -> None:
        try:
            wanted = next(handler)
        except (StopIteration, OSError):
            self._end(channel)
            return
        if wanted in (READ, WRITE):
            self._watch(channel, handler, selectors.EVENT_READ if wanted == READ else selectors.EVENT_WRITE)
            return
        self._watch(channel, handler, 0)
        heapq.heappush(self._timers, (time.monotonic() + float(wanted), next(self._numbers), channel, handler))

    def _watch(self, channel: Channel, handler: Waiting, events: int) -> None:
        if channel.events == events:
            return
        if channel.events and events:
            self._selector.modify(channel.plain, events, (channel, handler))
        elif events:
            self._selector.register(channel.plain, events, (channel, handler))
        else:
            self._selector.unregister(channel.plain)
        channel.events = events

    def _end(self, channel: Channel) -> None:
        self._open.discard(channel)
        if channel.events:
            self._selector.unregister(channel.plain)
        channel.close()
