"""A regression with MPI and numpy alone, whose result is the same however many processes share the sums: STEPS, SECONDS a step, FAIL_AT.

ENDLESS_ATTEMPTS are so many first attempts that train until something ends them; the next one makes STEPS in all. As in every collective,
no process finishes a step before all have.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
CHECKPOINT = Path(os.environ["CHECKPOINT_DIR"], "weights.npz")
ARTIFACTS, PROGRESS = Path(os.environ["ARTIFACTS_DIR"]), Path(os.environ["PROGRESS_FILE"])
steps, pause, fails_at = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
endless = int(os.environ["ATTEMPT"]) <= int(os.environ.get("ENDLESS_ATTEMPTS", "0"))
asked: list[int] = []
signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))

chance = np.random.default_rng(7)
whole_x = chance.normal(size=(600, 8))
whole_y = whole_x @ np.arange(8.0) + chance.normal(size=600) / 10
part_x, part_y = whole_x[WORLD.rank :: WORLD.size], whole_y[WORLD.rank :: WORLD.size]
found = None
if WORLD.rank == 0 and CHECKPOINT.exists():
    with np.load(CHECKPOINT) as kept:
        found = kept["weights"], int(kept["step"])
weights, step = WORLD.bcast(found) or (np.zeros(8), 0)
print(f"process {WORLD.rank} of {WORLD.size} on node {os.environ['NODE_RANK']} begins at step {step}", flush=True)


def save() -> None:
    beside = CHECKPOINT.with_name("weights.tmp.npz")
    np.savez(beside, weights=weights, step=step)
    beside.replace(CHECKPOINT)
    told = {"step": step, "world_size": WORLD.size, "metric": round(float(weights.sum()), 9), "checkpoint": step}
    PROGRESS.with_suffix(".new").write_text(json.dumps(told))
    PROGRESS.with_suffix(".new").replace(PROGRESS)


while step < steps or endless:
    weights = weights - 0.1 * WORLD.allreduce(part_x.T @ (part_x @ weights - part_y) / len(whole_x))
    step += 1
    if step == fails_at and WORLD.rank == WORLD.size - 1:
        print("the data of the last process are broken", flush=True)
        os._exit(3)
    if WORLD.rank == 0:
        save()
    if WORLD.allreduce(len(asked), MPI.MAX):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print(f"process {WORLD.rank} saved as ordered at step {step}", flush=True)
        sys.exit(143)
    time.sleep(pause)
(ARTIFACTS / f"process-{WORLD.rank}.json").write_text(json.dumps({"sum": float(weights.sum()), "step": step}))
