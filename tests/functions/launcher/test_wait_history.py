"""A wait whose clock is dead. What a wait costs of its history is in tests/load/test_history.py."""

from __future__ import annotations

from tests.functions.launcher.waiting import AWAY_S, DAY, HOUR, waiting
from tests.properties.retrying import WAIT


def test_a_clock_that_is_dead_for_two_days_costs_a_job_neither_its_wait_nor_many_events() -> None:
    with waiting(tick_s=3 * DAY) as yard:
        execution = yard.start()
        yard.run(AWAY_S)
        events, transitions = execution.events, execution.transitions
        yard.run(2 * DAY)
        assert execution.state == WAIT
        assert (execution.events - events, execution.transitions - transitions) <= (80, 12)
        yard.free()
        yard.tick()
        yard.run(60)
        assert execution.state == "Train"


def test_a_clock_that_never_ticks_again_ends_the_wait_at_its_end() -> None:
    with waiting(tick_s=30 * DAY) as yard:
        execution = yard.start(hours=24.0)
        yard.run(25 * HOUR)
        yard.run(HOUR)
        assert execution.problem is not None
        assert (execution.state, execution.problem[0]) == ("Failed", "CapacityUnavailable")
