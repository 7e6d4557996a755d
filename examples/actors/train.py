"""Learns to walk along a corridor with a learner and actors, as reinforcement learning is run on several machines.

The learner holds the table of values and ends once it has learned enough; the actors walk by what it knew last, send what they
met, and end once it is gone. They find the learner by CLUSTER_SPEC. It needs nothing but Python.
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
from contextlib import suppress
from pathlib import Path
from typing import Any

CLUSTER: dict[str, list[str]] = json.loads(os.environ["CLUSTER_SPEC"])
ROLE, INDEX = os.environ["ROLE"], int(os.environ["ROLE_RANK"])
LENGTH = 8
"""Places of the corridor; the reward is at its end."""
LEFT, RIGHT = 0, 1
RATE, DISCOUNT, CURIOUS = 0.3, 0.9, 0.2
WAIT_S = 120.0
Values = list[list[float]]
Walk = list[tuple[int, int, float, int]]
"""Place, direction, reward and next place of each step."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=200, help="of all actors together")
    parser.add_argument("--seconds-per-episode", type=float, default=0.0, help="at least so long, to see a longer job")
    options = parser.parse_args()
    print(f"{ROLE} {INDEX} of {json.dumps(CLUSTER)}", flush=True)
    return learn(options.episodes) if ROLE == "learner" else act(options.seconds_per_episode)


class Table:
    """What the learner knows, and from whom."""

    def __init__(self, values: Values, episodes: int) -> None:
        self.values, self.episodes = values, episodes
        self.by_actor: dict[str, int] = {}
        self.changed = threading.Condition()

    def take(self, actor: str, walk: Walk) -> Values:
        """Learns from a walk (Q-learning), and returns the values for the next one."""
        with self.changed:
            for place, way, reward, after in walk:
                best = 0.0 if after == LENGTH - 1 else max(self.values[after])
                self.values[place][way] += RATE * (reward + DISCOUNT * best - self.values[place][way])
            self.episodes += bool(walk)
            self.by_actor[actor] = self.by_actor.get(actor, 0) + bool(walk)
            self.changed.notify_all()
            return [list(row) for row in self.values]


def learn(episodes: int) -> int:
    table = Table(*restore())

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                said = json.loads(line)
                self.wfile.write(json.dumps(table.take(said["actor"], said["walk"])).encode() + b"\n")

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    host, _, port = CLUSTER["learner"][INDEX].rpartition(":")
    with Server((host, int(port)), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with table.changed:
            while table.episodes < episodes:
                table.changed.wait(timeout=1.0)
                save(table.values, table.episodes)
        server.shutdown()
    ways = [RIGHT if row[RIGHT] > row[LEFT] else LEFT for row in table.values[:-1]]
    found = {"episodes": table.episodes, "by_actor": table.by_actor, "ways": ways}
    Path(os.environ["ARTIFACTS_DIR"], "learned.json").write_text(json.dumps(found))
    print(f"learned from {table.episodes} episodes of {len(table.by_actor)} actors: {ways}", flush=True)
    return 0


def act(pause_s: float) -> int:
    """Walks until the learner is gone, or somebody ends it."""
    chance, walk = random.Random(INDEX), Walk()
    with suppress(ConnectionError), connect(CLUSTER["learner"][0]).makefile("rw", encoding="utf-8") as learner:
        while True:
            learner.write(json.dumps({"actor": f"{ROLE} {INDEX}", "walk": walk}) + "\n")
            learner.flush()
            if not (line := learner.readline()):
                break
            walk = take_walk(json.loads(line), chance)
            time.sleep(pause_s)
    print("the learner is gone", flush=True)
    return 0


def take_walk(values: Values, chance: random.Random) -> Walk:
    place, walk = 0, Walk()
    while place < LENGTH - 1 and len(walk) < 200:
        left, right = values[place]
        way = chance.choice((LEFT, RIGHT)) if chance.random() < CURIOUS or left == right else int(right > left)
        after = max(0, place + (1 if way == RIGHT else -1))
        walk.append((place, way, 1.0 if after == LENGTH - 1 else 0.0, after))
        place = after
    return walk


def connect(address: str) -> socket.socket:
    """Waits for the learner: nodes do not boot at the same time."""
    host, _, port = address.rpartition(":")
    until = time.monotonic() + WAIT_S
    while True:
        try:
            return socket.create_connection((host, int(port)), timeout=60)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def restore() -> tuple[Values, int]:
    file = Path(os.environ["CHECKPOINT_DIR"], "values.json")
    if not file.exists():
        return [[0.0, 0.0] for _ in range(LENGTH)], 0
    saved = json.loads(file.read_text())
    print(f"goes on from episode {saved['episodes']}", flush=True)
    return saved["values"], saved["episodes"]


def save(values: Values, episodes: int) -> None:
    """Replaces the checkpoint, and then says which one it is."""
    replace(Path(os.environ["CHECKPOINT_DIR"], "values.json"), {"values": values, "episodes": episodes})
    best = max(values[0])
    replace(Path(os.environ["PROGRESS_FILE"]), {"step": episodes, "checkpoint": episodes, "metric": best})


def replace(file: Path, content: dict[str, Any]) -> None:
    new = file.with_name(f".{file.name}.new")
    new.write_text(json.dumps(content))
    new.replace(file)


if __name__ == "__main__":
    raise SystemExit(main())
