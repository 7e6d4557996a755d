"""Fits a line through points with a parameter server: workers pull the weights over the network, and push what they learn.

Every node of the job runs this program, and does what its role says (CLUSTER_SPEC and TF_CONFIG, as TensorFlow documents them):
the chief and the workers train, a ps holds a part of the weights and never ends by itself, and the evaluator looks on. It needs nothing
but Python; a real training has tensors where this one has lists.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import socketserver
import threading
import time
from pathlib import Path
from typing import Any

CLUSTER: dict[str, list[str]] = json.loads(os.environ["CLUSTER_SPEC"])
TASK: dict[str, Any] = json.loads(os.environ["TF_CONFIG"])["task"]
TRUTH = [3.0, -2.0, 0.5, 1.0]
"""The weights that are to be found; the last one belongs to a constant."""
WAIT_S = 120.0
"""How long a server may take to come up."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300, help="of all trainers together")
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--seconds-per-step", type=float, default=0.0, help="at least so long, to see a longer job")
    parser.add_argument("--evaluations", type=int, default=5)
    parser.add_argument("--fail-evaluation", type=int, default=0, help="the evaluator exits with code 3 there")
    parser.add_argument(
        "--fail-server", type=int, default=0, help="servers exit with code 75 at this step of the first attempt"
    )
    options = parser.parse_args()
    print(f"{TASK['type']} {TASK['index']} of {json.dumps(CLUSTER)}", flush=True)
    if TASK["type"] == "ps":
        return serve(options.fail_server if os.environ.get("ATTEMPT", "1") == "1" else 0)
    servers = Servers(CLUSTER["ps"])
    if TASK["type"] == "evaluator":
        return evaluate(servers, options.evaluations, options.fail_evaluation)
    return train(servers, options, is_chief=TASK["type"] in ("chief", "master"))


# The parameter server


class Shard:
    """The weights of one server, and how often they were changed."""

    def __init__(self) -> None:
        self.weights: list[float] | None = None
        self.version = 0
        self._changing = threading.Lock()

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        with self._changing:
            if asked["do"] == "set":
                self.weights, self.version = asked["weights"], asked["version"]
            elif asked["do"] == "push" and self.weights is not None:
                self.weights = [one - step for one, step in zip(self.weights, asked["steps"], strict=True)]
                self.version += 1
            return {"weights": self.weights, "version": self.version}


def serve(fails_at: int) -> int:
    """Serves until somebody ends it, or fails at a step, if asked to."""
    shard = Shard()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                self.wfile.write(json.dumps(shard.answer(json.loads(line))).encode() + b"\n")
                if 0 < fails_at <= shard.version:
                    print("the server fails, as it was asked to", flush=True)
                    os._exit(75)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    host, _, port = CLUSTER["ps"][TASK["index"]].rpartition(":")
    with Server((host, int(port)), Handler) as server:
        print(f"serves at {host}:{port}", flush=True)
        server.serve_forever()
    return 0


class Servers:
    """All parameter servers, as a client of theirs sees them: weight n lies on server n modulo their number."""

    def __init__(self, addresses: list[str]) -> None:
        self._files = [connect(one).makefile("rw", encoding="utf-8") for one in addresses]
        self.number = len(addresses)

    def pull(self) -> tuple[list[float], int]:
        """Returns the weights, and the version of those on the first server; waits until the chief has set them."""
        while True:
            parts = [self._ask(place, {"do": "pull"}) for place in range(self.number)]
            if all(part["weights"] is not None for part in parts):
                return self._join([part["weights"] for part in parts]), parts[0]["version"]
            time.sleep(0.05)

    def push(self, steps: list[float]) -> None:
        for place in range(self.number):
            self._ask(place, {"do": "push", "steps": steps[place :: self.number]})

    def set(self, weights: list[float], version: int) -> None:
        for place in range(self.number):
            self._ask(place, {"do": "set", "weights": weights[place :: self.number], "version": version})

    def _join(self, parts: list[list[float]]) -> list[float]:
        return [parts[place % self.number][place // self.number] for place in range(sum(map(len, parts)))]

    def _ask(self, place: int, what: dict[str, Any]) -> dict[str, Any]:
        file = self._files[place]
        file.write(json.dumps(what) + "\n")
        file.flush()
        if not (line := file.readline()):
            raise ConnectionError(f"parameter server {place} is gone")
        answer: dict[str, Any] = json.loads(line)
        return answer


def connect(address: str) -> socket.socket:
    """Waits for a server: nodes do not boot at the same time."""
    host, _, port = address.rpartition(":")
    until = time.monotonic() + WAIT_S
    while True:
        try:
            return socket.create_connection((host, int(port)), timeout=30)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


# Those that train, and the one that looks on


def draw(chance: random.Random) -> tuple[list[float], float]:
    """Draws a point, and what the true weights make of it."""
    point = [chance.uniform(-1, 1) for _ in TRUTH[:-1]] + [1.0]
    return point, sum(one * weight for one, weight in zip(point, TRUTH, strict=True))


def find_loss(weights: list[float]) -> float:
    chance = random.Random(0)
    errors = []
    for _ in range(200):
        point, wanted = draw(chance)
        errors.append((sum(one * weight for one, weight in zip(point, weights, strict=True)) - wanted) ** 2)
    return sum(errors) / len(errors)


def train(servers: Servers, options: argparse.Namespace, *, is_chief: bool) -> int:
    chance = random.Random(f"{TASK['type']} {TASK['index']}")
    if is_chief:
        servers.set(*restore())
    own = 0
    while True:
        weights, version = servers.pull()
        if is_chief and version % 10 == 0:
            save(weights, version)
        if version >= options.steps:
            break
        total = [0.0] * len(TRUTH)
        for _ in range(16):
            point, wanted = draw(chance)
            error = sum(one * weight for one, weight in zip(point, weights, strict=True)) - wanted
            total = [one + 2 * error * value / 16 for one, value in zip(total, point, strict=True)]
        servers.push([options.rate * one for one in total])
        own += 1
        time.sleep(options.seconds_per_step)
    if is_chief:
        save(weights, version)
    found = {"role": TASK["type"], "index": TASK["index"], "steps": own, "version": version, "loss": find_loss(weights)}
    Path(os.environ["ARTIFACTS_DIR"], "trained.json").write_text(json.dumps(found))
    print(f"made {own} of {version} steps, loss {found['loss']:.6f}", flush=True)
    return 0


def evaluate(servers: Servers, times: int, fails_at: int) -> int:
    for number in range(1, times + 1):
        weights, version = servers.pull()
        print(f"evaluation {number}: loss {find_loss(weights):.6f} at step {version}", flush=True)
        if number == fails_at:
            print("the evaluator fails, as it was asked to", flush=True)
            return 3
        time.sleep(0.2)
    return 0


def restore() -> tuple[list[float], int]:
    file = Path(os.environ["CHECKPOINT_DIR"], "weights.json")
    if not file.exists():
        return [0.0] * len(TRUTH), 0
    saved = json.loads(file.read_text())
    print(f"goes on from step {saved['version']}", flush=True)
    return saved["weights"], saved["version"]


def save(weights: list[float], version: int) -> None:
    """Replaces the checkpoint, and then says which one it is."""
    replace(Path(os.environ["CHECKPOINT_DIR"], "weights.json"), {"weights": weights, "version": version})
    told = {"step": version, "checkpoint": version, "metric": find_loss(weights)}
    replace(Path(os.environ["PROGRESS_FILE"]), told)


def replace(file: Path, content: dict[str, Any]) -> None:
    new = file.with_name(f".{file.name}.new")
    new.write_text(json.dumps(content))
    new.replace(file)


if __name__ == "__main__":
    raise SystemExit(main())
