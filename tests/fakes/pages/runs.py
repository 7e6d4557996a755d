"""Facts of grids and searches: ended, running, failed, refused, and as large as they may be."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aws.facts import Status
from contract import errors
from contract.grid import Grid, LineOutcome, Manifest, Record
from grids.policy import Totals
from pages.facts import GridFacts, SearchFacts
from tests.builders import NOW

REGIONS = ("eu-central-1", "us-east-1", "us-west-2", "ap-northeast-1")
LINES, TRIALS = 10_000, 60
STATES = "arn:aws:states:eu-central-1:123456789012:execution"
REASONS = (
    "AlgorithmError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "CapacityError: Unable to provision requested ML compute capacity",
    "ClientError: Data download failed: no such key s3://data-eu/train/",
)
GRID = Grid(
    id="lr-sweep",
    deployment="yard",
    execution=f"{STATES}:yard-grid:lr-sweep",
    started_at="2027-01-15T08:00:00Z",
    owner="ada",
    planned_at=NOW,
    manifest=Manifest(bucket="yard-home", key="uploads/sweep.csv", version="v1", etag="e1"),
    lines=LINES,
    regions=dict.fromkeys(REGIONS, LINES // 4),
    pace=1.0,
    cost_at_most_usd=4200.0,
    warnings=("us-west-2: prices are 7 days old",),
)


def record(index: int) -> tuple[Record, dict[str, Any]]:
    """Returns the record of a line and its hyperparameters: one in thirteen did not complete."""
    chance = random.Random(index)
    parameters: dict[str, Any] = {
        "learning_rate": 10 ** chance.uniform(-4, -1),
        "layers": chance.choice([2, 4, 8, 16]),
        "optimizer": chance.choice(["adam", "sgd", "lion"]),
    }
    good = 0.96 - 0.05 * (math.log10(parameters["learning_rate"]) + 2.6) ** 2 - 0.002 * abs(parameters["layers"] - 8)
    outcome = LineOutcome.COMPLETED
    if index % 13 == 5:
        outcome = (LineOutcome.FAILED, LineOutcome.FAILED, LineOutcome.STOPPED, LineOutcome.REFUSED)[
            chance.randrange(4)
        ]
    is_done = outcome is LineOutcome.COMPLETED
    region = REGIONS[index % 4]
    return (
        Record(
            index=index,
            line=index + 1,
            region=region,
            training=f"yard-lr-sweep-0123456789ab-{index}",
            outcome=outcome,
            reason="" if is_done else REASONS[chance.randrange(3)],
            seconds=1800.0 + chance.random() * 600,
            billable_seconds=1700.0,
            cost_usd=0.31 + chance.random() / 10,
            metrics={"accuracy": good + chance.gauss(0, 0.01), "loss": 1.2 - good} if is_done else {},
            log=f"https://{region}.console.aws.amazon.com/cloudwatch/home?region={region}#logsV2:log-groups/log-group/x",
        ),
        parameters,
    )


def grid(lines: int = LINES, ended: int | None = None) -> GridFacts:
    """Returns the facts of a grid of so many lines, of which so many have ended."""
    found = [record(index) for index in range(lines if ended is None else ended)]
    totals = Totals(lines=lines, cost_at_most_usd=4200.0)
    for one, _ in found:
        totals.add(one)
    is_over = ended is None
    return GridFacts(
        name="lr-sweep",
        deployment="yard",
        now=NOW + 20_000,
        status=Status(
            name="SUCCEEDED" if is_over else "RUNNING", started_at=NOW, ended_at=NOW + 19_000 if is_over else None
        ),
        grid=replace(GRID, lines=lines, regions=dict.fromkeys(REGIONS, lines // 4)),
        report={"problem": None, **totals.to_report()} if is_over else None,
        records=tuple(one for one, _ in found),
        parameters={one.index: parameters for one, parameters in found},
        bucket="yard-home",
    )


def refused_grid() -> GridFacts:
    cause = "The request was refused; nothing was started.\n- manifest: line 4: data: is missing; allowed: s3://bucket/folder/"
    status = Status(name="FAILED", started_at=NOW, ended_at=NOW + 20, error=errors.InvalidRequest.__name__, cause=cause)
    return GridFacts(name="lr-wrong", deployment="yard", now=NOW + 30, status=status, grid=None)


def trial(number: int) -> dict[str, str]:
    """Returns a row of trials.csv: one in nine has no value."""
    chance = random.Random(number)
    spread = max(0.2, 1 - number / TRIALS)
    rate = 10 ** (-2.4 + chance.uniform(-1.6, 1.4) * spread)
    width = chance.choice(["64", "128", "256"])
    fails = number % 9 == 4
    value = 0.97 - 0.06 * (math.log10(rate) + 2.4) ** 2 - (0.01 if width == "64" else 0) + chance.gauss(0, 0.004)
    return {
        "trial": str(number),
        "grid": f"digits-search-r{number // 8 + 1}",
        "index": str(number % 8),
        "status": "Failed" if fails else "Completed",
        "value": "" if fails else repr(value),
        "hp.dropout": f"{chance.uniform(0, 0.5):.4f}",
        "hp.learning_rate": repr(rate),
        "hp.width": width,
        "region": REGIONS[number % 4],
        "job": f"yard-digits-search-{number}",
        "seconds": "640.2",
        "cost_usd": "0.21",
        "reason": "'=HYPERLINK is a text: the log has no line with accuracy" if fails else "",
        "model_artifact": "s3://yard-bytes/model.tar.gz",
        "log": "",
    }


def search(trials: int = TRIALS, *, runs: bool = False) -> SearchFacts:
    """Returns the facts of a search of so many trials."""
    rows = tuple(trial(number) for number in range(trials))
    best = max((one for one in rows if one["value"]), key=lambda one: float(one["value"]))
    parameters = {name[3:]: text for name, text in best.items() if name.startswith("hp.")}
    objective = {"metric": "accuracy", "direction": "maximize"}
    line: Mapping[str, Any] = {"region": "eu-central-1", "data": "s3://data-eu/train/", "hyperparameters": parameters}
    report = {
        "why": f"All {trials} trials are told.",
        "problem": None,
        "objective": objective,
        "trials": trials,
        "cost_usd": 12.6,
        "max_cost_usd": 40.0,
        "importance": {"learning_rate": 0.8712, "width": 0.1011, "dropout": 0.0277},
        "failures": ["7 trials: the log has no line with accuracy"],
        "best": {"trial": int(best["trial"]), "line": line, "artifact": "s3://yard-bytes/grids/model.tar.gz"},
    }
    return SearchFacts(
        name="digits-search",
        deployment="yard",
        now=NOW + 9000,
        status=Status(name="RUNNING" if runs else "SUCCEEDED", started_at=NOW, ended_at=None if runs else NOW + 8800),
        search={"execution": f"{STATES}:yard-search:digits-search", "given": {"objective": objective}, "warnings": []},
        report=None if runs else report,
        trials=rows,
        bucket="yard-home",
    )


def failed_search() -> SearchFacts:
    cause = "All 8 trials of round 1 failed: the log has no line with accuracy."
    facts = search(8)
    rows = tuple(
        {**one, "value": "", "status": "Failed", "reason": "the log has no line with accuracy"} for one in facts.trials
    )
    status = Status(name="FAILED", started_at=NOW, ended_at=NOW + 900, error=errors.SearchFailed.__name__, cause=cause)
    report = {
        "why": "",
        "problem": {"error": errors.SearchFailed.__name__, "cause": cause},
        "failures": [cause],
        "best": None,
    }
    return replace(facts, name="digits-search-2", status=status, report=report, trials=rows)
