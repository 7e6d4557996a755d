"""Launches into reservations: nothing beside them, a block that is waited for, and the end that a block gives its jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from contract import tags
from contract.jobs import Market, Rung
from localaws.services.ec2_capacity import CapacityReservation
from localaws.services.ec2_reservations import reserve
from tests.builders import JOB, NOW, PLACE, rung
from tests.fakes.yard import home
from tests.functions.launcher.waiting import AWAY_S, HOUR, PATIENCE_S, WaitingYard, waiting

ZONE = PLACE.zones[0].name
WAIT, TRAIN = "Wait for capacity", "Train"
A_ROUND_S = 1500.0
"""Longer than the longest pause between two tries, and a try."""


@pytest.fixture
def yard() -> Iterator[WaitingYard]:
    with waiting() as made:
        yield made


def bought(yard: WaitingYard, total: int = JOB.nodes, **more: Any) -> CapacityReservation:
    return reserve(home(yard.aws), "g5.xlarge", ZONE, total, tags={tags.DEPLOYMENT: JOB.deployment}, **more)


def block(yard: WaitingYard, *, begins_at: float = NOW, hours: float = 24.0) -> CapacityReservation:
    """Its nodes begin to end after `hours`."""
    return bought(yard, kind="capacity-block", begins_at=begins_at, ends_at=begins_at + hours * HOUR + 1800)


def of(one: CapacityReservation) -> tuple[Rung, ...]:
    """What Admit makes of it."""
    is_block = one.kind == "capacity-block"
    return (
        replace(
            rung(ZONE),
            market=Market.CAPACITY_BLOCK if is_block else Market.RESERVATION,
            cluster=False,
            reservation=one.id,
            begins_at=one.begins_at if one.begins_at > NOW else 0.0,
            ends_at=None if one.ends_at is None else one.ends_at - 1800,
        ),
    )


def start(yard: WaitingYard, one: CapacityReservation, name: str = JOB.id, **changes: Any) -> None:
    yard.start(name, ladder=of(one), **changes)


def launches(yard: WaitingYard) -> list[dict[str, Any]]:
    return [call.params for call in yard.calls("ec2:RunInstances")]


def test_a_reservation_is_used_although_nowhere_else_is_capacity(yard: WaitingYard) -> None:
    one = bought(yard)
    start(yard, one)
    yard.run(60)
    assert yard.executions[JOB.id].state == TRAIN
    (asked,) = launches(yard)
    target = {"CapacityReservationTarget": {"CapacityReservationId": one.id}}
    assert asked["CapacityReservationSpecification"] == target
    assert "InstanceMarketOptions" not in asked
    assert "GroupName" not in asked["Placement"]


def test_a_launch_into_a_block_names_its_market(yard: WaitingYard) -> None:
    start(yard, block(yard))
    yard.run(60)
    (asked,) = launches(yard)
    assert asked["InstanceMarketOptions"] == {"MarketType": "capacity-block"}


def test_a_full_reservation_is_waited_for_and_nothing_is_bought_beside_it(yard: WaitingYard) -> None:
    one = bought(yard)
    start(yard, one, "first")
    yard.run(60)
    yard.free()  # on demand there is capacity now
    start(yard, one, "second")
    yard.run(AWAY_S + HOUR)
    assert yard.executions["second"].state == WAIT
    assert len(yard.running()) == JOB.nodes
    yard.abort("first")
    yard.run(A_ROUND_S)
    assert yard.executions["second"].state == TRAIN
    assert yard.document("second")["rungs"][-1]["answer"] == "launched"


def test_a_full_reservation_fails_a_job_that_does_not_wait_with_its_name(yard: WaitingYard) -> None:
    one = bought(yard, total=JOB.nodes - 1)
    start(yard, one, hours=0.0)
    yard.run(PATIENCE_S + 120)
    error, cause = yard.executions[JOB.id].problem or ("", "")
    assert error == "CapacityUnavailable"
    assert "ReservationCapacityExceeded" in cause
    assert yard.running() == []


def test_a_block_that_begins_later_is_asked_for_when_it_begins_and_not_before(yard: WaitingYard) -> None:
    begins = NOW + 3 * HOUR
    start(yard, block(yard, begins_at=begins))
    yard.run(60)
    assert yard.executions[JOB.id].state == WAIT
    yard.run(3 * HOUR - 61)
    assert launches(yard) == []
    yard.run(150)
    assert yard.executions[JOB.id].state == TRAIN
    assert len(launches(yard)) == 1


def test_people_see_when_a_block_begins_and_when_the_next_try_is(yard: WaitingYard) -> None:
    start(yard, block(yard, begins_at=NOW + 30 * HOUR))
    yard.run(60)
    told = yard.document()
    assert told["next_try_at"] == "2027-01-16 14:00:00 UTC"
    assert told["rungs"][0]["answer"] == "NotAsked: begins 2027-01-16 14:00:00 UTC"


def test_a_block_that_is_late_is_asked_for_again(yard: WaitingYard) -> None:
    one = block(yard, begins_at=NOW + HOUR)
    start(yard, one)
    one.begins_at += HOUR
    yard.run(HOUR + 120)
    assert yard.executions[JOB.id].state == WAIT
    yard.run(HOUR + A_ROUND_S)
    assert yard.executions[JOB.id].state == TRAIN


def test_a_block_that_was_cancelled_ends_the_job_in_ec2s_words(yard: WaitingYard) -> None:
    one = block(yard, begins_at=NOW + HOUR)
    start(yard, one)
    one.cancelled = True
    yard.run(HOUR + 180)
    error, cause = yard.executions[JOB.id].problem or ("", "")
    assert error == "InvalidRequest"
    assert f"The Capacity Reservation {one.id} is not active" in cause


def test_the_deadline_of_a_job_is_never_later_than_the_end_of_its_block(yard: WaitingYard) -> None:
    one = block(yard, hours=25)
    bought_out = bought(yard)
    start(yard, bought_out, "other")
    one.total = 0
    start(yard, one)
    yard.run(1.5 * HOUR)
    one.total = JOB.nodes
    yard.run(A_ROUND_S)
    assert yard.executions[JOB.id].state == TRAIN
    ends = NOW + 25 * HOUR
    assert yard.executions[JOB.id].deadline == ends
    marks = [machine.tags for machine in yard.running() if machine.tags[tags.JOB] == JOB.id]
    assert {one[tags.DEADLINE] for one in marks} == {str(int(ends))}


def test_a_block_leaves_the_deadline_of_a_job_that_ends_before_it(yard: WaitingYard) -> None:
    start(yard, block(yard, hours=100))
    yard.run(60)
    assert yard.executions[JOB.id].deadline == JOB.deadline


def test_what_runs_in_a_block_is_ended_with_it_and_the_job_knew(yard: WaitingYard) -> None:
    start(yard, block(yard, hours=1))
    yard.run(60)
    assert len(yard.running()) == JOB.nodes
    yard.run(2 * HOUR)
    assert yard.running() == []


def test_the_token_of_a_reservation_is_its_own(yard: WaitingYard) -> None:
    for name, one in (("first", bought(yard)), ("second", bought(yard))):
        start(yard, one, name)
    yard.run(60)
    assert len({asked["ClientToken"] for asked in launches(yard)}) == 2
    assert len(yard.running()) == 2 * JOB.nodes


def test_an_answer_without_begin_is_no_call(yard: WaitingYard) -> None:
    """Launch's patience is not used up by a block of next week."""
    start(yard, block(yard, begins_at=NOW + 100 * HOUR))
    yard.run(PATIENCE_S / 2)
    assert yard.executions[JOB.id].state == WAIT
    assert yard.calls("ec2:DescribeInstances") == []


def test_a_block_that_has_ended_is_asked_for_no_more_and_the_wait_is_over(yard: WaitingYard) -> None:
    """In its last half hour AWS ends its nodes: what is launched then is born too late."""
    one = block(yard, hours=1)
    one.total = 0
    start(yard, one)
    yard.run(HOUR)
    before = len(launches(yard))
    one.total = JOB.nodes
    yard.run(A_ROUND_S)
    assert len(launches(yard)) == before
    error, cause = yard.executions[JOB.id].problem or ("", "")
    assert error == "CapacityUnavailable"
    assert "every reservation of the job has ended" in cause


@pytest.mark.parametrize("how", ["ended", "cancelled"])
def test_of_several_reservations_one_that_is_gone_keeps_no_job_from_another(yard: WaitingYard, how: str) -> None:
    gone, late = block(yard, hours=1), block(yard, begins_at=NOW + 2 * HOUR)
    gone.total = 0
    yard.start(ladder=(*of(gone), *of(late)))
    yard.run(HOUR / 2)
    gone.cancelled = how == "cancelled"
    yard.run(1.5 * HOUR + A_ROUND_S)
    assert yard.executions[JOB.id].state == TRAIN
    assert launches(yard)[-1]["CapacityReservationSpecification"] == {
        "CapacityReservationTarget": {"CapacityReservationId": late.id}
    }


def test_a_wait_that_ends_as_its_block_begins_asks_for_it_once(yard: WaitingYard) -> None:
    """The clock ticks each minute, so that its try comes later than both."""
    start(yard, block(yard, begins_at=NOW + 2 * HOUR + 10), hours=2 + 15 / 3600)
    yard.run(2 * HOUR + 180)
    assert yard.executions[JOB.id].state == TRAIN
