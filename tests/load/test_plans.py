"""A plan of 10,000 jobs on clusters of our own takes at most twice the time of one of 10,000 trainings of SageMaker."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from contract.environments import GridEnvironment
from grid_plan.line_jobs import load_checks
from grid_plan.planning import Checked, Planner
from grid_plan.request import read
from grid_plan.training_arguments import GridRun
from tests.functions.grid_plan.account import Account, judging
from tools.refusals.grids.yard import HOME, MANIFEST, execution

LINES = 10_000
SHARED: dict[str, Any] = {"region": HOME, "image": "images:v1"}
BACKENDS: dict[str, dict[str, Any]] = {
    "sagemaker": {"instance_type": "ml.g5.xlarge", "program": "train.py"},
    "ec2": {"instance_types": ["g5.xlarge"], "command": ["python", "train.py"], "launcher": "torchrun"},
}


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with judging(monkeypatch) as made:
        made.keep_calls = False
        yield made


def write(backend: str, seed: int, *, alike: bool) -> str:
    different = {"environment": {"SEED": str(seed)}} if alike else {"max_hours": 1 + seed / 1e6}
    line = SHARED | BACKENDS[backend] | {"backend": backend, "hyperparameters": {"lr": seed}} | different
    return json.dumps(line) + "\n"


def check(body: bytes) -> tuple[Checked, float]:
    """What the first pass finds, and its seconds of processor time."""
    env, run = GridEnvironment.read(), execution()
    request, given, _ = read({"manifest": MANIFEST}, env.limits)
    grid = GridRun(grid=run["name"], execution=run["arn"], started_at=run["started_at"], owner="")
    planner = Planner(request, grid, env, given, checks=load_checks(env))
    begins_at = time.process_time()
    return planner.check(io.BytesIO(body)), time.process_time() - begins_at


@pytest.mark.at_length
@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("alike", [True, False], ids=["alike to Admit", "each its own"])
def test_ten_thousand_jobs_take_at_most_twice_the_time_of_trainings(alike: bool) -> None:
    took = dict[str, float]()
    for backend in BACKENDS:
        body = "".join(write(backend, seed, alike=alike) for seed in range(LINES)).encode()
        found, took[backend] = min((check(body) for _ in range(2)), key=lambda one: one[1])
        assert (found.lines, list(found.report.reasons())) == (LINES, [])
    print(f"{took['ec2']:.2f} s beside {took['sagemaker']:.2f} s: {took['ec2'] / took['sagemaker']:.2f} of it")
    assert took["ec2"] <= 2 * took["sagemaker"]
