"""Jobs with a cap that wait for capacity although Launch may have launched them: it never learnt whether it did."""

from __future__ import annotations

from dataclasses import replace

from contract import money
from tests.builders import JOB, rung
from tests.fakes.faults import Kind
from tests.fakes.yard import home
from tests.functions.launcher.waiting import AWAY_S, HOUR, TRY_S, waiting
from tests.properties.retrying import WAIT


def test_what_launch_left_behind_in_doubt_is_paid_for_beside_what_the_wait_finds() -> None:
    """EC2 launched and never said so; the job then waits, and its turn launches the same place again."""
    dollars = replace(rung(), most_usd=2.0)
    with waiting() as yard:
        yard.free()
        yard.aws.faults.add(Kind.LOST, "ec2:RunInstances", times=10**6)
        execution = yard.start(ladder=(dollars,), max_cost_usd=12.0)
        yard.run(AWAY_S)
        assert execution.state == WAIT
        yard.aws.faults.waiting.clear()
        yard.run(TRY_S)
        assert len(yard.running()) == 2 * JOB.nodes
        (launched,) = [walk for walk in yard.walks() if walk.launched]
        deadline = money.launched_as(yard.job(), launched, dollars).deadline
        off_at = deadline + JOB.timing.power_off_after_deadline_s
        usd = sum(2.0 * (off_at - one.launched_at) / HOUR for one in yard.running())
        assert 11.5 < usd <= 12.0


def test_a_wait_ends_once_what_is_in_doubt_may_have_used_up_the_money() -> None:
    """At the next try, a pause later at most; the nodes' own timers, which are not played here, end them with the cap."""
    with waiting() as yard:
        yard.free()
        yard.aws.faults.add(Kind.LOST, "ec2:RunInstances", times=10**6)
        execution = yard.start(ladder=(replace(rung(), most_usd=2.0),), max_cost_usd=12.0)
        yard.run(AWAY_S)
        yard.aws.faults.waiting.clear()
        yard.fill()
        yard.run(4 * HOUR)
        assert execution.problem is not None
        assert execution.problem[0] == "BudgetExceeded"
        assert (yard.running(), yard.waits()) == ([], [])
        usd = sum(2.0 * (one.ending_at - one.launched_at) / HOUR for one in home(yard.aws).machines.values())
        assert 10.0 < usd < 12.0 + 4.0 * TRY_S / HOUR


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
