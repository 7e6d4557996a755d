"""What the pods of a line on Kubernetes bring and save, and what they note of themselves: the environment of their helpers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from contract import containers
from contract.environments import Environment

INPUT = f"{containers.FOLDERS}/input/config"
OUTPUT = f"{containers.FOLDERS}/output/data"
SAID = f"{containers.FOLDERS}/output/said"
"""What the launcher's command prints."""
BEGUN, RESULT, LOG = "begun.json", "result.json", "log.txt"
"""Notes: the first is there once a pod has begun, the second once the models are saved; the third is what the launcher printed."""
MOST_NOTE = 64 * 1024
"""Bytes of a note that are read. The code of the line has the rights of its pods, and may write anything there."""
MOST_METRICS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PodChannel:
    """Data that pods bring to a folder of this name."""

    name: str
    source: str
    """`s3://` address; everything that begins so."""
    sharded: bool = False
    """Whether each pod has a part of the objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFiles(Environment):
    """The folders of a line's pods, and where in S3 their files come from and go to."""

    nodes: int
    instance_type: str
    channels: tuple[PodChannel, ...]
    hyperparameters: dict[str, str]
    checkpoints: str
    """`s3://` folder, as `output` and `notes`."""
    output: str
    notes: str
    metrics: dict[str, str] = field(default_factory=dict)
    """Name to the regular expression that finds its value in what the launcher prints."""

    @property
    def model(self) -> str:
        """`s3://` address of the archive of the model's folder."""
        return f"{self.output}/model.tar.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodResult:
    """What the keeper noted at its end."""

    ended_at: float
    """UTC epoch seconds."""
    model: bool = False
    """Whether there is an archive of a model."""
    metrics: dict[str, float] = field(default_factory=dict)
    problem: str = ""
    """What could not be saved, and why."""


def read_result(body: bytes | None) -> PodResult | None:
    """Returns the keeper's note; None where it is none. What does not fit is left out: a training may have written it."""
    try:
        found = json.loads(body) if body and len(body) <= MOST_NOTE else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or (at := _number(found.get("ended_at"))) is None:
        return None
    metrics = found.get("metrics")
    numbers = {str(name): _number(one) for name, one in metrics.items()} if isinstance(metrics, Mapping) else {}
    known = {name: one for name, one in numbers.items() if one is not None}
    return PodResult(
        ended_at=at,
        model=found.get("model") is True,
        metrics=dict(list(known.items())[:MOST_METRICS]),
        problem=str(found.get("problem") or "")[:500],
    )


def _number(value: Any) -> float | None:
    """Returns a finite number; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e300:
        return None
    return float(value) if math.isfinite(value) else None
