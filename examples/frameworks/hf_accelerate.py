"""Trains with Accelerate, which saves the whole state in a folder for each checkpoint."""

from __future__ import annotations

import os
from pathlib import Path

from accelerate import Accelerator
from samples import Samples
from torch import nn, optim
from torch.utils.data import DataLoader

CHECKPOINTS = Path(os.environ["CHECKPOINT_DIR"])
STEPS, SAVES_EVERY = 300, 20

accelerator = Accelerator()
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = optim.AdamW(model.parameters(), lr=1e-3)
batches = DataLoader(Samples(4000), batch_size=4, shuffle=True)
model, optimizer, batches = accelerator.prepare(model, optimizer, batches)

step = 0
if found := sorted(CHECKPOINTS.glob("step_*"), key=lambda one: int(one.name.removeprefix("step_"))):
    accelerator.load_state(str(found[-1]))
    step = int(found[-1].name.removeprefix("step_"))
print(f"resumes from step {step}", flush=True)

for batch in accelerator.skip_first_batches(batches, step):
    loss = nn.functional.cross_entropy(model(batch["inputs"]), batch["labels"])
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    step += 1
    if step % SAVES_EVERY == 0:
        accelerator.save_state(str(CHECKPOINTS / f"step_{step}"))
    if step == STEPS:
        break
accelerator.wait_for_everyone()
print(f"ended at step {step}", flush=True)
accelerator.end_training()
