"""Jobs that wait for capacity of several regions and markets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from contract.jobs import Job, Market, Rung
from localaws.services.ec2_instance import Machine
from tests.builders import JOB, PLACE, rung
from tests.fakes.faults import Kind
from tests.fakes.functions import CLOCK_S
from tests.fakes.yard import ABROAD
from tests.functions.launcher.waiting import AWAY_S, HOUR, WaitingYard, waiting

HOME, AWAY = PLACE.region, ABROAD.region
PLACES = {HOME: PLACE, AWAY: ABROAD}
WIDE = (rung(), rung("eu-central-1b"), rung(ABROAD.zones[0].name, region=AWAY))
SPOT = tuple(replace(one, market=Market.SPOT) for one in WIDE)
A_ROUND_S = 1500.0
"""Longer than the longest pause between two tries, and a try."""
LONG_S = 1.5 * HOUR
"""In which pauses have grown to their longest."""


@pytest.fixture
def yard() -> Iterator[WaitingYard]:
    with waiting(places=(PLACE, ABROAD)) as made:
        yield made


MOST = 100_000
ATTEMPTS = 4
"""Of a call in a client that asks several regions (`aws.clients.BRISK`)."""


def start(yard: WaitingYard, ladder: tuple[Rung, ...], name: str = JOB.id) -> None:
    yard.start(name, ladder=ladder, places=PLACES)
    yard.run(AWAY_S)
    assert yard.executions[name].state == "Wait for capacity"


def running(yard: WaitingYard) -> dict[str, list[Machine]]:
    return {region: every for region, ec2 in yard.aws.ec2.items() if (every := ec2.running())}


def silence(yard: WaitingYard, region: str) -> None:
    """EC2 of the region answers nobody, for as long as the test lasts."""
    yard.aws.faults.add(Kind.UNREACHABLE, "ec2:*", region=region, times=MOST)


def test_a_job_that_waits_goes_wherever_capacity_comes_first(yard: WaitingYard) -> None:
    start(yard, WIDE)
    yard.run(LONG_S)
    yard.free(AWAY)
    yard.run(A_ROUND_S)
    assert yard.executions[JOB.id].state == "Train"
    assert {region: len(every) for region, every in running(yard).items()} == {AWAY: JOB.nodes}


def test_spot_that_is_nowhere_is_waited_for_and_never_bought_on_demand(yard: WaitingYard) -> None:
    start(yard, SPOT)
    yard.aws.ec2[HOME].capacity.clear()  # on demand there is capacity all the time
    yard.run(LONG_S)
    assert running(yard) == {}
    yard.free(HOME)
    yard.run(A_ROUND_S)
    assert [one.is_spot for one in running(yard)[HOME]] == [True] * JOB.nodes


def test_where_the_market_says_so_whichever_market_has_capacity_first_ends_the_wait(yard: WaitingYard) -> None:
    start(yard, (*SPOT, *WIDE))
    yard.run(HOUR)
    yard.aws.ec2[AWAY].capacity.clear()
    yard.run(A_ROUND_S)
    assert [one.is_spot for one in running(yard)[AWAY]] == [False] * JOB.nodes


def test_a_region_that_answers_nothing_keeps_no_waiting_job_from_another_region(yard: WaitingYard) -> None:
    start(yard, WIDE)
    silence(yard, HOME)
    yard.run(HOUR)
    yard.free(AWAY)
    yard.run(A_ROUND_S)
    assert list(running(yard)) == [AWAY]
    assert "NotAsked" in yard.document()["rungs"][0]["answer"]


def test_of_a_silent_region_a_turn_waits_for_one_answer_and_not_for_one_a_job(yard: WaitingYard) -> None:
    for number in range(8):
        yard.start(f"job-{number}", ladder=WIDE, places=PLACES)
    yard.run(AWAY_S)
    silence(yard, HOME)
    before = sum(wait.tries for wait in yard.waits())
    yard.run(HOUR / 2)
    (silent,) = yard.aws.faults.waiting
    unanswered = (MOST - silent.times) / ATTEMPTS
    tries = sum(wait.tries for wait in yard.waits()) - before
    assert 0 < unanswered <= HOUR / 2 / CLOCK_S < tries


def test_a_job_whose_regions_are_all_silent_waits_on(yard: WaitingYard) -> None:
    start(yard, WIDE)
    for region in (HOME, AWAY):
        silence(yard, region)
    yard.run(LONG_S)
    assert yard.executions[JOB.id].state == "Wait for capacity"
    assert running(yard) == {}


def test_a_waiting_job_holds_no_security_group_in_any_region(yard: WaitingYard) -> None:
    start(yard, WIDE)
    yard.run(HOUR)
    assert yard.taken() == set()


def test_a_launch_abroad_has_the_deadline_of_a_job_that_waited(yard: WaitingYard) -> None:
    start(yard, WIDE)
    admitted: Job = yard.job()
    yard.run(LONG_S)
    yard.free(AWAY)
    yard.run(A_ROUND_S)
    assert yard.executions[JOB.id].deadline >= admitted.deadline + LONG_S


def test_walks_that_are_in_doubt_in_a_silent_region_cost_a_turn_one_time_out_together() -> None:
    """Each looks what it launched there before it begins anew."""
    with waiting(1200.0, places=(PLACE, ABROAD)) as yard:
        for number in range(3):
            yard.start(f"job-{number}", ladder=WIDE, places=PLACES)
        yard.run(AWAY_S)
        yard.aws.faults.add(Kind.UNREACHABLE, "ec2:RunInstances", region=HOME, times=MOST)
        yard.run(HOUR)
        yard.aws.faults.waiting.clear()
        silence(yard, HOME)
        yard.run(HOUR)
        (silent,) = yard.aws.faults.waiting
        assert 0 < MOST - silent.times <= ATTEMPTS * HOUR / 1200.0
