"""Trains a small network on scikit-learn's handwritten digits with PyTorch DDP over all nodes of the job.

With several GPUs a node: `"command": ["train.py"], "launcher": "torchrun"` (torchrun.json).

What it takes from Trainyard: MASTER_ADDR, MASTER_PORT, NUM_NODES, NODE_RANK, CHECKPOINT_DIR, ARTIFACTS_DIR, PROGRESS_FILE.
Rank 0 writes checkpoints, a folder each, and a link to the newest one, which every rank loads. SIGTERM ends the epoch with a checkpoint.
"""

from __future__ import annotations

import time

IMPORTING = time.monotonic()

import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import shutil  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset  # noqa: E402

IMPORT_S = time.monotonic() - IMPORTING
CHECKPOINTS = Path(os.environ["CHECKPOINT_DIR"])
LATEST = CHECKPOINTS / "latest"
ARTIFACTS = Path(os.environ["ARTIFACTS_DIR"])
PROGRESS = Path(os.environ["PROGRESS_FILE"])
# One process a node, or, under torchrun, one a GPU: torchrun sets the names on the left.
RANK = int(os.environ.get("RANK", os.environ["NODE_RANK"]))
WORLD = int(os.environ.get("WORLD_SIZE", os.environ["NUM_NODES"]))
LOCAL_RANK = int(os.environ.get("LOCAL_RANK", "0"))


class Stop:
    """Set by SIGTERM: an order to write a checkpoint and leave."""

    asked = False

    @classmethod
    def on_sigterm(cls, *_: Any) -> None:
        cls.asked = True


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=64, help="images a process and step")
    parser.add_argument(
        "--fail-at-epoch", type=int, default=-1, help="exit with code 3 there, to see how a failure looks"
    )
    parser.add_argument("--seconds-per-epoch", type=float, default=0.0, help="at least so long, to see a longer job")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, Stop.on_sigterm)

    device = torch.device("cuda", LOCAL_RANK) if torch.cuda.is_available() else torch.device("cpu")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", rank=RANK, world_size=WORLD)
    print(f"rank {RANK} of {dist.get_world_size()} on {device}, imports took {IMPORT_S:.1f} s", flush=True)
    torch.manual_seed(0)

    held_in, held_out = data(device)
    sampler: DistributedSampler[Any] = DistributedSampler(held_in, num_replicas=WORLD, rank=RANK, seed=0)
    batches = DataLoader(held_in, batch_size=options.batch, sampler=sampler)
    network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10)).to(device)
    model = DistributedDataParallel(network)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    epoch, step = restore(network, optimizer, device)

    while epoch < options.epochs:
        began = time.monotonic()
        if epoch == options.fail_at_epoch:
            print(f"rank {RANK}: asked to fail at epoch {epoch}", file=sys.stderr, flush=True)
            return 3
        sampler.set_epoch(epoch)
        for images, labels in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            step += 1
            if step == 1:
                report(step, None)
        epoch += 1
        accuracy = evaluate(network, held_out)
        if RANK == 0:
            print(f"epoch {epoch}/{options.epochs} step {step} accuracy {accuracy:.4f}", flush=True)
            save(network, optimizer, device, epoch, step)
        report(step, accuracy, checkpoint=step)
        if RANK == 0:
            remove_older()
        if stopping(device):
            print(f"rank {RANK}: stopping as ordered after epoch {epoch}", flush=True)
            dist.destroy_process_group()
            return 143
        time.sleep(max(0.0, options.seconds_per_epoch - (time.monotonic() - began)))

    finish(network, accuracy=evaluate(network, held_out), step=step)
    dist.destroy_process_group()
    return 0


def data(device: torch.device) -> tuple[TensorDataset, TensorDataset]:
    """1,797 images of 8 x 8 pixels; a fifth is held out."""
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images / 16.0, labels, test_size=0.2, random_state=0, stratify=labels)
    train_x, test_x = (torch.tensor(part, dtype=torch.float32, device=device) for part in parts[:2])
    train_y, test_y = (torch.tensor(part, dtype=torch.long, device=device) for part in parts[2:])
    return TensorDataset(train_x, train_y), TensorDataset(test_x, test_y)


def evaluate(network: nn.Module, held_out: TensorDataset) -> float:
    """The share of held-out images that are read rightly."""
    images, labels = held_out.tensors
    network.eval()
    with torch.no_grad():
        accuracy: float = (network(images).argmax(1) == labels).float().mean().item()
    network.train()
    return accuracy


def restore(network: nn.Module, optimizer: torch.optim.Optimizer, device: torch.device) -> tuple[int, int]:
    """Epoch and step to go on from."""
    if not LATEST.exists():
        return 0, 0
    state = json.loads((LATEST / "state.json").read_text())
    network.load_state_dict(torch.load(LATEST / "model.pt", map_location=device, weights_only=True))
    training = torch.load(LATEST / "training.pt", map_location=device, weights_only=True)
    optimizer.load_state_dict(training["optimizer"])
    torch.set_rng_state(training["random"][0].cpu())
    for of_gpu in training["random"][1:]:
        torch.cuda.set_rng_state(of_gpu.cpu(), device)
    print(f"rank {RANK}: resumed from epoch {state['epoch']}, step {state['step']}", flush=True)
    return int(state["epoch"]), int(state["step"])


def random_state(device: torch.device) -> list[torch.Tensor]:
    """Of the processor and the GPU: with it, a resumed training draws what it would have drawn. All ranks have drawn equally often."""
    return [torch.get_rng_state(), *([torch.cuda.get_rng_state(device)] if device.type == "cuda" else [])]


def stopping(device: torch.device) -> bool:
    """Whether any rank was told to stop; all leave after the same epoch."""
    asked = torch.tensor([float(Stop.asked)], device=device)
    dist.all_reduce(asked, op=dist.ReduceOp.MAX)
    return bool(asked.item())


def save(network: nn.Module, optimizer: torch.optim.Optimizer, device: torch.device, epoch: int, step: int) -> None:
    """Writes beside, and renames: Trainyard leaves out what ends in .tmp, so it never finds half a checkpoint."""
    folder, beside = CHECKPOINTS / f"step-{step}", CHECKPOINTS / f"step-{step}.tmp"
    beside.mkdir(exist_ok=True)
    torch.save(network.state_dict(), beside / "model.pt")
    torch.save({"optimizer": optimizer.state_dict(), "random": random_state(device)}, beside / "training.pt")
    (beside / "state.json").write_text(json.dumps({"epoch": epoch, "step": step}))
    beside.rename(folder)
    link = CHECKPOINTS / "latest.tmp"
    link.unlink(missing_ok=True)
    link.symlink_to(folder.name)
    link.replace(LATEST)


def remove_older() -> None:
    """Removes older checkpoints after the newest one is named. Each is renamed first, so no half of it is ever in sight."""
    newest = LATEST.resolve()
    for folder in CHECKPOINTS.glob("step-*[0-9]"):
        if folder != newest:
            shutil.rmtree(folder.rename(folder.with_name(f"{folder.name}.tmp")))


def report(step: int, metric: float | None, checkpoint: int | None = None) -> None:
    """The progress that Trainyard shows, and by which it notices a hang; `checkpoint` is the step of the file that is whole now."""
    if RANK == 0:
        beside = PROGRESS.with_name(f"{PROGRESS.name}.new")
        told = {"step": step, "world_size": dist.get_world_size(), "metric": metric, "import_s": round(IMPORT_S, 2)}
        beside.write_text(json.dumps(told if checkpoint is None else {**told, "checkpoint": checkpoint}))
        beside.replace(PROGRESS)


def finish(network: nn.Module, *, accuracy: float, step: int) -> None:
    """Each rank leaves a summary, rank 0 the model."""
    summary = {
        "rank": RANK,
        "world_size": dist.get_world_size(),
        "accuracy": accuracy,
        "steps": step,
        "torch": torch.__version__,
    }
    (ARTIFACTS / f"summary-{RANK}.json").write_text(json.dumps(summary, indent=1))
    if RANK == 0:
        torch.save(network.state_dict(), ARTIFACTS / "digits.pt.tmp")
        (ARTIFACTS / "digits.pt.tmp").replace(ARTIFACTS / "digits.pt")


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # PyTorch's threads may still run, and its destructors then abort a training that has ended well
