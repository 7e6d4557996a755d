"""EC2's buckets as the load tests reckon with them, and what a small herd of waiting jobs takes from them."""

from __future__ import annotations

import pytest

from tests.load.buckets import Throttle
from tests.load.waiting_jobs import WaitingJobs

pytestmark = pytest.mark.at_length


def test_five_calls_get_through_at_once_and_two_more_a_second() -> None:
    throttle = Throttle(0.0)
    assert [throttle.allows(1, 0.0) for _ in range(6)] == [True] * 5 + [False]
    assert [throttle.allows(1, 1.0) for _ in range(3)] == [True, True, False]
    assert throttle.throttled == 2


def test_a_thousand_instances_get_through_at_once_and_two_more_a_second() -> None:
    throttle = Throttle(0.0)
    assert throttle.allows(1000, 0.0)
    assert not throttle.allows(3, 1.0)
    assert throttle.allows(2, 1.0)


def test_a_throttled_call_takes_nothing() -> None:
    throttle = Throttle(0.0)
    assert not throttle.allows(1001, 0.0)
    assert (throttle.calls.left, throttle.instances.left) == (5, 1000)


@pytest.mark.parametrize("nodes", [4, 16])
def test_jobs_that_wait_take_no_more_than_half_of_the_instances_that_ec2_gives_back(nodes: int) -> None:
    world = WaitingJobs(40, nodes, seed=1)
    with world.installed():
        world.clock.run(600.0)
    assert world.problems == []
    for region, throttle in world.throttles.items():
        assert throttle.throttled == 0
        assert len(world.calls[region]) * nodes <= 0.5 * 2.0 * 600.0
        assert throttle.instances.least >= 1000 - 2 * nodes
    # One job asks for all while its answer is fresh, and two of the invocations are killed at one of their calls.
    assert world.calls["eu-central-1"]
    assert all(world.tried[f"job-{number:04d}"] for number in range(40))
