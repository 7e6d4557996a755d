"""The deployment behind the examples of refused searches: that of refused grids, and the smallest search."""

from __future__ import annotations

from typing import Any

from contract import names
from contract.metric_values import write_expression
from tools.refusals.grids.yard import ACCOUNT, HOME

TEMPLATE: dict[str, Any] = {
    "region": "eu-central-1",
    "image": "images:v1",
    "instance_type": "ml.g5.xlarge",
    "max_hours": 1,
    "metrics": {"accuracy": write_expression("accuracy")},
}
JOB: dict[str, Any] = {
    "backend": "ec2",
    "image": "images:v1",
    "command": ["python", "train.py"],
    "instance_types": ["g5.xlarge"],
    "max_hours": 1,
}
"""A template of jobs on clusters of our own."""
LEAST: dict[str, Any] = {
    "template": TEMPLATE,
    "search": {"lr": {"float": [0.001, 0.1]}},
    "objective": {"metric": "accuracy", "direction": "maximize"},
    "trials": 8,
}
"""The smallest search that is asked."""


def execution(name: str = "tune-7", started_at: str = "2026-11-21T10:00:00.000Z") -> dict[str, str]:
    arn = f"arn:aws:states:{HOME}:{ACCOUNT}:execution:{names.search_machine('yard')}:{name}"
    return {"arn": arn, "name": name, "started_at": started_at}


def template(**given: Any) -> dict[str, Any]:
    """Returns the smallest search's template with these fields; None takes one away."""
    return {name: one for name, one in {**TEMPLATE, **given}.items() if one is not None}
