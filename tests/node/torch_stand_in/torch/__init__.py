"""A stand-in for PyTorch with what a measurement of the network calls; TORCH_MODE, TORCH_GPUS and TORCH_DELAY say how it behaves.

A process that hangs leaves a file in the folder TORCH_HANGS, so that a test need not wait until it surely does."""

# ruff: noqa: ARG001, ARG002  (the signatures are PyTorch's)

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

MODE = os.environ.get("TORCH_MODE", "")


def _tell(where: str) -> None:
    if folder := os.environ.get("TORCH_HANGS"):
        Path(folder, f"{where}-{os.getpid()}").touch()


if MODE == "missing":
    raise ModuleNotFoundError("No module named 'torch'")
if MODE == "hangs on import":
    _tell("import")
    time.sleep(10_000)
if MODE == "floods":
    for number in range(1, 20):  # as a library that finds the way back to what it was not given
        try:
            os.write(
                number, b'{"seconds": NaN, "bytes": 1, "ranks": 2}\n' * 20_000 if number == 2 else b"x" * 1000 + b"\n"
            )
        except OSError:
            continue
float32, float64 = "float32", "float64"


class device:  # noqa: N801  (as PyTorch spells it)
    def __init__(self, kind: str, index: int = 0) -> None:
        self.type, self.index = kind, index


class Tensor:
    def __init__(self, values: list[float], place: device) -> None:
        self.values, self.device = values, place

    def __getitem__(self, part: slice) -> Tensor:
        return self

    def add_(self, value: float) -> Tensor:
        return self

    def item(self) -> float:
        return self.values[0]


class cuda:  # noqa: N801
    @staticmethod
    def device_count() -> int:
        return int(os.environ.get("TORCH_GPUS", "0"))

    @staticmethod
    def set_device(number: int) -> None:
        if MODE == "broken device":
            raise RuntimeError(f"CUDA error: device {number}: unspecified launch failure")
        if os.environ.get("NCCL_DEBUG") == "INFO":
            # To stdout, as NCCL and AWS's plugin for it do.
            print("ip-10-0-0-5:1:1 [0] NCCL INFO NET/OFI Selected Provider is efa")
            print("ip-10-0-0-5:1:1 [0] NCCL INFO Using network AWS Libfabric")

    @staticmethod
    def synchronize() -> None:
        sys.stdout.flush()


def zeros(number: int, dtype: Any = None, device: Any = None) -> Tensor:
    return Tensor([0.0], _placed(device))


def tensor(values: list[float], dtype: Any = None, device: Any = None) -> Tensor:
    return Tensor(list(values), _placed(device))


def _placed(place: Any) -> device:
    return place if isinstance(place, device) else device(str(place or "cpu"))
