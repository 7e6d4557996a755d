"""A hundred jobs wait for capacity: what they ask of EC2, a second and a region. `make bench-capacity` has a thousand."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from contract import items
from contract.codec import compact, encode
from contract.intents import Intent, LaunchAnswer, LaunchOutcome
from contract.jobs import Job
from contract.waits import CapacityWait
from tests.builders import INTENT, JOB, NOW
from tests.fakes.faults import Kind
from tests.fakes.state import store
from tests.fakes.yard import admitted
from tests.functions.launcher.waiting import WaitingYard, waiting

pytestmark = pytest.mark.at_length
JOBS = 100
HERD_S = 900.0
REFILL_A_S, BUCKET = 2.0, 5
"""Of EC2's RunInstances in a region: tokens a second, and at most (EC2's published throttling of an account)."""
FOR_NEW_JOBS = 0.75
"""The share of them that waiting jobs leave."""


def used_up(job: Job) -> Intent:
    """The last walk of Launch."""
    answer = LaunchAnswer(outcome=LaunchOutcome.NO_CAPACITY, at=NOW - 60, code="InsufficientInstanceCapacity")
    steps = tuple(replace(step, answer=answer) for step in INTENT.steps)
    return replace(INTENT, job=job.id, steps=steps, started_at=NOW - 1800, patience_until=NOW, held_until=0.0)


def waits(yard: WaitingYard, name: str) -> None:
    """A job whose try is due now, as all others' are: the worst herd."""
    job = admitted(yard.aws, replace(JOB, id=name, max_wait_hours=336.0))
    store(yard.aws, items.launch(name, 1, 1), encode(used_up(job)))
    token = yard.aws.states.wait(heartbeat_s=JOB.timing.wait_heartbeat_s, timeout_s=15 * 86400).token
    wait = CapacityWait(job=name, attempt=1, token=token, since=NOW - 1800, until=NOW + 14 * 86400, next_try_at=NOW)
    store(yard.aws, items.awaited(name, 1, hashlib.sha256(token.encode()).hexdigest()), compact(wait))


@pytest.fixture(scope="module")
def herd() -> WaitingYard:
    """A quarter of an hour with all of them."""
    with waiting() as yard:
        for number in range(JOBS):
            waits(yard, f"job-{number:04d}")
        yard.run(HERD_S)
    return yard


def test_waiting_jobs_leave_three_quarters_of_the_bucket_to_new_ones(herd: WaitingYard) -> None:
    left, before = float(BUCKET), herd.launched_at[0]
    for at in herd.launched_at:
        left = min(BUCKET, left + (1 - FOR_NEW_JOBS) * REFILL_A_S * (at - before)) - 1
        before = at
        assert left >= BUCKET - 1 - 0.01, at


def test_no_second_has_more_than_one_launch_call_for_waiting_jobs(herd: WaitingYard) -> None:
    assert max(Counter(int(at) for at in herd.launched_at).values()) == 1


def test_each_place_is_asked_once_for_all_jobs_while_the_answer_is_fresh(herd: WaitingYard) -> None:
    rounds = HERD_S / JOB.timing.empty_place_s + 1
    assert len(JOB.ladder) <= len(herd.launched_at) <= rounds * len(JOB.ladder)


def test_every_job_gets_its_tries_although_one_asks_for_all(herd: WaitingYard) -> None:
    assert min(one.tries for one in herd.waits()) >= 2
    assert len(herd.waits()) == JOBS


def test_no_two_invocations_try_at_the_same_time(herd: WaitingYard) -> None:
    assert all(later - earlier >= JOB.timing.launch_pace_s - 0.01 for earlier, later in pairwise(herd.launched_at))


def test_jobs_that_began_to_wait_together_do_not_try_together_again(herd: WaitingYard) -> None:
    again = Counter(one.next_try_at // 10 for one in herd.waits())
    assert max(again.values()) < JOBS / 4, "chance alone brings a dozen into the same ten seconds; without it all come"


def test_no_waiting_job_holds_a_security_group(herd: WaitingYard) -> None:
    assert len(herd.taken()) <= 1


def test_a_region_that_does_not_answer_costs_a_turn_one_time_out_and_not_one_a_job() -> None:
    with waiting() as yard:
        for number in range(20):
            waits(yard, f"job-{number:04d}")
        yard.aws.faults.add(Kind.UNREACHABLE, "ec2:RunInstances", times=10_000)
        before = yard.aws.clock.now
        yard.tick()
        assert yard.aws.clock.now - before < 60
        assert {one.tries for one in yard.waits()} == {1}
