"""A pass writes one line of metrics for all jobs that train, and names the jobs whose checkpoints are too old in its log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from aws_lambda_powertools.metrics.provider.cloudwatch_emf import cloudwatch

from attendant import passes as attendant_passes
from contract import metrics, names
from contract.reports import Phase
from tests.builders import NOW
from tests.fakes.fleet import WORKING, Fleet

TICK = {"source": "aws.events"}
OLD = replace(WORKING, closed_step=40, closed_s=2500.0, commit_s=700.0)


class Watched:
    """A fleet of three jobs of one node each, with the lines that its attendant prints and logs."""

    def __init__(self) -> None:
        self.fleet = Fleet([1] * 3, now=NOW)
        self.printed, self.warned = list[str](), list[tuple[str, dict[str, Any]]]()

    def report(self, job: int, **fields: Any) -> None:
        one = self.fleet.jobs[job].id
        self.fleet._report(replace(OLD, **fields), one, 0, self.fleet.instances[one][0])

    def run_pass(self, event: dict[str, Any] | None = None) -> None:
        outcome = self.fleet.functions.invoke("attendant", event or TICK)
        assert outcome.error == "", outcome.cause

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(one) for one in self.printed]


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched()
    with ExitStack() as stack:
        stack.enter_context(made.fleet.functions.installed())
        stack.enter_context(mock.patch.object(cloudwatch, "print", made.printed.append, create=True))
        warn = lambda what, **fields: made.warned.append((what, fields))  # noqa: E731
        stack.enter_context(mock.patch.object(attendant_passes.logger, "warning", warn))
        yield made


def test_a_pass_writes_one_line_with_the_worst_of_all_jobs(watched: Watched) -> None:
    watched.report(1)
    watched.run_pass()
    (line,) = watched.lines
    (embedded,) = line["_aws"]["CloudWatchMetrics"]
    assert (embedded["Namespace"], embedded["Dimensions"]) == (names.METRICS, [[metrics.DEPLOYMENT]])
    assert {one["Name"]: one["Unit"] for one in embedded["Metrics"]}.items() <= metrics.UNITS.items()
    assert line[metrics.CHECKPOINT_AGE] == [pytest.approx(100 * 2500 / 600, rel=0.01)]
    assert line[metrics.COMMIT_SECONDS] == [700.0]
    assert line[metrics.COMMIT_SHARE] == [pytest.approx(100 * 700 / 600)]


def test_a_pass_names_the_job_whose_checkpoint_is_too_old_and_no_other(watched: Watched) -> None:
    watched.report(1)
    watched.run_pass()
    ((what, told), *others) = [one for one in watched.warned if one[0] == "the newest checkpoint is old"]
    assert others == []
    assert (told["job"], told["attempt"], told["step"]) == (watched.fleet.jobs[1].id, 1, 40)
    assert "is missed" in told["todo"]
    assert what


def test_a_deployment_in_which_nothing_trains_writes_no_value(watched: Watched) -> None:
    for job in range(3):
        watched.report(job, phase=Phase.PREPARING)
    watched.run_pass()
    assert watched.printed == []


def test_a_deployment_without_jobs_writes_no_value() -> None:
    fleet, printed = Fleet([], now=NOW), list[str]()
    with fleet.functions.installed(), mock.patch.object(cloudwatch, "print", printed.append, create=True):
        assert fleet.functions.invoke("attendant", TICK).error == ""
    assert printed == []


def test_a_look_that_an_event_asks_for_writes_no_value(watched: Watched) -> None:
    """Whoever makes his nodes report urgently cannot have values written that way."""
    watched.report(1)
    watched.run_pass({"action": "await", "job": watched.fleet.jobs[1].id})
    assert watched.printed == []
    assert watched.warned == []


def test_a_value_that_no_node_could_measure_does_not_spoil_the_line(watched: Watched) -> None:
    watched.report(0, closed_s=1e300, commit_s=1e300)
    watched.report(1, closed_s=-1e300, commit_s=-1e300)
    watched.run_pass()
    (line,) = watched.lines
    attempt_s = 3600 + 60
    assert 0 <= line[metrics.CHECKPOINT_AGE][0] <= 100 * attempt_s / 600
    assert 0 <= line[metrics.COMMIT_SECONDS][0] <= attempt_s
