"""A ladder over two regions and two markets, walked on the fake of AWS: one cluster or none, whatever happens on the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from contract.jobs import Job, Market
from tests.builders import JOB, PLACE, rung
from tests.fakes.aws import Aws
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.functions import Functions, Outcome
from tests.fakes.yard import ABROAD, admitted, deployed

HOME, AWAY = PLACE.region, ABROAD.region
THERE = ABROAD.zones[0].name
HERE = rung(), rung("eu-central-1b")
ABROAD_TOO = rung(THERE, region=AWAY)
TYPE = "g5.xlarge"


def spot(job: Job) -> Job:
    return replace(job, ladder=tuple(replace(one, market=Market.SPOT) for one in job.ladder))


WIDE = replace(JOB, ladder=(*HERE, ABROAD_TOO), places={HOME: PLACE, AWAY: ABROAD})
BOTH = replace(WIDE, ladder=(*spot(WIDE).ladder, *WIDE.ladder))


@dataclass
class Yard:
    aws: Aws
    functions: Functions

    def launch(self, *mishaps: Mishap) -> Outcome:
        return self.functions.invoke("launcher", {"job": JOB.id, "attempt": 1}, mishaps)

    def until_over(self, *mishaps: Mishap) -> Outcome:
        """As the machine does it: again while the answer is that it is pending, or while there is none."""
        outcome = self.launch(*mishaps)
        for _ in range(60):
            if not outcome.error or outcome.error in {"CapacityUnavailable", "InvalidRequest", "NodeLost"}:
                return outcome
            self.aws.clock.run(JOB.timing.launch_again_s)
            outcome = self.launch()
        raise AssertionError(f"never over: {outcome}")

    def without(self, region: str, market: Market = Market.ON_DEMAND) -> None:
        """There is no capacity."""
        ec2 = self.aws.ec2[region]
        table = ec2.spot_capacity if market is Market.SPOT else ec2.capacity
        table |= {(TYPE, zone): 0 for zone in ec2.catalogue.zones}

    def running(self) -> dict[str, list[str]]:
        """Markets of what runs, by region."""
        found = {region: ec2.running() for region, ec2 in self.aws.ec2.items()}
        return {
            region: ["spot" if one.is_spot else "on-demand" for one in every]
            for region, every in found.items()
            if every
        }

    def list_launch_calls(self) -> list[tuple[str, str]]:
        """Region and market of each RunInstances."""
        calls = [call for call in self.aws.calls if call.name == "ec2:RunInstances"]
        return [
            (call.region, call.params.get("InstanceMarketOptions", {}).get("MarketType", "on-demand")) for call in calls
        ]


def of(job: Job) -> Iterator[Yard]:
    aws = deployed(places=(PLACE, ABROAD))
    admitted(aws, job)
    yard = Yard(aws, Functions(aws))
    with yard.functions.installed():
        yield yard


@pytest.fixture
def wide() -> Iterator[Yard]:
    yield from of(WIDE)


@pytest.fixture
def both() -> Iterator[Yard]:
    yield from of(BOTH)


@pytest.fixture
def only_spot() -> Iterator[Yard]:
    yield from of(spot(WIDE))


def rungs(outcome: Outcome) -> list[dict[str, Any]]:
    assert outcome.error == "", outcome
    found: list[dict[str, Any]] = outcome.value["rungs"]
    return found


def test_a_region_without_capacity_is_followed_by_the_next_one(wide: Yard) -> None:
    wide.without(HOME)
    shown = rungs(wide.launch())
    assert [(one["region"], one["answer"]) for one in shown] == [
        *[(HOME, "InsufficientInstanceCapacity")] * 2, (AWAY, "launched"),
    ]  # fmt: skip
    assert wide.running() == {AWAY: ["on-demand"] * JOB.nodes}


def test_a_region_that_the_walk_does_not_reach_is_not_asked_anything(wide: Yard) -> None:
    rungs(wide.launch())
    assert {call.region for call in wide.aws.calls if call.service == "ec2"} == {HOME}


def test_a_region_that_cannot_be_asked_does_not_keep_the_walk_from_the_next_one(wide: Yard) -> None:
    wide.aws.faults.add(Kind.DENIED, "ec2:DescribeInstances", times=1, region=HOME)
    shown = rungs(wide.launch())
    assert [(one["region"], one["answer"]) for one in shown] == [
        *[(HOME, "NotAsked: UnauthorizedOperation")] * 2, (AWAY, "launched"),
    ]  # fmt: skip
    assert wide.list_launch_calls() == [(AWAY, "on-demand")]


def test_a_ladder_whose_regions_cannot_be_asked_is_walked_again(wide: Yard) -> None:
    wide.aws.faults.add(Kind.DENIED, "ec2:DescribeInstances", times=2)
    assert wide.launch().error == "CapacityPending"
    assert wide.list_launch_calls() == []
    assert rungs(wide.until_over())[-1]["answer"] == "launched"


def test_a_region_that_answers_no_launch_is_left_only_when_patience_is_over(wide: Yard) -> None:
    """Nobody knows whether it launched: going on at once could make a second cluster."""
    wide.aws.faults.add(Kind.UNREACHABLE, "ec2:RunInstances", times=1000, region=HOME)
    began = wide.aws.clock.now
    shown = rungs(wide.until_over())
    assert [(one["region"], one["answer"]) for one in shown][-1] == (AWAY, "launched")
    assert wide.aws.clock.now - began >= JOB.timing.launch_patience_s
    assert wide.running() == {AWAY: ["on-demand"] * JOB.nodes}


def test_a_quota_of_one_region_leaves_the_other(wide: Yard) -> None:
    wide.aws.ec2[HOME].vcpu_quota = 0
    assert [one["answer"] for one in rungs(wide.launch())] == ["VcpuLimitExceeded"] * 2 + ["launched"]
    assert wide.list_launch_calls() == [(HOME, "on-demand"), (AWAY, "on-demand")]


def test_the_quota_of_spot_leaves_on_demand(both: Yard) -> None:
    for ec2 in both.aws.ec2.values():
        ec2.spot_vcpu_quota = 0
    assert rungs(both.launch())[-1]["market"] == "on-demand"
    assert both.list_launch_calls() == [(HOME, "spot"), (AWAY, "spot"), (HOME, "on-demand")]


def test_spot_without_capacity_anywhere_becomes_on_demand_where_the_market_says_so(both: Yard) -> None:
    both.without(HOME, Market.SPOT)
    both.without(AWAY, Market.SPOT)
    assert rungs(both.launch())[-1]["market"] == "on-demand"
    assert both.running() == {HOME: ["on-demand"] * JOB.nodes}


def test_spot_without_capacity_waits_and_is_never_bought_on_demand_where_the_market_is_spot(only_spot: Yard) -> None:
    only_spot.without(HOME, Market.SPOT)
    only_spot.without(AWAY, Market.SPOT)
    assert only_spot.launch().error == "CapacityPending"
    only_spot.aws.ec2[AWAY].spot_capacity.clear()
    only_spot.aws.clock.run(60)
    assert rungs(only_spot.launch())[-1]["market"] == "spot"
    assert only_spot.running() == {AWAY: ["spot"] * JOB.nodes}


def test_spot_that_never_comes_fails_with_what_every_place_answered(only_spot: Yard) -> None:
    only_spot.without(HOME, Market.SPOT)
    only_spot.without(AWAY, Market.SPOT)
    outcome = only_spot.until_over()
    assert outcome.error == "CapacityUnavailable"
    for zone in ("eu-central-1a", "eu-central-1b", THERE):
        assert f"{TYPE} in {zone} (spot): InsufficientInstanceCapacity" in outcome.cause
    assert {market for _, market in only_spot.list_launch_calls()} == {"spot"}


def test_a_spot_launch_is_of_one_time_and_its_end_is_the_instances(only_spot: Yard) -> None:
    """A persistent request would start a node again that powered itself off."""
    rungs(only_spot.launch())
    (call,) = (call for call in only_spot.aws.calls if call.name == "ec2:RunInstances")
    options = call.params["InstanceMarketOptions"]["SpotOptions"]
    assert options == {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
    assert (call.params["MinCount"], call.params["MaxCount"]) == (JOB.nodes, JOB.nodes)


def deaths() -> Iterator[Any]:
    """Before and after each call; who dies before a call leaves what one left who died after the call before it."""
    for nth in range(1, 26):
        yield pytest.param(nth, Death.BEFORE, marks=pytest.mark.at_length if nth > 1 else ())
        yield nth, Death.AFTER


@pytest.mark.parametrize(("nth", "death"), list(deaths()))
def test_a_launcher_that_is_killed_at_any_call_leaves_one_cluster(nth: int, death: Death) -> None:
    for yard in of(BOTH):
        yard.without(HOME, Market.SPOT)
        shown = rungs(yard.until_over(Mishap("*", nth=nth, death=death)))
        assert shown[-1]["answer"] == "launched"
        assert [len(every) for every in yard.running().values()] == [JOB.nodes]


@pytest.mark.parametrize("kind", [Kind.LOST, Kind.ERROR_AFTER, Kind.UNREACHABLE, Kind.ERROR, Kind.THROTTLED])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_an_answer_that_is_lost_leaves_one_cluster(nth: int, kind: Kind) -> None:
    for yard in of(BOTH):
        yard.without(HOME, Market.SPOT)
        rungs(yard.until_over(Mishap("ec2:RunInstances", nth=nth, fault=kind)))
        assert [len(every) for every in yard.running().values()] == [JOB.nodes]
