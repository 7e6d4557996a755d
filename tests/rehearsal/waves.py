"""Two waves of jobs on the shared deployment. The second begins once the first training with PyTorch has ended, and trains while tests
look at the first: on one computer two such trainings would listen on the same port."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from localaws.testing.waiting import until
from rehearsal.deployment import ROOT
from rehearsal.director import Director
from rehearsal.scenario import load, parsed
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import ENDLESS, ONE, TWO, ended, train
from tests.rehearsal.mailbox import Mailbox

DIGITS, SCENARIOS = ROOT / "examples" / "ddp_digits", ROOT / "rehearsal" / "scenarios"
LOST = {"name": "lost", "fault": "node-lost", "keys": {"step": 10, "closed": 1, "rank": 0}}
SLOWER = ["--seconds-per-epoch", "3"]
"""Slows the digits that meet two faults, so that the second fault comes before the training ends."""
STEPS = 40
"""Of most trainings here; of those that a fault is to end, in the attempt after it."""
LOSE = {"s3-unread", "s3-refused"}
"""Jobs of STORAGE that lose a node."""
UNSAVED = "s3-unsaved"
"""The job of STORAGE that ends by itself once its fault has begun."""
STORAGE: dict[str, list[dict[str, Any]]] = {
    "s3-late": [{"fault": "s3-slow", "keys": {"each": 20}}],
    UNSAVED: [
        {
            "fault": "s3-failing",
            "keys": {"as": "denied", "calls": "writes"},
            "begins": {"closed": 1},
            "ends": {"attempt": 2},
        }
    ],
    "s3-unread": [
        LOST,
        {
            "fault": "s3-failing",
            "keys": {"as": "internal-error", "calls": "reads", "part": "checkpoints/", "share": 0.4},
            "begins": {"after": "lost"},
        },
    ],
    "s3-refused": [
        LOST,
        {
            "fault": "s3-failing",
            "keys": {"as": "denied", "calls": "reads", "part": "checkpoints/"},
            "begins": {"after": "lost"},
        },
    ],
    "s3-unchecked": [
        {
            "fault": "s3-failing",
            "keys": {"as": "internal-error", "who": "functions", "seconds": 80},
            "begins": {"phase": "saving"},
        }
    ],
    "s3-half": [{"fault": "s3-failing", "keys": {"as": "slow-down", "share": 0.3}}],
}
"""The scenario of each job of test_storage.py."""


@pytest.fixture(scope="session")
def first_wave(yard: Yard, trainer: str, mailbox: Mailbox) -> dict[str, StartedJob]:  # noqa: ARG001  (hears of one of them)
    """The jobs of test_main_job.py that do not disturb one another, all started at once."""
    digits = json.loads((DIGITS / "job.json").read_text())
    kept = {"code": trainer, "checkpoint_minutes": 0.02}
    requests: dict[str, Mapping[str, Any]] = {
        "digits": {**digits, "code": yard.upload(DIGITS, "digits")},
        "short": {**ONE, "code": trainer, "command": train(2, 0.1)},
        "long": {**ONE, "code": trainer, "command": train(20, 1.0)},
        "failing": {**TWO, "code": trainer, "command": train(3, 0.1, 3)},
        "overdue": {**ONE, "code": trainer, "command": train(10_000, 0.1), "max_hours": 0.035},
        "broke": {
            **ONE,
            "code": trainer,
            "command": train(10_000, 0.1),
            "max_hours": 0.03,
            "max_cost_usd": 0.004,
        },
        "planned": {**ONE, "code": trainer, "command": train(2, 0.1), "dry_run": True},
        "recovering": {
            **TWO,
            **kept,
            **ENDLESS,
            "command": train(STEPS, 0.2),
            "owner": "ada",
            "max_cost_usd": 100,
            "notify": ["done", "failed", "recovered", "stalled"],
        },
        "keeper": {
            **ONE,
            **kept,
            "code": yard.upload(Path(__file__).with_name("keeper"), "keeper"),
            "command": ["python", "train.py"],
            "market": "spot",
        },
        "unanswered": {**TWO, "code": trainer, "command": train(3, 0.1)},
    }
    return {name: yard.start(request, name) for name, request in requests.items()}


@pytest.fixture(scope="session")
def second_wave(
    yard: Yard, trainer: str, first_wave: dict[str, StartedJob], directors: dict[str, Director]
) -> dict[str, StartedJob]:
    """The interrupted training of the digits; the jobs of test_places.py, test_storage.py and test_scenario_run.py."""
    ended(first_wave["digits"])
    kept = {"code": trainer, "checkpoint_minutes": 0.02}
    wide = {**TWO, **kept, "regions": "auto"}
    spot = json.loads((DIGITS / "spot.json").read_text())
    requests: dict[str, Mapping[str, Any]] = {
        "disturbed": {**spot, "code": yard.upload(DIGITS, "disturbed"), "command": [*spot["command"], *SLOWER]},
        "moved": {**wide, **ENDLESS, "command": train(STEPS, 0.2), "market": "spot"},
        "advised": {**wide, **ENDLESS, "nodes": 1, "command": train(STEPS, 0.2), "market": "spot"},
        "bought": {**wide, "command": train(3, 0.1), "market": "spot-then-on-demand"},
    }
    twice = {"code": trainer, "environment": {"ENDLESS_ATTEMPTS": "2"}}
    requests["twice-lost"] = json.loads((SCENARIOS / "job.json").read_text()) | twice
    for name in STORAGE:
        requests[name] = {**ONE, **kept, "command": train(STEPS, 0.2)} | (ENDLESS if name in LOSE else {})
    begun = yard.work / "begun"
    requests[UNSAVED] = {**requests[UNSAVED], "environment": {"ENDS_AFTER": str(begun)}}
    for director in directors.values():
        director.start()
    threading.Thread(target=tell_begun, args=(directors[UNSAVED], begun), name="begun", daemon=True).start()
    return {name: yard.start(request, name) for name, request in requests.items()}


def tell_begun(director: Director, file: Path) -> None:
    """Makes the file once a fault of the director has begun."""
    until(lambda: director.happened)
    file.touch()


@pytest.fixture(scope="session")
def directors(yard: Yard) -> Iterator[dict[str, Director]]:
    """Of the scenarios of jobs in the second wave, by job; they end when no test is left, at the latest."""
    scenarios = {name: parsed({"faults": faults}, name) for name, faults in STORAGE.items()}
    scenarios["twice-lost"] = load(SCENARIOS / "twice_lost.json")
    of_jobs = {name: Director(yard, name, entries) for name, entries in scenarios.items()}
    yield of_jobs
    for director in of_jobs.values():
        director.end()
