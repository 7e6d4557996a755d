"""Prices of a job that waits: asked for again once they are old, and the cheaper place of a type comes first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from contract.intents import LaunchAnswer, LaunchOutcome, Step
from contract.jobs import Job, Market
from launcher import policy, prices, walk
from launcher.arguments import LaunchMarks
from launcher.prices import Priced
from tests.builders import INTENT, JOB, NOW, PLACE, rung
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.yard import home
from tests.functions.launcher.waiting import AWAY_S, HOUR, WaitingYard, waiting
from tests.properties.retrying import WAIT

LAST_S = JOB.timing.spot_prices_s
HERE, TYPE = PLACE.region, "g5.xlarge"
TRY_S = 1.5 * JOB.timing.wait_longest_s + 300
"""Within this time there is a next try."""
A, B = (replace(rung(f"eu-central-1{letter}"), market=Market.SPOT, usd=usd) for letter, usd in (("a", 0.2), ("b", 0.4)))
BOUGHT = rung("eu-central-1a")
OTHER = replace(A, instance_type="g4dn.xlarge", usd=0.01)
SPOT = replace(JOB, ladder=(A, B, BOUGHT, OTHER))
WALK = policy.Walk(
    number=2,
    started_at=NOW,
    patience_until=NOW,
    holder="me",
    held_until=NOW,
    marks=LaunchMarks(profile="profile"),
    user_data="data",
    waiting=True,
)


def build_prices(a: float | None, b: float | None, *, at: float = NOW) -> dict[prices.Kind, Priced]:
    usd = {one.zone: price for one, price in ((A, a), (B, b)) if price is not None}
    return {(HERE, TYPE): Priced(at=at, usd=usd)}


def zones(job: Job, known: dict[prices.Kind, Priced]) -> list[tuple[str, str, str]]:
    return [(one.instance_type, one.zone[-1], one.market.value) for one in prices.order_ladder(job, known)]


BEFORE = [(TYPE, "a", "spot"), (TYPE, "b", "spot"), (TYPE, "a", "on-demand"), ("g4dn.xlarge", "a", "spot")]
SWAPPED = [BEFORE[1], BEFORE[0], *BEFORE[2:]]


def test_the_place_that_is_cheaper_now_comes_first_within_its_type_and_market() -> None:
    assert zones(SPOT, build_prices(0.9, 0.3)) == SWAPPED


@pytest.mark.parametrize(
    "known",
    [
        {},
        build_prices(None, None),
        build_prices(0.1, 0.2),
        build_prices(0.3, None),
        {("eu-west-1", TYPE): build_prices(0.9, 0.1)[HERE, TYPE]},
    ],
    ids=["not asked", "nothing said", "still cheaper", "the other keeps its old price", "another region"],
)
def test_the_order_stays_where_no_price_says_otherwise(known: dict[prices.Kind, Priced]) -> None:
    assert zones(SPOT, known) == BEFORE


def test_an_unknown_price_comes_after_those_that_are_known() -> None:
    unknown = replace(SPOT, ladder=(replace(A, usd=None), *SPOT.ladder[1:]))
    assert zones(unknown, build_prices(None, 5.0)) == SWAPPED


def test_prices_of_on_demand_are_not_touched() -> None:
    assert [one for one in prices.order_ladder(SPOT, build_prices(0.9, 0.3)) if one.market is Market.ON_DEMAND] == [
        BOUGHT
    ]


def test_prices_are_asked_for_once_those_of_the_admission_are_an_hour_old() -> None:
    assert prices.list_wanted(SPOT, {}, now=NOW + LAST_S - 1) == {}
    assert prices.list_wanted(SPOT, {}, now=NOW + LAST_S) == {HERE: [TYPE, "g4dn.xlarge"]}


def test_what_is_known_already_and_what_is_bought_on_demand_are_not_asked_for() -> None:
    assert prices.list_wanted(SPOT, build_prices(0.1, 0.2), now=NOW + LAST_S) == {HERE: ["g4dn.xlarge"]}
    assert prices.list_wanted(replace(JOB, ladder=(BOUGHT,)), {}, now=NOW + LAST_S) == {}


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (replace(A, usd=None), "unknown"),
        (A, "$0.2000 an hour of one node, when the job was admitted"),
        (replace(A, priced_at=NOW - 600), "$0.2000 an hour of one node, 10 min ago"),
    ],
)
def test_people_are_told_how_old_a_price_is_or_that_it_is_unknown(one: prices.Rung, words: str) -> None:
    assert prices.describe_price(one, now=NOW) == words


@pytest.fixture
def yard() -> Iterator[WaitingYard]:
    """A job that waits for spot capacity, in the order of its admission: the first zone was the cheaper one."""
    with waiting() as made:
        home(made.aws).spot_capacity = {(TYPE, one.zone): 0 for one in (A, B)}
        made.start(ladder=(A, B))
        made.run(AWAY_S)
        assert made.executions[JOB.id].state == WAIT
        yield made


def prices_are(yard: WaitingYard, a: float, b: float) -> None:
    home(yard.aws).spot_prices = {(TYPE, A.zone): a, (TYPE, B.zone): b}


def test_a_job_that_waited_starts_in_the_place_that_is_cheaper_by_then(yard: WaitingYard) -> None:
    prices_are(yard, 0.9, 0.3)
    yard.run(2 * HOUR)
    home(yard.aws).spot_capacity.clear()
    yard.run(TRY_S)
    assert {one.zone for one in yard.running()} == {B.zone}
    assert [rung["price"] for rung in yard.document()["rungs"]] == ["$0.3000 an hour of one node, 0 min ago"]


def test_a_job_whose_prices_are_fresh_asks_for_none(yard: WaitingYard) -> None:
    prices_are(yard, 0.9, 0.3)
    home(yard.aws).spot_capacity.clear()
    yard.run(HOUR / 4)
    assert {one.zone for one in yard.running()} == {A.zone}
    assert yard.calls("ec2:DescribeSpotPriceHistory") == []


def test_prices_that_cannot_be_read_leave_the_order_and_the_log_says_so(yard: WaitingYard) -> None:
    prices_are(yard, 0.9, 0.3)
    yard.aws.faults.add(Kind.DENIED, "ec2:DescribeSpotPriceHistory", times=10_000)
    yard.run(2 * HOUR)
    home(yard.aws).spot_capacity.clear()
    with mock.patch.object(walk.logger, "warning") as warned:
        yard.run(TRY_S)
    assert {one.zone for one in yard.running()} == {A.zone}
    assert "EC2 gave no spot prices" in str(warned.call_args)
    assert [rung["price"] for rung in yard.document()["rungs"]] == [
        "$0.2000 an hour of one node, when the job was admitted"
    ]


@pytest.mark.parametrize("lie", [float("nan"), float("inf"), -1.0, 0.0])
def test_a_price_that_can_be_none_is_no_price(yard: WaitingYard, lie: float) -> None:
    prices_are(yard, lie, 0.3)
    yard.run(2 * HOUR)
    assert [rung["price"].partition(" ")[0] for rung in yard.document()["rungs"]] == ["$0.2000", "$0.3000"]


def test_a_price_history_without_end_is_read_in_part(yard: WaitingYard) -> None:
    ec2, pages = home(yard.aws), Counter[str]()
    serve = ec2.answer

    def endless(operation: str, params: Any) -> dict[str, Any]:
        more = serve(operation, params)
        if operation == "DescribeSpotPriceHistory":
            pages[operation] += 1
            more["NextToken"] = str(pages[operation])
        return more

    with mock.patch.object(ec2, "answer", endless):
        yard.run(HOUR + TRY_S)
    assert "Sandbox.Timedout" not in {outcome for _, _, outcome in yard.functions.log}


def test_jobs_that_wait_share_the_prices_of_a_turn(yard: WaitingYard) -> None:
    for number in range(5):
        yard.start(f"job-more-{number}", ladder=(A, B))
    yard.run(2 * HOUR)
    tried = len(yard.calls("ec2:DescribeSpotPriceHistory"))
    turns = len({round(at / 60) for at in yard.launched_at})
    assert 0 < tried <= turns


@pytest.mark.parametrize("death", list(Death))
def test_a_walk_that_is_claimed_keeps_its_order(yard: WaitingYard, death: Death) -> None:
    """Its intent is written: whoever takes it over sends the same bytes to the same place."""
    prices_are(yard, 0.2, 0.3)
    yard.run(2 * HOUR)
    home(yard.aws).spot_capacity.clear()
    yard.before_a_try()
    yard.armed["launcher"] = [Mishap("ec2:RunInstances", death=death)]
    yard.run(60)
    prices_are(yard, 0.9, 0.3)
    yard.run(TRY_S)
    assert [one.zone for one in yard.running()] == [A.zone] * JOB.nodes


def test_a_walk_that_goes_on_asks_what_is_left_of_it_though_prices_have_changed_the_order() -> None:
    """By the new order, the place that was asked would be asked again, and the other never."""
    empty = LaunchAnswer(outcome=LaunchOutcome.NO_CAPACITY, at=NOW, code="InsufficientInstanceCapacity")
    before = replace(
        INTENT, steps=(Step(rung=A, request={"a": 1}, answer=empty), Step(rung=B, request={}, answer=None))
    )
    now = replace(SPOT, ladder=prices.order_ladder(replace(SPOT, ladder=(A, B)), build_prices(0.9, 0.3)))
    assert [one.zone for one in now.ladder] == [B.zone, A.zone]
    fresh = policy.plan(policy.order_like(now, before), 1, WALK, passed_over={})
    going_on = policy.carry_answers(fresh, before)
    assert [(step.rung, step.answer) for step in going_on.steps] == [(A, empty), (B, None)]


def test_a_price_history_that_hangs_keeps_no_waiting_job_from_its_turn(yard: WaitingYard) -> None:
    """Each job has a type of its own, and so asks for prices of its own."""
    for number, name in enumerate(("g5.12xlarge", "g4dn.xlarge", "g6.8xlarge", "p4d.24xlarge", "p5.48xlarge")):
        mine = tuple(replace(one, instance_type=name) for one in (A, B))
        home(yard.aws).spot_capacity |= {(name, one.zone): 0 for one in mine}
        yard.start(f"job-more-{number}", ladder=mine)
    yard.run(AWAY_S)
    assert len(yard.waits()) == 6
    yard.aws.faults.add(Kind.LOST, "ec2:DescribeSpotPriceHistory", times=10_000)
    yard.run(HOUR)
    assert yard.aws.faults.waiting[0].times < 10_000
    assert "Sandbox.Timedout" not in {outcome for _, _, outcome in yard.functions.log}
