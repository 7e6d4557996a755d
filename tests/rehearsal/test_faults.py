"""What comes late or not at all, all at once: the job ends as if nothing had been, on the nodes that it was launched on."""

from __future__ import annotations

import json

import pytest

from rehearsal.faults import parse_faults
from rehearsal.yard import Job, Yard
from tests.rehearsal.jobs import HAPPY, TWO, instances, left, train
from tests.waiting import HANG_S

pytestmark = [pytest.mark.rehearsal, pytest.mark.turn("begins")]
LATE = ["events-dropped:seconds=180", "clock-late:seconds=120", "attendant-dead:after=150,seconds=360"]


def test_events_lost_a_late_clock_and_a_dead_attendant_cost_no_second_cluster(
    yard: Yard,
    trainer: str,
    beside: dict[str, Job],  # noqa: ARG001  (they begin here)
) -> None:
    with yard.faults(parse_faults(LATE)):
        job = yard.start({**TWO, "code": trainer, "command": train(40, 0.2)}, "patient")
        execution = job.wait(HANG_S)
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    assert job.states() == HAPPY
    assert json.loads(execution["output"])["attempts"] == 1
    assert len(instances(job)) == 2
    assert "TaskTimedOut" in {event["type"] for event in job.history()}  # a heartbeat was lost, or this proves nothing
    assert left(job) == []
