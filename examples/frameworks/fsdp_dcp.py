"""Trains with FSDP: every rank saves its shards with torch.distributed.checkpoint."""

from __future__ import annotations

import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from samples import Samples
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, DistributedSampler

CHECKPOINTS = Path(os.environ["CHECKPOINT_DIR"])
STEPS, SAVES_EVERY = 300, 20

dist.init_process_group()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
samples = Samples(4000)
batches = DataLoader(samples, batch_size=4, sampler=DistributedSampler(samples, seed=0))

step = 0
if found := sorted(CHECKPOINTS.glob("step-*/.metadata"), key=lambda one: int(one.parent.name.removeprefix("step-"))):
    model_state, optimizer_state = get_state_dict(model, optimizer)
    state = {"model": model_state, "optimizer": optimizer_state, "step": 0}
    dcp.load(state, checkpoint_id=found[-1].parent)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    step = state["step"]
print(f"resumes from step {step}", flush=True)

for batch in batches:
    nn.functional.cross_entropy(model(batch["inputs"]), batch["labels"]).backward()
    optimizer.step()
    optimizer.zero_grad()
    step += 1
    if step % SAVES_EVERY == 0:
        model_state, optimizer_state = get_state_dict(model, optimizer)
        state = {"model": model_state, "optimizer": optimizer_state, "step": step}
        dcp.save(state, checkpoint_id=CHECKPOINTS / f"step-{step}")
    if step == STEPS:
        break
print(f"ended at step {step}", flush=True)
dist.destroy_process_group()
