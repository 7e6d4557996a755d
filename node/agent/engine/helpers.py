"""Starts helpers, and gives them orders: each is a process with a few connections to S3 (`agent.engine.helper`).

One interpreter moves 0.5 to 1 GB/s whatever the network has, because its threads take turns.
"""

from __future__ import annotations

import json
import math
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

LINE_S = 85e6
"""Bytes a second that S3 gives a connection
(85 to 90 MB/s: docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance-design-patterns.html)."""
SPARE = 1.3
"""Connections for each that the network could feed: one waits for an answer between two parts."""
HELPER_S = 0.4e9
"""Bytes a second of one helper, so that it needs less than half of a processor."""
UNKNOWN_GBPS = 10.0
"""Of a machine whose network is not known: most that train have as much."""
LEAST_LINES, MOST_LINES = 4, 12
EACH = 48 * 1024 * 1024
"""Bytes for which one more helper is started: it needs some 50 ms until its first byte."""
ANSWER_S, END_S = 600.0, 2.0
"""How long an order may take, and how long a helper has to end itself."""
START = "import sys; sys.path[:] = sys.argv.pop(1).split(':'); from agent.engine.helper import main; main()"


class Crowd(NamedTuple):
    """How many helpers, with how many connections each."""

    helpers: int
    lines: int


def choose_crowd(size: int, gbps: float, processors: int, cores: float | None) -> Crowd:
    """Chooses for bytes that shall be moved, by a network of so many Gbit/s (0: not known). `cores`: the processors that may be used on
    average; None for all. No helpers where boto3 is done before they have started."""
    rate = (gbps or UNKNOWN_GBPS) * 1e9 / 8
    most = 2 * processors if cores is None else min(processors, math.ceil(2 * cores))
    helpers = min(math.ceil(rate / HELPER_S), most, size // EACH)
    if helpers < 1:
        return Crowd(0, 0)
    lines = math.ceil(SPARE * rate / LINE_S / helpers)
    return Crowd(helpers, max(LEAST_LINES, min(MOST_LINES, lines)))


class HelperFailed(RuntimeError):
    """A helper did not do what it was told, whatever the reason is; nothing is lost."""


class LineEnded(HelperFailed):
    """The helper has ended, or does not answer."""


class OrderLine:
    """One connection of a helper. For one thread at a time."""

    def __init__(self, orders: socket.socket) -> None:
        self._orders = orders
        self._orders.settimeout(ANSWER_S)

    def ask(self, order: dict[str, Any], file: int) -> dict[str, Any]:
        """Has an order obeyed with an open file. Raises LineEnded."""
        try:
            socket.send_fds(self._orders, [json.dumps(order).encode()], [file])
            answer = self._orders.recv(65536)
        except ConnectionError:  # it ended before it read the order (broken pipe), or with the order unread (reset)
            answer = b""
        except OSError as problem:
            raise LineEnded(f"a helper does not answer: {problem}") from None
        if not answer:
            raise LineEnded("a helper has ended")
        done: dict[str, Any] = json.loads(answer)
        return done

    def close(self) -> None:
        self._orders.close()


class Helpers:
    """Helpers for one send or one fetch; they end with it, and with the agent. Any thread may ask."""

    def __init__(self, crowd: Crowd, authorities: str, *, use: Callable[[float], None] = lambda _: None) -> None:
        """`authorities`: the file with those that are trusted. `use` receives the processor time that helpers took, in seconds."""
        self._use, self._free, self._lines = use, queue.SimpleQueue[OrderLine](), list[OrderLine]()
        self._turn, self._used_s = threading.Lock(), dict[int, float]()
        self._process: subprocess.Popen[bytes] | None = None
        self.problem = ""
        """Why bytes move without helpers, or with fewer; empty where none is missing."""
        if crowd.helpers:
            try:
                self._start(crowd, authorities)
            except OSError as problem:  # without memory for a process there are none
                self.problem = f"helpers cannot be started: {problem}"

    def _start(self, crowd: Crowd, authorities: str) -> None:
        """Starts the first helper, which makes the others: their library is loaded once."""
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(crowd.helpers * crowd.lines)]
        numbers = [theirs.fileno() for _, theirs in pairs]
        path = ":".join(dict.fromkeys([str(Path(__file__).parents[2]), *filter(None, sys.path)]))
        # -I and -S: nothing of a job's environment is read. Their nice is that of the thread that starts them.
        command = [sys.executable, "-I", "-S", "-c", START, path, authorities, str(crowd.lines), *map(str, numbers)]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=numbers, cwd="/", env={}
            )
            self._lines = [OrderLine(ours) for ours, _ in pairs]
        finally:
            for ours, theirs in pairs:
                theirs.close()
                if not self._lines:
                    ours.close()
        for number in range(crowd.lines):  # of each helper one, and then the next of each
            for line in self._lines[number :: crowd.lines]:
                self._free.put(line)

    def __enter__(self) -> Helpers:
        return self

    def __exit__(self, *_: object) -> None:
        for line in self._lines:
            line.close()
        if self._process is None:
            return
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def lines(self) -> int:
        """How many orders can be obeyed at a time."""
        return len(self._lines)

    def ask(self, order: dict[str, Any], file: int) -> dict[str, Any]:
        """Has an order obeyed by any helper. Raises HelperFailed, also where none is free: there are as many lines as threads, so one has
        ended then."""
        try:
            line = self._free.get_nowait()
        except queue.Empty:
            raise HelperFailed("no helper is left") from None
        try:
            done = line.ask(order, file)
        except LineEnded as problem:
            self.problem = str(problem)
            raise
        self._free.put(line)
        self._count(done["pid"], done["cpu_s"])
        if "problem" in done:
            raise HelperFailed(done["problem"])
        return done

    def _count(self, pid: int, cpu_s: float) -> None:
        with self._turn:
            more = cpu_s - self._used_s.get(pid, 0.0)
            self._used_s[pid] = max(cpu_s, self._used_s.get(pid, 0.0))
        self._use(max(0.0, more))


def count_processors() -> int:
    return len(os.sched_getaffinity(0))
