"""Makes the samples of these examples on the spot: 64 numbers and one of 10 classes, the same in every attempt.

SECONDS_A_SAMPLE slows a training down, so that there is something to see. ENDLESS_ATTEMPTS are so many first attempts that stand still
after SAMPLES_BEFORE_REST samples, until something ends them: a rehearsal waits for its fault like that, however slow the computer is.
"""

from __future__ import annotations

import os
import time

import torch
from torch.utils.data import Dataset

SECONDS = float(os.environ.get("SECONDS_A_SAMPLE", "0"))
IS_ENDLESS = int(os.environ.get("ATTEMPT", "1")) <= int(os.environ.get("ENDLESS_ATTEMPTS", "0"))
BEFORE_REST = int(os.environ.get("SAMPLES_BEFORE_REST", "0"))


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
        time.sleep(SECONDS)
        while IS_ENDLESS and self.read > BEFORE_REST:
            time.sleep(1)
        return {"inputs": self.inputs[place], "labels": self.labels[place]}
