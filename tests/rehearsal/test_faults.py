"""What comes late or not at all, all at once: the job ends as if nothing had been, on the nodes that it was launched on."""

from __future__ import annotations

import json

import pytest

from localaws.testing.waiting import until
from rehearsal.faults import parse_faults
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import HAPPY, TWO, instances, left, path, succeeded, train

pytestmark = [pytest.mark.rehearsal, pytest.mark.turn("begins")]
LATE = ["events-dropped:seconds=180", "clock-late:seconds=120", "attendant-dead:seconds=480"]
"""Longer than a heartbeat may be late, which is 300 s."""


def test_events_lost_a_late_clock_and_a_dead_attendant_cost_no_second_cluster(
    yard: Yard,
    trainer: str,
    beside: dict[str, StartedJob],  # noqa: ARG001  (they begin here)
) -> None:
    job = yard.start({**TWO, "code": trainer, "command": train(40, 0.2)}, "patient")
    # How long a launch takes, and until the attendant has the token, is the computer's affair.
    until(
        lambda: "TaskSubmitted" in {event["type"] for event in job.history()} or job.describe()["status"] != "RUNNING"
    )
    with yard.faults(parse_faults(LATE)):
        execution = succeeded(job)
    assert path(job) == HAPPY
    assert json.loads(execution["output"])["attempts"] == 1
    assert len(instances(job)) == 2
    assert "TaskTimedOut" in {event["type"] for event in job.history()}  # a heartbeat was lost, or this proves nothing
    assert left(job) == []
