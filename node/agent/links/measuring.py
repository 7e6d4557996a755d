"""Runs this node's part of an all-reduce in processes of its own, within a time, and reads what they say."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from agent.links import collective
from agent.links.facts import Measured, Reached, bus_gbps

SCRIPT = Path(collective.__file__)
LOOK_S = 0.2
GONE_S = 20.0
"""How long processes that were killed may take to be gone: a driver first takes back their GPUs' memory."""
MOST_BYTES = 64 * 1024
"""Of each of the two outputs; the rest is read and dropped."""
MOST_WORDS = 300
MOST_PROCESSES = 64
CHATTER = "NCCL INFO"
NETWORK = re.compile(r"NCCL INFO Using network ([\w .-]{1,40})")
PROVIDER = re.compile(r"NET/OFI Selected [Pp]rovider is (\w{1,20})")
"""Of libfabric, which may also go over TCP: a line of AWS's plugin for NCCL."""


@dataclass(frozen=True)
class Group:
    """The nodes of an all-reduce, by their ranks in the attempt, and where its first one listens."""

    ranks: tuple[int, ...]
    address: str
    port: int


@dataclass
class Output:
    """What the processes have said so far."""

    lines: bytearray = field(default_factory=bytearray)
    words: bytearray = field(default_factory=bytearray)


def measure(
    python: Path,
    environment: Mapping[str, str],
    folder: Path,
    group: Group,
    rank: int,
    *,
    most_s: float,
    pause: Callable[[float], None],
) -> Measured:
    """What became of this node's part. `pause` waits; whatever it raises ends the processes first. Nothing of them is left when this
    returns, unless one has left their group, or a driver holds it for longer than GONE_S."""
    options = (group.address, group.port, group.ranks.index(rank), len(group.ranks), round(most_s, 3))
    heard = Output()
    try:
        with running([str(python), str(SCRIPT), *map(str, options)], environment, folder, heard) as process:
            until = time.monotonic() + most_s
            while process.poll() is None and time.monotonic() < until:
                pause(LOOK_S)
            code = process.poll()
    except OSError as problem:
        return Measured(outcome=Reached.UNREADY, words=f"it cannot be started: {problem}"[:MOST_WORDS])
    return understood(bytes(heard.lines), bytes(heard.words), code)


@contextmanager
def running(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, heard: Output
) -> Iterator[subprocess.Popen[bytes]]:
    """The command in a process group of its own, which is killed at the end."""
    process = subprocess.Popen(
        list(command),
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    pipes = ((process.stdout, heard.lines), (process.stderr, heard.words))
    readers = [threading.Thread(target=_read, args=pair, name="links", daemon=True) for pair in pipes]
    for reader in readers:
        reader.start()
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        until = time.monotonic() + GONE_S
        with suppress(subprocess.TimeoutExpired):
            process.wait(GONE_S)
        for reader in readers:  # a pipe's end proves that no process is left that could write into it
            reader.join(max(0.0, until - time.monotonic()))


def _read(pipe: IO[bytes], heard: bytearray) -> None:
    while chunk := os.read(pipe.fileno(), 8192):
        heard += chunk[: max(0, MOST_BYTES - len(heard))]


def understood(lines: bytes, words: bytes, code: int | None) -> Measured:
    """What the outputs of the processes say; `code` is None where they had not ended in time. They run code of the job's environment, and
    may say anything."""
    said = list(_objects(lines))
    first = next((one for one in said if "processes" in one), {})
    processes, gpus = _whole(first.get("processes")), _whole(first.get("gpus"))
    ready = len({place for one in said if (place := _whole(one.get("ready"), least=0)) is not None})
    figures = [gbps for one in said if (gbps := _gbps(one)) is not None]
    text = words.decode("utf-8", "replace")
    named = (found[1].strip() for pattern in (NETWORK, PROVIDER) if (found := pattern.search(text)))
    network = ", ".join(named)
    if figures:
        return Measured(outcome=Reached.DONE, gbps=round(min(figures), 4), gpus=gpus or 0, network=network)
    if processes is None or ready < processes:
        outcome, late = Reached.UNREADY, "PyTorch was not ready in time"
    else:
        outcome, late = (Reached.STUCK if code is None else Reached.FAILED), "it has not ended in time"
    why = late if code is None else _last(text) or f"it ended with code {code}"
    return Measured(outcome=outcome, gpus=gpus or 0, network=network, words=why[:MOST_WORDS])


def _objects(lines: bytes) -> Iterator[dict[str, Any]]:
    for line in lines.splitlines():
        with suppress(ValueError, RecursionError):
            read: object = json.loads(line)
            if isinstance(read, dict):
                yield {str(key): value for key, value in read.items()}


def _whole(value: object, least: int = 1) -> int | None:
    """A number of processes or of GPUs, or the place of one; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST_PROCESSES:
        return None
    return value


def _gbps(said: Mapping[str, Any]) -> float | None:
    seconds, size, ranks = (said.get(name) for name in ("seconds", "bytes", "ranks"))
    if not isinstance(seconds, float) or not isinstance(size, int) or not isinstance(ranks, int):
        return None
    if not (math.isfinite(seconds) and 1e-7 < seconds < 1e5 and 0 < size < 2**40 and 1 < ranks < 2**20):
        return None
    return bus_gbps(size, seconds, ranks)


def _last(text: str) -> str:
    """The last line that says something, and that NCCL has not written by the way."""
    lines = (line.strip() for line in reversed(text.splitlines()))
    return next((line for line in lines if line and CHATTER not in line), "")
