"""Adds the defaults to a line, and writes it as a line that needs none."""

from __future__ import annotations

from typing import Any

from grid_plan.columns import TrainingSpec

MERGED = ("channels", "hyperparameters", "environment", "tags", "metrics")
"""Fields whose entries in a line are added to those of the defaults; a line's other fields replace the defaults'."""
INSTEAD = {"program": ("entrypoint", "arguments"), "entrypoint": ("program",)}
"""Fields of a line that take the place of others of the defaults: arguments are those of the entry point, which no program has."""
DEPENDENT = {"market": ("max_wait_hours",), "distribution": ("processes_per_host", "mpi_options")}
"""Defaults that do not apply to a line that sets another value for the field they depend on."""


def merged(defaults: TrainingSpec, line: TrainingSpec) -> TrainingSpec:
    """Returns the line, with the defaults for the fields that it does not set."""
    told: dict[str, Any] = {name: value for name, value in line if value is not None}
    for name in MERGED:
        before = getattr(defaults, name)
        if before and told.get(name):
            told[name] = {**before, **told[name]}
    for name, others in DEPENDENT.items():
        if told.get(name, getattr(defaults, name)) != getattr(defaults, name):
            told = dict.fromkeys(others) | told
    for name, others in INSTEAD.items():
        if name in told:
            told = dict.fromkeys(others) | told
    return defaults.model_copy(update=told)


def source(training: TrainingSpec) -> dict[str, Any]:
    """Returns the training as a line of JSON that needs no defaults."""
    found = training.model_dump(exclude_none=True)
    if len(found.get("data", ())) == 1:
        (found["data"],) = found["data"]
    return found
