"""Jobs that wait for capacity although Launch may have launched them: it never learnt whether it did."""

from __future__ import annotations

import pytest

from tests.builders import JOB, rung
from tests.fakes.faults import Kind
from tests.fakes.yard import home
from tests.functions.launcher.waiting import AWAY_S, TRY_S, waiting
from tests.properties.retrying import WAIT


@pytest.mark.parametrize("capacity", ["free", "fill"])
def test_what_launch_left_behind_in_doubt_is_found_before_the_wait_launches_anything(capacity: str) -> None:
    """EC2 launched and never said so. The attempt ends with it, and Terminate ends all that has the job's tags."""
    with waiting() as yard:
        yard.free()
        yard.aws.faults.add(Kind.LOST, "ec2:RunInstances", times=10**6)
        execution = yard.start(ladder=(rung(),))
        yard.run(AWAY_S)
        yard.aws.faults.waiting.clear()
        getattr(yard, capacity)()
        yard.run(TRY_S)
        assert execution.verdicts == {1: "NodeLost"}
        machines = sorted(home(yard.aws).machines.values(), key=lambda one: one.launched_at)
        doubted, later = machines[: JOB.nodes], machines[JOB.nodes :]
        assert len(later) == (JOB.nodes if capacity == "free" else 0)
        assert all(one.ending_at is not None for one in doubted)
        assert all(one.launched_at >= max(each.ending_at or 0.0 for each in doubted) for one in later)


def test_a_doubt_that_left_nothing_behind_keeps_no_wait_from_launching() -> None:
    with waiting() as yard:
        yard.free()
        yard.aws.faults.add(Kind.ERROR, "ec2:RunInstances", times=10**6)
        execution = yard.start(ladder=(rung(),))
        yard.run(AWAY_S)
        assert execution.state == WAIT
        yard.aws.faults.waiting.clear()
        yard.run(TRY_S)
        assert execution.state != WAIT
        assert execution.problem is None
        assert len(yard.running()) == len(home(yard.aws).machines) == JOB.nodes


def test_while_ec2_does_not_say_what_runs_nothing_is_launched() -> None:
    with waiting() as yard:
        yard.free()
        yard.aws.faults.add(Kind.LOST, "ec2:RunInstances", times=10**6)
        execution = yard.start(ladder=(rung(),))
        while execution.state != WAIT:
            yard.run(1)
        yard.aws.faults.waiting.clear()
        yard.aws.faults.add(Kind.UNREACHABLE, "ec2:DescribeInstances", times=10**6)
        yard.run(4 * TRY_S)
        assert (execution.state, len(home(yard.aws).machines)) == (WAIT, JOB.nodes)


def test_a_wait_that_never_learns_of_its_launch_begins_no_second_one_beside_it() -> None:
    """Its walk is older than EC2's trouble lasts, and EC2 shows what it launched."""
    with waiting() as yard:
        execution = yard.start()
        yard.run(AWAY_S)
        assert execution.state == WAIT
        yard.free()
        yard.aws.faults.add(Kind.LOST, "ec2:RunInstances", times=10**6)
        yard.run(2 * TRY_S + JOB.timing.trouble_patience_s)
        yard.aws.faults.waiting.clear()
        yard.run(2 * TRY_S)
        assert execution.state != WAIT
        assert len(yard.running()) == JOB.nodes
        assert len(home(yard.aws).machines) == JOB.nodes
