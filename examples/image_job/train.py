"""The least training that is an image by itself: fits a line in plain Python, and goes on from its checkpoint.

It runs the same on a laptop, as a job, and as a line of a grid: the folders have SageMaker's names where no variable says otherwise.
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

CHECKPOINT = Path(os.environ.get("CHECKPOINT_DIR", "/opt/ml/checkpoints"), "line.json")
RESULTS = Path(os.environ.get("ARTIFACTS_DIR") or os.environ.get("SM_MODEL_DIR", "/opt/ml/model"))
PROGRESS = os.environ.get("PROGRESS_FILE", "")
RANK = int(os.environ.get("NODE_RANK", "0"))


def put(path: Path, value: object) -> None:
    """Lets the file appear as a whole."""
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_text(json.dumps(value))
    beside.replace(path)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seconds-per-step", type=float, default=0.05)
    options = parser.parse_args()
    chance = random.Random(7)
    points = [(x, 3 * x - 1 + chance.gauss(0, 0.1)) for x in (chance.uniform(-1, 1) for _ in range(200))]
    line = {"step": 0, "slope": 0.0, "shift": 0.0}
    if CHECKPOINT.exists():
        line = json.loads(CHECKPOINT.read_text())
        print(f"goes on from step {line['step']}")
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stop.append(number))
    error = 1.0
    while line["step"] < options.steps and not stop:
        time.sleep(options.seconds_per_step)
        off = [(line["slope"] * x + line["shift"] - y, x) for x, y in points]
        line["slope"] -= 0.5 * sum(gap * x for gap, x in off) / len(points)
        line["shift"] -= 0.5 * sum(gap for gap, _ in off) / len(points)
        line["step"] += 1
        error = sum(gap * gap for gap, _ in off) / len(points)
        if RANK == 0:
            put(CHECKPOINT, line)
            if PROGRESS:
                progress = {
                    "step": line["step"],
                    "world_size": int(os.environ.get("NUM_NODES", "1")),
                    "metric": 1 - error,
                }
                put(Path(PROGRESS), progress | {"checkpoint": line["step"]})
        print(f"step {line['step']} error={error:.4f}", flush=True)
    if stop:
        return 143
    put(RESULTS / f"line-{RANK}.json", line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
