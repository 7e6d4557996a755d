"""The weekly summary: well only when everything is, and never silent about what it could not see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contract import metrics, tags
from tests.fakes.faults import Kind
from tests.fakes.reaping import HOUR
from tests.functions.reaper.reaped import Yard, reaped

WEEKLY = {"action": "weekly"}


@pytest.fixture
def yard() -> Iterator[Yard]:
    with reaped() as one:
        one.fake.figures.sums = {metrics.PASSES: 2016.0}
        yield one


def said(yard: Yard) -> tuple[str, str]:
    outcome = yard.reaping.run(WEEKLY)
    assert outcome.error == "", outcome.cause
    return yard.fake.topics.messages[-1]


def test_a_whole_week_of_passes_with_nothing_to_tell_is_well(yard: Yard) -> None:
    subject, message = said(yard)
    assert subject == "Trainyard yard: all is well"
    assert "made 2016 passes in the last 7 days; 2016 were due" in message
    assert "Instances now: none." in message


@pytest.mark.parametrize("passes", [0.0, 1.0, 1814.0])
def test_too_few_passes_are_not_well(yard: Yard, passes: float) -> None:
    yard.fake.figures.sums = {metrics.PASSES: passes}
    subject, message = said(yard)
    assert subject == "Trainyard yard: please check"
    assert "That is too few" in message


def test_a_few_missing_passes_are_well(yard: Yard) -> None:
    yard.fake.figures.sums = {metrics.PASSES: 1815.0}
    assert said(yard)[0].endswith("all is well")


@pytest.mark.parametrize("name", [metrics.TOLD, metrics.REFUSED, metrics.LIMITED, metrics.FAILED_REGIONS])
def test_anything_that_somebody_should_look_at_is_not_well(yard: Yard, name: str) -> None:
    yard.fake.figures.sums[name] = 1.0
    assert said(yard)[0].endswith("please check")


@pytest.mark.parametrize("name", [metrics.ENDED, metrics.SEEN, metrics.WOULD_END])
def test_what_the_reaper_is_there_for_is_well(yard: Yard, name: str) -> None:
    yard.fake.figures.sums[name] = 40.0
    assert said(yard)[0].endswith("all is well")


def test_what_runs_is_counted_by_region_and_state_and_what_ends_is_not(yard: Yard) -> None:
    for _ in range(3):
        yard.instance()
    yard.instance().stopped_at = yard.now
    yard.ec2.end(yard.instance(), "said", "the test")
    yard.instance({tags.DEPLOYMENT: "other"})
    yard.fake.clock.run(60)
    assert "Instances now: 3 in eu-central-1 (running), 1 in eu-central-1 (stopped)." in said(yard)[1]


def test_protected_instances_are_named(yard: Yard) -> None:
    machine = yard.instance({tags.PROTECTED: "debugging"}, age=26 * HOUR)
    message = said(yard)[1]
    assert f"- {machine.id} (g5.xlarge) in eu-central-1, job job-1, owner ada, launched 2027-01-14 06:00 UTC" in message


def test_a_region_that_does_not_answer_is_named_and_is_not_well(yard: Yard) -> None:
    yard.fake.faults.add(Kind.DENIED, "ec2:DescribeInstances")
    subject, message = said(yard)
    assert subject.endswith("please check")
    assert "eu-central-1 could not be read" in message


def test_it_ends_nothing(yard: Yard) -> None:
    yard.instance(deadline=-HOUR)
    said(yard)
    assert yard.written() == ["sns:Publish"]


@pytest.mark.parametrize("call", ["sns:Publish", "cloudwatch:GetMetricData"])
def test_a_word_that_cannot_be_sent_is_an_error(yard: Yard, call: str) -> None:
    yard.fake.faults.add(Kind.DENIED, call, times=100)
    assert yard.reaping.run(WEEKLY).error == "ClientError"
