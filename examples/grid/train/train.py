"""Trains a small network on handwritten digits as a SageMaker training job: one line of a grid, on one instance or several.

What it takes from SageMaker: hyperparameters as arguments, SM_CHANNEL_TRAINING (the line's data, `*.csv` files of 64 pixels and
a label), SM_MODEL_DIR, SM_HOSTS and SM_CURRENT_HOST, MASTER_ADDR and MASTER_PORT (of AWS's PyTorch images), or RANK and
WORLD_SIZE where torchrun starts it. Checkpoints lie where SageMaker keeps them in step with S3, so that a managed spot training
goes on where it was interrupted. The line `accuracy=... epoch=...` is what the manifest's metric definitions read.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

BASE = Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
CHECKPOINT = BASE / "checkpoints" / "digits.pt"
HOSTS: list[str] = json.loads(os.environ.get("SM_HOSTS", '["algo-1"]'))
RANK = int(os.environ.get("RANK", HOSTS.index(os.environ.get("SM_CURRENT_HOST", HOSTS[0]))))
WORLD = int(os.environ.get("WORLD_SIZE", len(HOSTS)))
LOCAL_RANK = int(os.environ.get("LOCAL_RANK", "0"))
HELD_OUT = 5
"""Every fifth image is not trained on."""


class Stop:
    """Set by SIGTERM: SageMaker gives 120 s, for a last checkpoint and the model."""

    asked = False

    @classmethod
    def on_sigterm(cls, *_: Any) -> None:
        cls.asked = True


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=32, help="images a process and step")
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--hidden", type=int, default=64, help="width of the hidden layer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--seconds-per-epoch", type=float, default=0.0, help="at least so long, to see a longer training"
    )
    parser.add_argument(
        "--fail-at-epoch", type=int, default=-1, help="exit with code 3 there, to see how a failure looks"
    )
    return parser.parse_args()


def main() -> int:
    options = arguments()
    signal.signal(signal.SIGTERM, Stop.on_sigterm)
    device = torch.device("cuda", LOCAL_RANK) if torch.cuda.is_available() else torch.device("cpu")
    if WORLD > 1:
        os.environ.setdefault("MASTER_ADDR", HOSTS[0])
        os.environ.setdefault("MASTER_PORT", "7777")
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", rank=RANK, world_size=WORLD)
    torch.manual_seed(options.seed)
    (images, labels), held_out = data(device)
    network = nn.Sequential(nn.Linear(64, options.hidden), nn.ReLU(), nn.Linear(options.hidden, 10)).to(device)
    model: nn.Module = nn.parallel.DistributedDataParallel(network) if WORLD > 1 else network
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    epoch = restore(network, optimizer, device)
    print(f"rank {RANK} of {WORLD} on {device}: {len(labels)} images, epoch {epoch}", flush=True)

    while epoch < options.epochs and not stopping(device):
        began = time.monotonic()
        if epoch == options.fail_at_epoch:
            print(f"rank {RANK}: asked to fail at epoch {epoch}", file=sys.stderr, flush=True)
            return 3
        train(model, optimizer, images, labels, batch=options.batch_size, seed=options.seed + epoch)
        epoch += 1
        if RANK == 0:
            print(f"accuracy={accuracy(network, *held_out):.4f} epoch={epoch}", flush=True)
            save({"model": network.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, CHECKPOINT)
        time.sleep(max(0.0, options.seconds_per_epoch - (time.monotonic() - began)))

    if RANK == 0:
        save(network.state_dict(), Path(os.environ["SM_MODEL_DIR"]) / "digits.pt")
    if WORLD > 1:
        dist.destroy_process_group()
    return 0


Pair = tuple[torch.Tensor, torch.Tensor]


def data(device: torch.device) -> tuple[Pair, Pair]:
    """This process's share of what is trained on, and what is held out."""
    files = sorted(Path(os.environ["SM_CHANNEL_TRAINING"]).rglob("*.csv"))
    table = np.concatenate([np.loadtxt(file, delimiter=",", dtype=np.float32, ndmin=2) for file in files])
    images = torch.tensor(table[:, :64] / 16.0, device=device)
    labels = torch.tensor(table[:, 64], dtype=torch.long, device=device)
    held_out = torch.arange(len(labels), device=device) % HELD_OUT == 0
    mine = (~held_out).nonzero().flatten()[RANK::WORLD]
    return (images[mine], labels[mine]), (images[held_out], labels[held_out])


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    images: torch.Tensor,
    labels: torch.Tensor,
    *,
    batch: int,
    seed: int,
) -> None:
    """One epoch. Every process takes as many steps as the others, or the others would wait for it."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed)).to(labels.device)
    steps = len(labels) // batch if WORLD == 1 else common(len(labels), labels.device) // batch
    for step in range(max(1, steps)):
        chosen = order[step * batch : (step + 1) * batch]
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images[chosen]), labels[chosen]).backward()
        optimizer.step()


def common(number: int, device: torch.device) -> int:
    """The least of all processes' numbers."""
    least = torch.tensor(number, device=device)
    dist.all_reduce(least, op=dist.ReduceOp.MIN)
    return int(least.item())


def accuracy(network: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of held-out images that are read rightly."""
    with torch.no_grad():
        found: float = (network(images).argmax(1) == labels).float().mean().item()
    return found


def stopping(device: torch.device) -> bool:
    """Whether any process was told to stop; all leave before the same epoch."""
    if WORLD == 1:
        return Stop.asked
    asked = torch.tensor(float(Stop.asked), device=device)
    dist.all_reduce(asked, op=dist.ReduceOp.MAX)
    return bool(asked.item())


def restore(network: nn.Module, optimizer: torch.optim.Optimizer, device: torch.device) -> int:
    """The epoch to go on from."""
    if not CHECKPOINT.exists():
        return 0
    state = torch.load(CHECKPOINT, map_location=device, weights_only=True)
    network.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    print(f"rank {RANK}: resumed from epoch {state['epoch']}", flush=True)
    return int(state["epoch"])


def save(state: dict[str, Any], path: Path) -> None:
    """Whole or not at all: SageMaker uploads whatever it sees."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    torch.save(state, beside)
    beside.replace(path)


if __name__ == "__main__":
    sys.exit(main())
