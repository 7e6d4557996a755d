"""A process that moves bytes between open files and S3 for the agent, over a few connections; its standard library starts in 20 ms.

It knows no credentials: an order has a request that is signed already, and the file comes with it. It repeats nothing but a request on
a connection that had been open for long: what fails here the agent does itself, with boto3. It ends with its standard input.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import ssl
import sys
import time
from collections.abc import Generator
from typing import Any

from agent.engine.crc import PartSums
from agent.engine.extents import WINDOW, checksum, windows, write, write_all
from agent.engine.wire import READ, Connection, Origin, Proxy, ResponseHead, Wait, Waiting

MOST_ORDER = 64 * 1024
SILENT_S, LOOK_S = 60.0, 1.0
"""How long nothing may come of a connection (as the agent's own: aws.READ_S), and how often that is looked at."""
MOST_REST = 64 * 1024
"""Bytes of a body that are read so that the connection can go on; of a longer one it is closed."""


class HelperLine:
    """One connection, and the socket on which its orders come, one at a time."""

    def __init__(self, orders: socket.socket, context: ssl.SSLContext, scratch: memoryview) -> None:
        self._orders, self._context, self._scratch = orders, context, scratch
        self._buffer = memoryview(bytearray(WINDOW))
        self._connection: Connection | None = None

    def serve(self) -> Waiting[None]:
        """Obeys orders until there are no more."""
        while True:
            yield Wait(self._orders, READ)
            text, files, _, _ = socket.recv_fds(self._orders, MOST_ORDER, 1)
            if not text:
                return
            [file] = files
            try:
                done = yield from self._obey(json.loads(text), file)
            except (OSError, ValueError) as problem:
                done = {"problem": f"{type(problem).__name__}: {problem}"}
                self._hang_up()
            finally:
                os.close(file)
            self._orders.send(json.dumps({**done, "pid": os.getpid(), "cpu_s": time.process_time()}).encode())

    def _obey(self, order: dict[str, Any], file: int) -> Waiting[dict[str, Any]]:
        start, size = int(order["start"]), int(order["size"])
        if order["do"] == "check":
            return {"crc32": checksum(file, start, size, self._buffer)}
        secure, host, port, proxy = order["origin"]
        origin = Origin(secure, host, port, Proxy(*proxy) if proxy else None)
        fresh = self._connection is None or self._connection.origin != origin
        try:
            return (yield from self._exchange(origin, order, file, start, size))
        except ConnectionError:
            if fresh:
                raise
        self._hang_up()  # S3 ends what was idle
        return (yield from self._exchange(origin, order, file, start, size))

    def _exchange(
        self, origin: Origin, order: dict[str, Any], file: int, start: int, size: int
    ) -> Waiting[dict[str, Any]]:
        connection = yield from self._connected(origin)
        if order["do"] == "get":
            return (yield from self._get(connection, order, file, start, size))
        return (yield from self._put(connection, order, file, start, size))

    def _connected(self, origin: Origin) -> Waiting[Connection]:
        if self._connection is not None and self._connection.origin == origin:
            return self._connection
        self._hang_up()
        self._connection = Connection(origin, self._context, self._scratch)
        yield from self._connection.open()
        return self._connection

    def _get(
        self, connection: Connection, order: dict[str, Any], file: int, start: int, size: int
    ) -> Waiting[dict[str, Any]]:
        """Writes `size` bytes of an object, from byte `offset` on, into the file at `start`."""
        offset = int(order["offset"])
        yield from connection.send(_head("GET", order, {"Range": f"bytes={offset}-{offset + size - 1}"}))
        answer = yield from connection.answer()
        if answer.status != 206 or answer.length != size or len(answer.ahead) > size:
            self._hang_up()
            return {"problem": f"S3 answered {answer.status} with {answer.length} bytes"}
        put = write if order["sparse"] else write_all
        buffer, parts, done = self._buffer, PartSums(int(order["part"])), 0
        have = len(answer.ahead)
        buffer[:have] = answer.ahead
        while done < size:
            end = min(len(buffer), size - done, parts.room)
            while have < end:
                have += yield from connection.read_into(buffer[have:end])
            piece = buffer[:end]
            parts.add(piece)
            put(file, piece, start + done)
            done, have = done + end, 0
        self._part(answer)
        return {"crc32s": parts.list()}

    def _put(
        self, connection: Connection, order: dict[str, Any], file: int, start: int, size: int
    ) -> Waiting[dict[str, Any]]:
        """Sends `size` bytes of the file, from `start` on."""
        yield from connection.send(_head("PUT", order, {"Content-Length": str(size)}))
        for piece in windows(file, start, size, self._buffer):
            yield from connection.send(piece)
        answer = yield from connection.answer()
        rest = answer.length - len(answer.ahead)
        if answer.status != 200 or not 0 <= rest <= MOST_REST:
            self._hang_up()
            return {"problem": f"S3 answered {answer.status}"}
        while rest:
            rest -= yield from connection.read_into(self._buffer[: min(rest, len(self._buffer))])
        self._part(answer)
        return {"etag": answer.headers.get("etag", "")}

    def _part(self, answer: ResponseHead) -> None:
        if answer.headers.get("connection", "").lower() == "close":
            self._hang_up()

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _head(method: str, order: dict[str, Any], more: dict[str, str]) -> bytes:
    """The request's head; its target is sent as it was signed."""
    headers = {**order["headers"], **more}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {order['target']} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")


class Loop:
    """Gives each line its turn, until the standard input ends: then the agent has."""

    def __init__(self, lines: list[HelperLine]) -> None:
        self._selector = selectors.DefaultSelector()
        self._selector.register(sys.stdin.fileno(), READ)
        self._turns = dict[int, tuple[Generator[Wait, None, None], Wait, float]]()
        for number, line in enumerate(lines):
            turn = line.serve()
            self._note(number, turn, None, next(turn))

    def run(self) -> None:
        looked = time.monotonic()
        while self._turns:
            for key, _ in self._selector.select(LOOK_S):
                if key.data is None:
                    return
                turn, wait, _ = self._turns[key.data]
                self._note(key.data, turn, wait, next(turn, None))
            if time.monotonic() > looked + LOOK_S:
                looked = time.monotonic()
                self._end_silent(looked - SILENT_S)

    def _note(self, number: int, turn: Generator[Wait, None, None], before: Wait | None, wait: Wait | None) -> None:
        """Takes note of what a line waits for now."""
        if before is not None and before != wait:
            self._selector.unregister(before.file)
        if wait is None:
            del self._turns[number]
            return
        if before != wait:
            self._selector.register(wait.file, wait.events, number)
        self._turns[number] = turn, wait, time.monotonic()

    def _end_silent(self, since: float) -> None:
        """Ends the exchanges of which nothing came."""
        for number, (turn, wait, at) in list(self._turns.items()):
            if at < since and wait.file.family != socket.AF_UNIX:
                self._note(number, turn, wait, turn.throw(TimeoutError(f"nothing came for {SILENT_S:.0f} s")))


def main() -> None:
    """Arguments: the file with the authorities that are trusted, how many connections each helper has, and for each connection the number
    of the socket on which its orders come. Where there are more helpers than this one, it makes them, and ends after them."""
    authorities, lines, *numbers = sys.argv[1:]
    context = ssl.create_default_context(cafile=authorities)
    shares = [numbers[at : at + int(lines)] for at in range(0, len(numbers), int(lines))]
    others = list[int]()
    for share in shares:
        own = share
        if share is shares[-1]:
            break
        if not (child := os.fork()):
            others = []
            break
        others.append(child)
    for number in numbers:
        if number not in own:  # or the agent would not see that another helper has ended
            os.close(int(number))
    scratch = memoryview(bytearray(WINDOW))
    Loop([HelperLine(socket.socket(fileno=int(number)), context, scratch) for number in own]).run()
    for child in others:
        os.waitpid(child, 0)
    os._exit(0)


if __name__ == "__main__":
    main()
