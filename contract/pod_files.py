"""What the pods of a line on Kubernetes bring and save, and what they note of themselves: the environment of their helpers."""

from __future__ import annotations

import hmac
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from contract import containers
from contract.environments import Environment
from contract.metric_values import MOST

INPUT = f"{containers.FOLDERS}/input/config"
OUTPUT = f"{containers.FOLDERS}/output/data"
SAID = f"{containers.FOLDERS}/output/said"
"""What the launcher's command prints."""
RESULT, LOG = "result.json", "log.txt"
"""Notes: the first is there once the models are saved; the second is what the launcher printed."""
MOST_NOTE = 64 * 1024
"""Bytes of a note that are read. The code of any line has the rights of its pods, and may write anything there."""
PROOF = "proof"
"""The field of a note by which it is known as the keeper's own."""
MOST_METRICS, MOST_PROBLEM = 100, 300


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

    seal: str = ""
    """What proves that a note is of this very keeper: no code of a line knows it."""

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
    metric_problems: dict[str, str] = field(default_factory=dict)
    """By name, why a metric has no value."""
    problem: str = ""
    """What could not be saved, and why."""


def describe_result(result: PodResult, seal: str) -> dict[str, Any]:
    """Returns the keeper's note, with its proof."""
    document = asdict(result)
    return {**document, PROOF: _prove(document, seal)}


def read_result(body: bytes | None, seal: str) -> PodResult | None:
    """Returns the keeper's note; None where it is none, or not of the keeper that has this seal: any training may have written it. What
    does not fit is left out."""
    try:
        found = json.loads(body) if body and len(body) <= MOST_NOTE else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not _is_proved(found, seal) or (at := _number(found.get("ended_at"))) is None:
        return None
    metrics = found.get("metrics")
    numbers = {str(name): _number(one) for name, one in metrics.items()} if isinstance(metrics, Mapping) else {}
    known = {name: one for name, one in numbers.items() if one is not None}
    given = found.get("metric_problems")
    problems = given if isinstance(given, dict) else {}
    return PodResult(
        ended_at=at,
        model=found.get("model") is True,
        metrics=dict(list(known.items())[:MOST_METRICS]),
        metric_problems={str(name): str(one)[:MOST_PROBLEM] for name, one in list(problems.items())[:MOST_METRICS]},
        problem=str(found.get("problem") or "")[:500],
    )


def _is_proved(found: Mapping[str, Any], seal: str) -> bool:
    given = str(found.get(PROOF)).encode(errors="replace")
    document = {name: one for name, one in found.items() if name != PROOF}
    return bool(seal) and hmac.compare_digest(given, _prove(document, seal).encode())


def _prove(document: Mapping[str, Any], seal: str) -> str:
    return hmac.new(seal.encode(), json.dumps(document, sort_keys=True).encode(), "sha256").hexdigest()


def _number(value: Any) -> float | None:
    """Returns a finite number; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > MOST:
        return None
    return float(value) if math.isfinite(value) else None
