"""Fits a softmax regression to scikit-learn's handwritten digits with MPI: every process has a part of the images, and an allreduce adds
up what they learn. The sums are over all images, so the result is the same however many processes there are.

It runs as a job with `"launcher": "mpi"` (job.json), and in an image as a line of a grid with `"distribution": "mpi"` (line.jsonl):
the folders have SageMaker's names where no variable says otherwise, and the metric is printed as well as written.
SIGTERM at any process ends all of them after the same step, with a checkpoint.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

BASE = Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
CHECKPOINT = Path(os.environ.get("CHECKPOINT_DIR", BASE / "checkpoints"), "weights.npz")
RESULTS = Path(os.environ.get("ARTIFACTS_DIR", BASE / "model"))
PROGRESS = os.environ.get("PROGRESS_FILE", "")
WORLD = MPI.COMM_WORLD
Array = np.ndarray[Any, np.dtype[np.float64]]
asked: list[int] = []


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rate", type=float, default=0.5)
    parser.add_argument("--seconds-per-step", type=float, default=0.0, help="at least so long, to see a longer job")
    parser.add_argument("--fail-at-step", type=int, default=-1, help="the last process exits with code 3 there")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        images / 16.0, labels, test_size=0.2, random_state=0, stratify=labels
    )
    mine = slice(WORLD.rank, None, WORLD.size)
    part_x, part_y, count = train_x[mine], np.eye(10)[train_y[mine]], len(train_x)
    (weights, step), stops = restore(), False
    print(f"process {WORLD.rank} of {WORLD.size} has {len(part_x)} of {count} images, from step {step}", flush=True)
    while step < options.steps:
        began = time.monotonic()
        gradient = part_x.T @ (softmax(part_x @ weights) - part_y) / count
        weights -= options.rate * WORLD.allreduce(gradient)
        step += 1
        if step == options.fail_at_step and WORLD.rank == WORLD.size - 1:
            print(f"process {WORLD.rank} was asked to fail at step {step}", flush=True)
            os._exit(3)
        if stops := bool(WORLD.allreduce(len(asked), MPI.MAX)):
            # Another node gets its order later, and Python takes handlers away as it ends: SIGTERM would end all while one still saves.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            break
        if WORLD.rank == 0:
            save(weights, step, float((softmax(test_x @ weights).argmax(1) == test_y).mean()))
        time.sleep(max(0.0, options.seconds_per_step - (time.monotonic() - began)))
    accuracy = float((softmax(test_x @ weights).argmax(1) == test_y).mean())
    facts = {
        "process": WORLD.rank,
        "world_size": WORLD.size,
        "images": len(part_x),
        "accuracy": accuracy,
        "steps": step,
    }
    (RESULTS / f"process-{WORLD.rank}.json").write_text(json.dumps(facts))
    if WORLD.rank == 0:
        save(weights, step, accuracy)
        print(f"metric={accuracy:.6f}", flush=True)
    return 143 if stops else 0


def softmax(scores: Array) -> Array:
    """Probabilities of a row of scores each."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    found: Array = powers / powers.sum(axis=1, keepdims=True)
    return found


def restore() -> tuple[Array, int]:
    """Rank 0's checkpoint, which every process goes on from, or the beginning."""
    found = None
    if WORLD.rank == 0 and CHECKPOINT.exists():
        with np.load(CHECKPOINT) as kept:
            found = kept["weights"], int(kept["step"])
    return WORLD.bcast(found) or (np.zeros((64, 10)), 0)


def save(weights: Array, step: int, accuracy: float) -> None:
    """Lets the checkpoint appear as a whole, and names it."""
    CHECKPOINT.parent.mkdir(parents=True, exist_ok=True)
    beside = CHECKPOINT.with_name("weights.tmp.npz")
    np.savez(beside, weights=weights, step=step)
    beside.replace(CHECKPOINT)
    if PROGRESS:
        told = {"step": step, "world_size": WORLD.size, "metric": accuracy, "checkpoint": step}
        Path(f"{PROGRESS}.new").write_text(json.dumps(told))
        Path(f"{PROGRESS}.new").replace(PROGRESS)


if __name__ == "__main__":
    raise SystemExit(main())
