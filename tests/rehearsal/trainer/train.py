"""A trainer without a framework: steps in lockstep, checkpoints, progress, and the ways to end, with its peers or by itself.

WRITES says who writes checkpoints, and who says that they are complete: nobody says it of rank 0's one file (by default), `rank0` does,
`every` rank does of its own two files, or rank 0 does for all after a `barrier`. A rank that finds files of different steps fails.

As in every collective, no rank finishes a step before all have: a rank whose peer is gone dies of the broken connection after
BREAKS_S seconds (`never`: it hangs), one whose peer is frozen waits. FAIL_AT makes the rank FAIL_RANK fail by itself at that step.
ENDLESS_ATTEMPTS are so many first attempts that train until something ends them, however slow the machine is that is to do it; the next
one makes the steps of its command after those that it restored. ENDS_AFTER is a file without which a job of one node trains on.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

RANK, NODES = int(os.environ["NODE_RANK"]), int(os.environ["NUM_NODES"])
CHECKPOINTS, WRITES = Path(os.environ["CHECKPOINT_DIR"]), os.environ.get("WRITES", "nobody")
ARTIFACTS = Path(os.environ["ARTIFACTS_DIR"])
PROGRESS = Path(os.environ["PROGRESS_FILE"])
BESIDE = 1000
"""Added to MASTER_PORT: all nodes of a rehearsal are on one computer, where PyTorch, in another job, listens there on every address and
does not wait for the port. Rehearsals side by side have ports that are nearer to each other (localaws.ports)."""


NOTICES_S = (0.01, 0.1, 1.0, 6.0, 60.0)
"""When a trainer notices that a peer is gone: gloo within milliseconds, NCCL after up to ten minutes; a rehearsal is ten times as fast."""


class Peers:
    """The other ranks, met at the master's address."""

    def __init__(self) -> None:
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]) + BESIDE)
        self._sockets: list[socket.socket] = []
        if RANK == 0:
            with socket.create_server(address) as server:
                self._sockets = [server.accept()[0] for _ in range(NODES - 1)]
            self._tell_all()
        else:
            self._sockets = [self._find(address)]

    def step(self) -> None:
        """Returns when every rank has come so far. Raises ConnectionError where one is gone."""
        if RANK:
            self._sockets[0].sendall(b".")
        for peer in self._sockets:
            if not peer.recv(1):
                raise ConnectionResetError("a peer closed its connection")
        if RANK == 0:
            self._tell_all()

    def _tell_all(self) -> None:
        for peer in self._sockets:
            peer.sendall(b".")

    @staticmethod
    def _find(address: tuple[str, int]) -> socket.socket:
        while True:
            try:
                peer = socket.create_connection(address, timeout=1)
                # The master answers when all have come: whoever left before would be counted, and missed at the first step.
                peer.settimeout(None)
                if peer.recv(1):
                    return peer
            except OSError:
                time.sleep(0.1)


def broken(problem: ConnectionError) -> int:
    """A collective that breaks: it says so after a while, or never."""
    told = os.environ.get("BREAKS_S", "")
    notices_s = random.Random(f"{os.environ['JOB_ID']}{RANK}").choice(NOTICES_S)
    time.sleep(1e6 if told == "never" else float(told or notices_s))
    print(f"rank {RANK}: {type(problem).__name__}: {problem}", flush=True)
    return 1


def put(path: Path, value: dict[str, Any]) -> None:
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_text(json.dumps(value))
    beside.replace(path)


def restored() -> int:
    """The step to go on from. Raises ValueError where files are of different steps, or some are missing."""
    found = {file.name: json.loads(file.read_text())["step"] for file in sorted(CHECKPOINTS.glob("*.json"))}
    shards = NODES * 2 if WRITES in ("every", "barrier") else 1
    if found and (len(set(found.values())) != 1 or len(found) != shards):
        raise ValueError(f"restored a mix: {found}")
    return max(found.values(), default=0)


def save(peers: Peers, step: int, steps: int) -> None:
    """Writes the checkpoint of a step, and whoever says so, says that it is complete."""
    told = {"step": step, "world_size": NODES, "metric": step / steps}
    if WRITES in ("every", "barrier"):
        put(CHECKPOINTS / f"a-{RANK}.json", {"step": step})
        time.sleep(random.uniform(0.0, 0.1))
        put(CHECKPOINTS / f"b-{RANK}.json", {"step": step})
        if WRITES == "barrier":
            peers.step()
    elif RANK == 0:
        put(CHECKPOINTS / "state.json", {"step": step})
    if RANK == 0 or WRITES == "every":
        put(PROGRESS, told if WRITES == "nobody" else {**told, "checkpoint": step})


def main(steps: int, pause: float, code: int) -> int:
    peers = Peers()
    done = restored()
    if endless := int(os.environ.get("ENDLESS_ATTEMPTS", "0")):
        steps = sys.maxsize if int(os.environ["ATTEMPT"]) <= endless else done + steps
    print(f"rank {RANK} of {NODES}, from step {done}", flush=True)
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stop.append(number))
    awaited = os.environ.get("ENDS_AFTER", "")
    for step in count(done + 1):
        if step > steps and (not awaited or Path(awaited).exists()):
            break
        time.sleep(pause)
        if (step, RANK) == (int(os.environ.get("FAIL_AT", "-1")), int(os.environ.get("FAIL_RANK", "0"))):
            raise ValueError("the code's own mistake")
        try:
            peers.step()
        except ConnectionError as problem:
            return 143 if stop else broken(problem)
        try:
            if step % int(os.environ.get("SAVES_EVERY", "1")) == 0:
                save(peers, step, steps)
        except ConnectionError as problem:
            return 143 if stop else broken(problem)
        if stop:
            print(f"rank {RANK} stops at step {step}", flush=True)
            return 143
    for number in range(int(os.environ.get("MORE_ARTIFACTS", "0"))):
        put(ARTIFACTS / f"more-{number}.json", {"number": number})
    put(ARTIFACTS / f"result-{RANK}.json", {"steps": steps, "from": done})
    print(f"rank {RANK} is done, the last line", flush=True)
    return code if RANK == NODES - 1 else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
