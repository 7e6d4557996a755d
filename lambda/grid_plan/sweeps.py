"""Makes the lines of a sweep: one training for every combination of its values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from grid_plan.columns import TrainingSpec
from refusals.wording import plain

Sweep = Mapping[str, list[Any]]


def of(line: TrainingSpec, over_all: Sweep) -> tuple[Sweep, list[str]]:
    """Returns the sweep of a line as it stands in the manifest, and what is wrong with it.

    The input's sweep does not change what a line sets itself, so failed lines can be started again with the same input.
    """
    said, own = line.hyperparameters or {}, line.sweep or {}
    both = [f"sweep.{plain(name)}: is in hyperparameters too; allowed: one of them" for name in own if name in said]
    return {**{name: values for name, values in over_all.items() if name not in said}, **own}, both


def count(sweep: Sweep) -> int:
    """Returns how many trainings it makes of one line."""
    return math.prod(len(values) for values in sweep.values())


def expanded(training: TrainingSpec, sweep: Sweep) -> Iterator[TrainingSpec]:
    """Yields the combinations in the order of the values; the last name changes fastest."""
    base = training.model_copy(update={"sweep": None})
    if not sweep:
        yield base
        return
    for values in itertools.product(*sweep.values()):
        chosen = dict(zip(sweep, values, strict=True))
        yield base.model_copy(update={"hyperparameters": {**(base.hyperparameters or {}), **chosen}})
