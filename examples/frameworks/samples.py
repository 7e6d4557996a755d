"""Makes the samples of these examples on the spot: 64 numbers and one of 10 classes, the same in every attempt.

A training of these is over within seconds. A rehearsal that ends it in the middle sets SLOW_ATTEMPTS: in so many first attempts a sample
takes SECONDS_A_SAMPLE, and after SAMPLES_BEFORE_REST of them the training stands still until something ends it.
"""

from __future__ import annotations

import os
import time

import torch
from torch.utils.data import Dataset

IS_SLOW = int(os.environ.get("ATTEMPT", "1")) <= int(os.environ.get("SLOW_ATTEMPTS", "0"))
SECONDS = float(os.environ.get("SECONDS_A_SAMPLE", "0.05"))
BEFORE_REST = int(os.environ.get("SAMPLES_BEFORE_REST", "600"))


class Samples(Dataset):  # type: ignore[misc]
    """`count` samples that can be learned: the class is the largest of ten sums."""

    def __init__(self, count: int) -> None:
        chance = torch.Generator().manual_seed(0)
        self.inputs = torch.rand(count, 64, generator=chance)
        self.labels = (self.inputs @ torch.rand(64, 10, generator=chance)).argmax(1)
        self.read = 0

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, place: int) -> dict[str, torch.Tensor]:
        self.read += 1
        if self.read % 20 == 0:
            print(f"read {self.read} samples", flush=True)
        if IS_SLOW:
            time.sleep(SECONDS)
        while IS_SLOW and self.read > BEFORE_REST:
            time.sleep(1)
        return {"inputs": self.inputs[place], "labels": self.labels[place]}
