"""Trains with transformers' Trainer."""

from __future__ import annotations

import os

import torch
from samples import Samples
from torch import nn
from transformers import Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

CHECKPOINTS = os.environ["CHECKPOINT_DIR"]


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, inputs: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.layers(inputs)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


arguments = TrainingArguments(
    output_dir=CHECKPOINTS,
    max_steps=300,
    save_steps=20,
    save_total_limit=2,
    per_device_train_batch_size=4,
    logging_steps=20,
    report_to="none",
)
trainer = Trainer(model=Network(), args=arguments, train_dataset=Samples(4000))
found = get_last_checkpoint(CHECKPOINTS)
print(f"resumes from {found}", flush=True)
trainer.train(resume_from_checkpoint=found)
print(f"ended at step {trainer.state.global_step}", flush=True)
