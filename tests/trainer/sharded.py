"""FSDP on two nodes of two processes each, saved with torch.distributed.checkpoint into the module's folders, and loaded again.

Runs on the machine image's Python, which has PyTorch: one process a call, as torchrun starts them. `save` and `load` are the recipe of
docs/guides/checkpoints.md.
"""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from trainyard_trainer import Run


def save(run: Run, step: int, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    with run.checkpoint(step, barrier=dist.barrier) as folder:
        model_state, optimizer_state = get_state_dict(model, optimizer)
        dcp.save({"model": model_state, "optimizer": optimizer_state}, checkpoint_id=str(folder))


def load(run: Run, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> int:
    found = run.newest()
    if found is None:
        return 0
    model_state, optimizer_state = get_state_dict(model, optimizer)
    state = {"model": model_state, "optimizer": optimizer_state}
    dcp.load(state, checkpoint_id=str(found.folder))
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    return found.step


def main() -> None:
    dist.init_process_group("gloo")
    train()
    dist.barrier()  # without it a process now and then aborts at its end: PyTorch joins its threads while peers still talk to them
    dist.destroy_process_group()


def train() -> None:
    torch.manual_seed(int(os.environ["SEED"]))
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    run = Run()
    step = load(run, model, optimizer)
    if step:
        print(f"resumed {step} {total(model):.6f}", flush=True)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 16)).sum().backward()
        optimizer.step()
        step += 1
        run.progress(step, world_size=dist.get_world_size())
        save(run, step, model, optimizer)
    print(f"saved {step} {total(model):.6f}", flush=True)


def total(model: torch.nn.Module) -> float:
    """The sum over all parameters of all processes."""
    value: float = sum(one.full_tensor().double().abs().sum().item() for one in model.parameters())
    return value


if __name__ == "__main__":
    main()
