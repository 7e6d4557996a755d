"""Trains with DeepSpeed and ZeRO: every rank saves its part of the optimizer's state."""

from __future__ import annotations

import os

import deepspeed
import torch
from samples import Samples
from torch import nn

CHECKPOINTS = os.environ["CHECKPOINT_DIR"]
STEPS, SAVES_EVERY = 300, 5
SETTINGS = {
    "train_micro_batch_size_per_gpu": 4,
    "zero_optimization": {"stage": 1},
    "zero_allow_untested_optimizer": True,
}

deepspeed.init_distributed()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
engine, _, batches, _ = deepspeed.initialize(
    model=model, optimizer=optimizer, training_data=Samples(4000), config=SETTINGS
)
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
