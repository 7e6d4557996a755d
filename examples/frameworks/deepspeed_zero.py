"""Trains with DeepSpeed and ZeRO: every rank saves its part of the optimizer's state."""

from __future__ import annotations

import os

import deepspeed
import torch
from samples import Samples
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler

CHECKPOINTS = os.environ["CHECKPOINT_DIR"]
STEPS, SAVES_EVERY = 300, 20
SETTINGS = {
    "train_micro_batch_size_per_gpu": 4,
    "zero_optimization": {"stage": 1},
    "zero_allow_untested_optimizer": True,
}

deepspeed.init_distributed()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=SETTINGS)
samples = Samples(4000)
batches = DataLoader(samples, batch_size=4, sampler=DistributedSampler(samples, seed=0))
engine.load_checkpoint(CHECKPOINTS)
print(f"resumes from step {engine.global_steps}", flush=True)

for batch in batches:
    loss = nn.functional.cross_entropy(engine(batch["inputs"]), batch["labels"])
    engine.backward(loss)
    engine.step()
    if engine.global_steps % SAVES_EVERY == 0:
        engine.save_checkpoint(CHECKPOINTS)
    if engine.global_steps == STEPS:
        break
print(f"ended at step {engine.global_steps}", flush=True)
