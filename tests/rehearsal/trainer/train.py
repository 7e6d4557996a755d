"""A trainer without a framework: steps, checkpoints, progress, a meeting of all ranks, and the ways to end."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

RANK, NODES = int(os.environ["NODE_RANK"]), int(os.environ["NUM_NODES"])
CHECKPOINT = Path(os.environ["CHECKPOINT_DIR"]) / "state.json"
ARTIFACTS = Path(os.environ["ARTIFACTS_DIR"])
PROGRESS = Path(os.environ["PROGRESS_FILE"])
BESIDE = 1000
"""Added to MASTER_PORT: all nodes of a rehearsal are on one computer, where PyTorch, in another job, listens there on every address and
does not wait for the port. Rehearsals side by side have ports that are nearer to each other (rehearsal.ports)."""


def meet() -> int:
    """All ranks meet at the master's address; returns how many came."""
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]) + BESIDE)
    if RANK == 0:
        with socket.create_server(address) as server:
            others = [server.accept()[0] for _ in range(NODES - 1)]
            for other in others:
                other.sendall(bytes([NODES]))
                other.close()
        return NODES
    while True:
        try:
            with socket.create_connection(address, timeout=1) as peer:
                return peer.recv(1)[0]
        except (OSError, IndexError):
            time.sleep(0.1)


def put(path: Path, value: dict[str, Any]) -> None:
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_text(json.dumps(value))
    beside.replace(path)


def main(steps: int, pause: float, code: int) -> int:
    world = meet()
    done = json.loads(CHECKPOINT.read_text())["step"] if CHECKPOINT.exists() else 0
    print(f"rank {RANK} of {world}, from step {done}", flush=True)
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stop.append(number))
    for step in range(done + 1, steps + 1):
        time.sleep(pause)
        if RANK == 0:
            put(CHECKPOINT, {"step": step})
            put(PROGRESS, {"step": step, "world_size": world, "metric": step / steps})
        if stop:
            print(f"rank {RANK} stops at step {step}", flush=True)
            return 143
    for number in range(int(os.environ.get("MORE_ARTIFACTS", "0"))):
        put(ARTIFACTS / f"more-{number}.json", {"number": number})
    put(
        ARTIFACTS / f"result-{RANK}.json",
        {"steps": steps, "from": done, "odd": os.environ.get("ODD"), "arguments": sys.argv[4:]},
    )
    print(f"rank {RANK} is done, the last line", flush=True)
    return code if RANK == NODES - 1 else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
