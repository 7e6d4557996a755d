"""Where the agents of an attempt meet: each says something, and hears what all have said, round by round.

Rank 0's agent listens; it is one of those that say something as well. A node that is gone, or late, is heard as None.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

MOST_BYTES = 4096
"""Of what one node says."""
MOST_LATER = 32
"""Connections beyond one for each node: of nodes that come again, and of strangers."""
MOST_ROUNDS = 16
CONNECTS_S = 5.0
HELLO_S = 10.0
"""How long a connection may be silent that has not said whose it is."""
SENDS_S = 10
"""How long a node that does not read may hold up what is said to the others."""
AGAIN_S = 1.0
LOOK_S = 0.2
CHUNK = 64 * 1024

Said = dict[str, Any]


class Apart(Exception):
    """This node has lost the others, or never met them; the message says how."""


class MeetingTable:
    """Takes what nodes say and gives each what all have said. Raises OSError where the port is taken."""

    def __init__(self, address: str, port: int, *, name: str, nodes: int, late_s: float) -> None:
        """`name` is the attempt's: others are sent away. A round ends `late_s` after the first has spoken in it, without those that are
        late; the first round has no such end, since its nodes come one by one."""
        self._name, self._nodes, self._late_s = name, nodes, late_s
        self._lock = threading.Lock()
        self._telling = threading.Lock()
        """Held while an answer is given to all, so that the first who hears it cannot close the table on the others."""
        self._rounds: dict[int, dict[int, Said]] = {}
        self._over: set[int] = set()
        self._came: dict[int, socket.socket] = {}
        self._gone: set[int] = set()
        self._open = 0
        self._closed = threading.Event()
        self._socket = socket.create_server(
            (address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET, backlog=1024
        )
        self._socket.settimeout(LOOK_S)
        self._thread = threading.Thread(target=self._accept, name="table", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends it; what has been said is delivered."""
        self._closed.set()
        self._thread.join()  # within LOOK_S: a socket that a thread waits on still listens once it is closed
        self._socket.close()
        with self._telling, self._lock:
            for one in self._came.values():
                with suppress(OSError):
                    one.shutdown(socket.SHUT_WR)

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                continue
            except OSError:
                if self._closed.wait(LOOK_S):
                    return
                continue
            with self._lock:
                crowded = self._open >= self._nodes + MOST_LATER
                self._open += not crowded
            if crowded:
                connection.close()
            else:
                threading.Thread(target=self._serve, args=(connection,), name="table", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        rank = None
        try:
            connection.settimeout(HELLO_S)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SENDS_S, 0))
            _alive(connection)
            with connection, connection.makefile("rb") as lines:
                rank = self._greeted(_object(lines.readline(MOST_BYTES)), connection)
                connection.settimeout(None)
                while rank is not None and (line := lines.readline(MOST_BYTES)):
                    self._hear(rank, _object(line))
        except (OSError, ValueError):
            pass
        finally:
            with self._lock:
                self._open -= 1
                if rank is not None and self._came.get(rank) is connection:
                    self._gone.add(rank)
            self._end_rounds()

    def _greeted(self, said: Said, connection: socket.socket) -> int | None:
        """Whose connection it is; None for a stranger's. A node that comes again has lost its first one."""
        rank = said.get("rank")
        if said.get("name") != self._name or not isinstance(rank, int) or not 0 <= rank < self._nodes:
            return None
        with self._lock:
            self._came[rank] = connection
            self._gone.discard(rank)
        return rank

    def _hear(self, rank: int, said: Said) -> None:
        number, word = said.get("round"), said.get("said")
        if not isinstance(number, int) or not 0 <= number < MOST_ROUNDS or not isinstance(word, dict):
            raise ValueError("the message belongs to no round")
        with self._lock:
            first = number not in self._rounds
            self._rounds.setdefault(number, {})[rank] = word
        if first and number:
            timer = threading.Timer(self._late_s, self._end, (number,))
            timer.daemon = True
            timer.start()
        self._end_rounds()

    def _end_rounds(self) -> None:
        """Ends the rounds in which every node that is still there has spoken. All nodes have to come to the first."""
        with self._lock:
            due = [
                number
                for number, said in self._rounds.items()
                if number not in self._over and len(said.keys() | (self._gone if number else set())) == self._nodes
            ]
        for number in due:
            self._end(number)

    def _end(self, number: int) -> None:
        with self._telling:
            with self._lock:
                if number in self._over or self._closed.is_set():
                    return
                self._over.add(number)
                said = self._rounds[number]
                answer = {"round": number, "said": [said.get(rank) for rank in range(self._nodes)]}
                came = [one for rank, one in self._came.items() if rank not in self._gone]
            line = json.dumps(answer).encode() + b"\n"
            for one in came:
                with suppress(OSError):
                    one.sendall(line)


class Seat:
    """A node's place at the table."""

    def __init__(
        self, address: str, port: int, *, name: str, rank: int, nodes: int, pause: Callable[[float], None]
    ) -> None:
        """`pause` waits, and may raise what ends the wait."""
        self._address, self._port, self._nodes, self._pause = address, port, nodes, pause
        self._hello = {"name": name, "rank": rank}
        self._socket: socket.socket | None = None
        self._rest = b""
        self._next = 0

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def exchange(self, said: Mapping[str, Any], most_s: float) -> list[Said | None]:
        """What all have said, by rank. Raises Apart. In the first round the table may not be there yet, and may be lost and found again."""
        number, until = self._next, time.monotonic() + most_s
        self._next += 1
        word = {"round": number, "said": dict(said)}
        trouble = ""
        while True:
            try:
                if self._socket is None:
                    self._socket = self._sit()
                    self._rest = b""
                    self._say(self._hello)
                    self._say(word)
                elif number and not trouble:
                    self._say(word)
                return self._answer(number, until)
            except (OSError, ValueError) as problem:
                trouble = str(problem) or type(problem).__name__
                self.close()
                self._socket = None
            if number or time.monotonic() > until:
                raise Apart(trouble)
            self._pause(AGAIN_S)

    def _sit(self) -> socket.socket:
        made = socket.create_connection((self._address, self._port), timeout=CONNECTS_S)
        _alive(made)
        return made

    def _say(self, word: Said) -> None:
        assert self._socket is not None
        self._socket.sendall(json.dumps(word).encode() + b"\n")

    def _answer(self, number: int, until: float) -> list[Said | None]:
        assert self._socket is not None
        while b"\n" not in self._rest:
            if time.monotonic() > until:
                raise TimeoutError("not all nodes answered in time")
            self._pause(0.0)
            if select.select([self._socket], [], [], LOOK_S)[0]:
                chunk = self._socket.recv(CHUNK)
                if not chunk:
                    raise ConnectionError("rank 0 has closed the connection")
                self._rest += chunk
                if len(self._rest) > self._nodes * MOST_BYTES + CHUNK:
                    raise ValueError("rank 0 sent more bytes than a round has")
        line, _, self._rest = self._rest.partition(b"\n")
        return _all(_object(line), number, self._nodes)


def _all(answer: Said, number: int, nodes: int) -> list[Said | None]:
    said = answer.get("said")
    if answer.get("round") != number or not isinstance(said, list) or len(said) != nodes:
        raise ValueError("rank 0 sent an answer that does not fit the round")
    return [one if isinstance(one, dict) else None for one in said]


def _object(line: bytes) -> Said:
    """Raises ValueError."""
    try:
        read: object = json.loads(line)
    except RecursionError:
        raise ValueError("too deep") from None
    if not isinstance(read, dict):
        raise ValueError("no object")
    return {str(key): value for key, value in read.items()}


def _alive(connection: socket.socket) -> None:
    """A node may wait for half an hour for its peers, and the network forgets connections on which nothing passes."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 20), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):  # Linux has them
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
