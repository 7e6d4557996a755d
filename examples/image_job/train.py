"""The least training that is an image by itself: fits a line in plain Python, and goes on from its checkpoint.

It runs the same on a laptop, as a job on EC2, and as a line of a grid (line.jsonl): the folders have SageMaker's names where no variable
says otherwise, the machines are in SageMaker's file where no variable counts them, and the metric is printed as well as written.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

BASE = Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
CHECKPOINT = Path(os.environ.get("CHECKPOINT_DIR", BASE / "checkpoints"), "line.json")
RESULTS = Path(os.environ.get("ARTIFACTS_DIR", BASE / "model"))
PROGRESS = os.environ.get("PROGRESS_FILE", "")


def place() -> tuple[int, int]:
    """Returns which machine this is, from 0, and how many there are: of a job, of a line, or one."""
    if "NODE_RANK" in os.environ:
        return int(os.environ["NODE_RANK"]), int(os.environ["NUM_NODES"])
    hosts = BASE / "input/config/resourceconfig.json"
    if not hosts.exists():
        return 0, 1
    said = json.loads(hosts.read_text())
    return said["hosts"].index(said["current_host"]), len(said["hosts"])


RANK, WORLD = place()


def put(path: Path, value: object) -> None:
    """Lets the file appear as a whole."""
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_text(json.dumps(value))
    beside.replace(path)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seconds-per-step", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    points = [(x, 3 * x - 1 + chance.gauss(0, 0.1)) for x in (chance.uniform(-1, 1) for _ in range(200))]
    line = {"step": 0, "slope": 0.0, "shift": 0.0}
    if CHECKPOINT.exists():
        line = json.loads(CHECKPOINT.read_text())
        print(f"goes on from step {line['step']}")
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stop.append(number))
    metric = 0.0
    while line["step"] < options.steps and not stop:
        time.sleep(options.seconds_per_step)
        off = [(line["slope"] * x + line["shift"] - y, x) for x, y in points]
        line["slope"] -= 0.5 * sum(gap * x for gap, x in off) / len(points)
        line["shift"] -= 0.5 * sum(gap for gap, _ in off) / len(points)
        line["step"] += 1
        metric = round(1 - sum(gap * gap for gap, _ in off) / len(points), 6)
        if RANK == 0:
            put(CHECKPOINT, line)
            if PROGRESS:
                progress = {"step": line["step"], "world_size": WORLD, "metric": metric}
                put(Path(PROGRESS), progress | {"checkpoint": line["step"]})
        print(f"step {line['step']} metric={metric}", flush=True)
    if stop:
        return 143
    put(RESULTS / f"line-{RANK}.json", line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
