"""Trains with Lightning's Trainer over all nodes."""

from __future__ import annotations

import os

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from samples import Samples
from torch import nn
from torch.utils.data import DataLoader

CHECKPOINTS = os.environ["CHECKPOINT_DIR"]


class Classifier(LightningModule):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

    def on_train_start(self) -> None:
        print(f"resumes from step {self.trainer.global_step}", flush=True)

    def training_step(self, batch: dict[str, torch.Tensor], _number: int) -> torch.Tensor:
        return nn.functional.cross_entropy(self.layers(batch["inputs"]), batch["labels"])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


trainer = Trainer(
    num_nodes=int(os.environ["NUM_NODES"]),
    strategy="ddp",
    max_steps=300,
    callbacks=[ModelCheckpoint(dirpath=CHECKPOINTS, every_n_train_steps=20, save_top_k=-1, save_last="link")],
    logger=False,
    enable_progress_bar=False,
)
trainer.fit(Classifier(), DataLoader(Samples(4000), batch_size=4), ckpt_path="last")
print(f"ended at step {trainer.global_step}", flush=True)
