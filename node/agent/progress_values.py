"""Reads what a trainer wrote of its progress, value by value: one that is not allowed costs itself alone."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from contract.metric_values import DIVERGED
from contract.reports import Progress

T = TypeVar("T")
MOST = 10**18
WHOLE = "a whole number from 0, of at most 18 digits"
FINITE = "a finite number"
SECONDS = "a finite number from 0"
LONGEST_SHOWN = 60


@dataclass(frozen=True)
class Reading:
    """What a file says."""

    progress: Progress | None
    """None where it has no step that counts, and names no checkpoint, which stands for it."""
    checkpoint: int | None
    problems: Mapping[str, str]
    """By field, what is wrong with it and what is allowed."""


def parse_progress(document: bytes) -> Reading:
    """Reads a PROGRESS_FILE. Values of other names are ignored. Raises ValueError or RecursionError where it is not a JSON object."""
    raw: Any = json.loads(document)
    if not isinstance(raw, dict):
        raise ValueError(f"it is {_show(raw)}; allowed: an object")
    problems = dict[str, str]()

    def read(field: str, parse: Callable[[Any], T | None], allowed: str, otherwise: T) -> T:
        value = raw.get(field)
        if value is None:
            return otherwise
        if (parsed := parse(value)) is None:
            problems[field] = f"is {_show(value)}; allowed: {allowed}"
            return otherwise
        return parsed

    step = read("step", _whole, WHOLE, None)
    checkpoint = read("checkpoint", _whole, WHOLE, None)
    world_size = read("world_size", _whole, WHOLE, 0)
    metric = read("metric", _finite, FINITE, None)
    import_s = read("import_s", _seconds, SECONDS, 0.0)
    if step is None:
        problems.setdefault("step", f"is missing; allowed: {WHOLE}")
        step = checkpoint
    if step is None:
        return Reading(None, None, problems)
    progress = Progress(
        step=step, world_size=world_size, metric=metric, diverged=_name_diverged(raw.get("metric")), import_s=import_s
    )
    return Reading(progress, checkpoint, problems)


def _whole(value: Any) -> int | None:
    """Also of a float without a fraction: so a trainer counts whose number of steps was given as 5e2."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value < MOST else None


def _finite(value: Any) -> float | None:
    """Python's JSON reads NaN and Infinity, which no report may carry, and whole numbers that no float holds."""
    if type(value) not in (int, float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _name_diverged(value: Any) -> str:
    """What a metric is in the place of a finite number, also as the text that JSON without NaN needs; empty for all else."""
    try:
        found = str(float(value)) if isinstance(value, str | float) else ""
    except ValueError:
        return ""
    return found if found in DIVERGED else ""


def _seconds(value: Any) -> float | None:
    seconds = _finite(value)
    return seconds if seconds is not None and seconds >= 0 else None


def _show(value: Any) -> str:
    """The value as Python writes it, cut. Lists and objects are only named: to write them may need a deeper stack than reading did."""
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    shown = repr(value)
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}..."
