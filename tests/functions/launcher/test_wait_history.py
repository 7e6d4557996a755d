"""What a wait costs of its execution: transitions and events of the history, with a clock that ticks, is late, or is dead."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import JOB
from tests.functions.launcher.waiting import AWAY_S, DAY, HOUR, TWO_WEEKS, waiting
from tests.properties.execution import WAIT


def history(wait_s: float) -> tuple[int, int, int]:
    """Transitions and events of a job that waits so long and is then trained, and its tries."""
    timing = replace(JOB.timing, launch_patience_s=120.0, wait_longest_s=2 * HOUR)
    with waiting(tick_s=60.0 if wait_s < HOUR else HOUR) as yard:
        execution = yard.start(timing=timing)
        yard.run(AWAY_S)
        assert execution.state == WAIT
        yard.run(wait_s)
        tries = yard.document()["tries"]
        yard.free()
        yard.run(4 * HOUR)
        assert execution.state == "Train"
        return execution.transitions, execution.events, tries


def test_two_weeks_of_waiting_cost_no_more_transitions_and_events_than_a_minute() -> None:
    short, long = history(60), history(TWO_WEEKS - 5 * HOUR)
    assert long[2] > 100
    assert long[0] - short[0] <= 12
    assert long[1] - short[1] <= 80


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
