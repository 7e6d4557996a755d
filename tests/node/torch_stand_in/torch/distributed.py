"""Collectives of the stand-in: every process tells rank 0's how slow it is, and all take as long as the slowest."""

# ruff: noqa: ARG001  (the signatures are PyTorch's)

from __future__ import annotations

import os
import socket
import threading
import time
from datetime import timedelta
from typing import Any

import __main__
from torch import MODE, Tensor, _tell

DELAY_S = float(os.environ.get("TORCH_DELAY", "0"))
LEAST_S = 0.001
PEERS: list[Any] = []


class Clock:
    """In the place of the module `time` of what measures: an all-reduce takes its delay, however busy the computer is."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


CLOCK = Clock()


class ReduceOp:
    MAX = "max"


def is_available() -> bool:
    return MODE != "without distributed"


def is_nccl_available() -> bool:
    return True


class TCPStore:
    def __init__(
        self,
        address: str,
        port: int,
        world: int,
        is_master: bool,
        *,
        timeout: timedelta,
        master_listen_fd: int | None,
        **options: Any,
    ) -> None:
        if MODE == "old" and options:
            raise TypeError("unexpected keyword argument 'use_libuv'")
        if is_master:
            threading.Thread(target=_serve, args=(master_listen_fd, world), daemon=True).start()
        until = time.monotonic() + timeout.total_seconds()
        while True:
            try:
                self.lines = socket.create_connection((address, port)).makefile("rw")
                return
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)


def _serve(descriptor: int | None, world: int) -> None:
    """All of a step, then the largest to all. One that is gone ends it for all."""
    with socket.socket(fileno=descriptor) as server:
        peers = [server.accept()[0].makefile("rw") for _ in range(world)]
    while all(told := [peer.readline() for peer in peers]):
        for peer in peers:
            peer.write(f"{max(map(float, told))}\n")
            peer.flush()
    for peer in peers:
        peer.close()


def init_process_group(backend: str, *, store: TCPStore, rank: int, world_size: int, timeout: timedelta) -> None:
    PEERS.append(store.lines)
    vars(__main__).update(ENOUGH_S=0.5, time=CLOCK)  # one try of a slow all-reduce says as much as four


def all_reduce(values: Tensor, op: str = "sum") -> None:
    if op == ReduceOp.MAX:
        values.values[0] = _largest(values.values[0])
        return
    if MODE == "dies":
        os._exit(9)
    if MODE == "fails":
        raise RuntimeError("NCCL error: unhandled system error")
    if MODE == "stuck":
        _tell("stuck")
        time.sleep(10_000)
    CLOCK.now += max(LEAST_S, _largest(DELAY_S))


def _largest(value: float) -> float:
    (lines,) = PEERS
    lines.write(f"{value}\n")
    lines.flush()
    if not (answer := lines.readline()):
        raise ConnectionResetError("Connection closed by peer")
    return float(answer)
