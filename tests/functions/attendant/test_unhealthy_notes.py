"""What is kept of an unhealthy machine, before anybody acts on the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from aws.state import State
from contract import items
from contract.codec import encode
from contract.health import HealthCheck, UnhealthyNode
from contract.reports import Phase
from tests.builders import NOW
from tests.fakes import state
from tests.fakes.faults import Kind, Mishap
from tests.fakes.fleet import WORKING, Fleet

TICK = {"source": "aws.events"}
WHY = "it has 7 of the 8 GPUs of its type"
FIRST = "job-0000"


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    made = Fleet([2, 2], now=NOW)
    for job in made.jobs:
        state.store(made.aws, items.job(job.id), encode(replace(job, health=HealthCheck.QUICK)))
    with made.functions.installed():
        yield made


def falls_ill(fleet: Fleet, rank: int = 1) -> None:
    """A node of the first job says before its training that its machine is unhealthy."""
    said = replace(WORKING, phase=Phase.RESTORING, unhealthy=WHY, timeline={})
    fleet._report(said, FIRST, rank, fleet.instances[FIRST][rank])


def run_pass(fleet: Fleet, *mishaps: Mishap) -> tuple[str, str] | None:
    fleet.functions.invoke("attendant", TICK, mishaps)
    return fleet.aws.states.waits[fleet.tokens[FIRST]].error


def noted(fleet: Fleet, job: str = FIRST) -> list[UnhealthyNode]:
    return State(fleet.jobs[0].deployment + "-state").unhealthy(job)


def test_the_node_is_noted_with_its_place_when_the_attempt_ends(fleet: Fleet) -> None:
    falls_ill(fleet)
    error = run_pass(fleet)
    assert error is not None
    assert error[0] == "NodeUnhealthy"
    (one,) = noted(fleet)
    assert (one.attempt, one.rank, one.instance, one.why) == (1, 1, fleet.instances[FIRST][1], WHY)
    assert one.region == fleet.regions[FIRST]
    assert one.zone.startswith(one.region)
    assert one.instance in error[1]


def test_nothing_is_noted_of_the_other_job_and_none_of_a_look_without_a_verdict(fleet: Fleet) -> None:
    assert run_pass(fleet) is None
    assert noted(fleet) == []
    falls_ill(fleet)
    run_pass(fleet)
    assert noted(fleet, fleet.jobs[1].id) == []


def test_a_second_look_notes_the_same(fleet: Fleet) -> None:
    falls_ill(fleet)
    run_pass(fleet)
    before = noted(fleet)
    run_pass(fleet)
    assert noted(fleet) == before


def test_an_item_that_nobody_can_read_counts_for_nothing(fleet: Fleet) -> None:
    state.store(fleet.aws, items.unhealthy(FIRST, 1, 0), b"{")
    falls_ill(fleet)
    run_pass(fleet)
    assert [one.rank for one in noted(fleet)] == [1]


@pytest.mark.parametrize("kind", [Kind.DENIED, Kind.ERROR])
def test_a_table_that_takes_no_note_keeps_no_attempt_from_its_end(fleet: Fleet, kind: Kind) -> None:
    falls_ill(fleet)
    error = run_pass(fleet, Mishap("dynamodb:PutItem", times=99, fault=kind))
    assert error is not None
    assert error[0] == "NodeUnhealthy"
    assert noted(fleet) == []
