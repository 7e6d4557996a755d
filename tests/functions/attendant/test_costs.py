"""What running attempts cost is counted from launches and prices, and the job that comes near its cap is named, however late the look."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from typing import Any
from unittest import mock

import pytest
from aws_lambda_powertools.metrics.provider.cloudwatch_emf import cloudwatch

from attendant import passes as attendant_passes
from attendant.costs import RunningCost, figures, is_near_cap, running_cost
from attendant.rounds import AGAIN_S
from contract import items, metrics
from contract.codec import decode, encode
from contract.intents import Intent
from contract.money import NEAR_CAP_PERCENT
from tests.builders import INTENT, JOB, LAUNCHED, NOW, rung
from tests.fakes import state
from tests.fakes.fleet import Fleet

HOUR_S = 3600.0
PAID = replace(rung(), most_usd=5.0)
WALK = replace(
    INTENT, attempt=2, started_at=NOW, spent_usd=30.0, steps=(replace(INTENT.steps[0], rung=PAID, answer=LAUNCHED),)
)
CAPPED = replace(JOB, max_cost_usd=100.0)


def cost(now: float, **fields: Any) -> RunningCost:
    return running_cost(replace(CAPPED, **fields), 2, WALK, PAID, now=now)


def test_the_attempts_before_count_and_the_hours_of_this_one() -> None:
    found = cost(NOW + 3 * HOUR_S)
    assert (found.usd, found.hourly_usd, found.share_percent) == (60.0, 10.0, 60.0)


def test_a_job_without_a_cap_has_no_share() -> None:
    found = cost(NOW + HOUR_S, max_cost_usd=None)
    assert (found.share_percent, found.hourly_usd) == (None, 10.0)
    assert not is_near_cap(found, (60.0,))


def test_a_price_that_is_not_known_is_no_figure() -> None:
    walk = replace(WALK, steps=(replace(WALK.steps[0], rung=rung()),))
    found = running_cost(CAPPED, 2, walk, rung(), now=NOW + HOUR_S)
    assert figures([found]) == {}
    assert not is_near_cap(found, (60.0,))


def test_a_clock_behind_the_launch_makes_no_cost_below_what_was_spent() -> None:
    assert cost(NOW - HOUR_S).usd == pytest.approx(30.0 + 10 / 60)  # a minute is billed at least


def test_of_several_jobs_the_largest_share_and_the_sum_of_the_hours() -> None:
    several = [cost(NOW), cost(NOW + 3 * HOUR_S), cost(NOW, max_cost_usd=None)]
    assert figures(several) == {metrics.COST_SHARE: 60.0, metrics.RUNNING_USD: 30.0}
    assert figures([]) == {}


def lines(gap_s: float, *, hours: float = 7.0, first_s: float = 0.0) -> list[float]:
    """When, in seconds since the cap came near, a line was written: by passes so far apart, on a job that reaches 80 % after 5 hours."""
    near = NOW + 5 * HOUR_S
    times = [NOW + first_s + gap_s * number for number in range(1, int(hours * HOUR_S / gap_s))]
    return [at - near for at in times if is_near_cap(cost(at), (gap_s,))]


def test_a_job_is_named_once_when_its_cap_comes_near_and_then_every_quarter_of_an_hour() -> None:
    found = lines(59.0)
    assert 0 < found[0] <= 60
    assert len(found) == pytest.approx(2 * HOUR_S / AGAIN_S, abs=2)


@pytest.mark.parametrize("gap_s", [7.0, 61.0, 240.0, 700.0])
def test_a_late_pass_loses_no_line(gap_s: float) -> None:
    found = lines(gap_s)
    assert 0 < found[0] <= gap_s
    assert all(later - earlier <= AGAIN_S + gap_s for earlier, later in pairwise(found))


def test_a_job_far_from_its_cap_is_not_named() -> None:
    assert not is_near_cap(cost(NOW + 4.9 * HOUR_S), (60.0,))


def test_a_new_attempt_that_begins_near_the_cap_is_named_at_once() -> None:
    near = running_cost(CAPPED, 2, replace(WALK, spent_usd=90.0), PAID, now=NOW + 30)
    assert is_near_cap(near, (60.0,))


# A pass


class Watched:
    """A fleet of three jobs of one node each, of $5 an hour, the second with a cap of $6.20, an hour after their launches."""

    def __init__(self) -> None:
        self.fleet = Fleet([1] * 3, now=NOW)
        self.printed, self.warned = list[str](), list[tuple[str, dict[str, Any]]]()
        for number, job in enumerate(self.fleet.jobs):
            key = items.launch(job.id, 1, 1)
            stored = state.stored(self.fleet.aws, key)
            assert stored is not None
            walk = decode(Intent, stored)
            steps = tuple(replace(one, rung=replace(one.rung, most_usd=5.0)) for one in walk.steps)
            state.store(self.fleet.aws, key, encode(replace(walk, started_at=NOW - HOUR_S, steps=steps)))
            if number == 1:
                state.store(self.fleet.aws, items.job(job.id), encode(replace(job, max_cost_usd=6.2)))


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched()
    with ExitStack() as stack:
        stack.enter_context(made.fleet.functions.installed())
        stack.enter_context(mock.patch.object(cloudwatch, "print", made.printed.append, create=True))
        warn = lambda what, **fields: made.warned.append((what, fields))  # noqa: E731
        stack.enter_context(mock.patch.object(attendant_passes.logger, "warning", warn))
        yield made


def test_a_pass_writes_what_runs_and_names_the_job_near_its_cap(watched: Watched) -> None:
    assert watched.fleet.functions.invoke("attendant", {"source": "aws.events"}).error == ""
    (line,) = map(json.loads, watched.printed)
    assert line[metrics.COST_SHARE] == [pytest.approx(100 * 5 / 6.2, rel=0.01)]
    assert line[metrics.COST_SHARE][0] > NEAR_CAP_PERCENT
    assert line[metrics.RUNNING_USD] == [15.0]
    (embedded,) = line["_aws"]["CloudWatchMetrics"]
    assert {one["Name"]: one["Unit"] for one in embedded["Metrics"]}.items() <= metrics.UNITS.items()
    named = [told for what, told in watched.warned if what == "the cost is near the cap"]
    assert [(one["job"], one["max_cost_usd"]) for one in named] == [(watched.fleet.jobs[1].id, 6.2)]


def test_what_runs_costs_no_read_more(watched: Watched) -> None:
    watched.fleet.functions.invoke("attendant", {"source": "aws.events"})
    read = [call for call in watched.fleet.aws.calls if call.operation in {"GetItem", "Query", "BatchGetItem"}]
    partitions = [str(call.params) for call in read]
    assert not [one for one in partitions if items.CLOSED in one]
    assert len([one for one in partitions if items.LAUNCHES in one]) == 3
