"""The synthesised Train machine, run with the real functions: how often a job may begin again, and what that costs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from contract.timing import Timing
from stacks.parts import jsonata
from tests.builders import LIMITS
from tests.load import definition
from tests.load.losses import Attempts, attempts

PAUSE_S = Timing().recovery_pause_s
ORDINARY = 30
"""Events that are counted of an attempt whose launch is the first try: 20 to 25 are in the history."""
RETRIES: dict[str, Any] = {"times": 2, "exit_codes": [75]}


def times(found: Attempts, event: str) -> int:
    return found.run.history.count(event)


@pytest.mark.at_length
def test_a_job_that_commits_before_each_loss_never_runs_out_of_recoveries() -> None:
    losses = 4 * LIMITS.recoveries

    def play(one: Attempts) -> None:
        for number in range(1, losses + 1):
            one.close(number)
            one.lose()
            one.trains()
        one.end()

    found = attempts(play)
    assert (found.run.status, found.attempt) == ("SUCCEEDED", losses + 1)
    assert found.nodes == []
    variables = found.run.variables
    assert (variables["lost"], variables["step"]) == (1, losses)
    # No fewer are counted than there are, but for the beginning and the end; and of ordinary attempts as many fit as are allowed.
    assert len(found.run.history) <= variables["events"] + 20
    assert variables["events"] <= ORDINARY * found.attempt
    assert definition.MOST_EVENTS - jsonata.LAST_EVENTS > ORDINARY * jsonata.MOST_ATTEMPTS


@pytest.mark.parametrize("step", [None, 7])
def test_a_job_that_comes_no_further_runs_out_of_them_and_is_told_so(step: int | None) -> None:
    def play(one: Attempts) -> None:
        while not one.run.status:
            if step is not None:
                one.close(step)  # the same in each attempt
            one.lose()
            one.trains()

    found = attempts(play)
    assert (found.run.status, found.attempt) == ("FAILED", LIMITS.recoveries + 1)
    assert found.run.problem is not None
    error, cause = found.run.problem
    assert error == "NodeLost"
    assert f"No recovery is left: {LIMITS.recoveries} in a row committed no newer checkpoint" in cause
    assert "Execution: " in cause
    assert found.nodes == []


def launches(found: Attempts) -> list[float]:
    return sorted({one.launched_at for ec2 in found.aws.ec2.values() for one in ec2.machines.values()})


def test_attempts_that_die_young_wait_twice_as_long_each_time_and_those_that_came_further_do_not() -> None:
    ends = list[float]()

    def play(one: Attempts) -> None:
        for committed in (False, False, True, False):
            if committed:
                one.close(5)
            one.lose()
            ends.append(one.aws.clock.now)
            one.trains()
        one.end()

    found = attempts(play)
    assert found.run.status == "SUCCEEDED"
    waits = [began - end for end, began in zip(ends, launches(found)[1:], strict=True)]
    assert waits == pytest.approx([PAUSE_S, 2 * PAUSE_S, 0, PAUSE_S], abs=8)


def test_an_attempt_that_lived_for_long_is_followed_by_another_at_once() -> None:
    ended = list[float]()

    def play(one: Attempts) -> None:
        for _ in range(16):
            one.aws.clock.run(60.0)
            for machine in one.nodes:
                one.beat(machine)
        one.lose()
        ended.append(one.aws.clock.now)
        one.trains()
        one.end()

    found = attempts(play)
    assert found.run.variables["lost"] == 1
    assert launches(found)[1] - ended[0] < 8


def test_a_pause_never_passes_the_deadline() -> None:
    def play(one: Attempts) -> None:
        one.lose()
        one.trains()

    found = attempts(play, max_hours=0.06)  # 216 seconds, of which a hundred go by before the loss
    first, *others = launches(found)
    assert others
    assert all(later < first + 216 for later in others)


def test_exit_codes_of_the_request_are_retried_as_often_as_it_says_and_take_no_recovery() -> None:
    def play(one: Attempts) -> None:
        while not one.run.status:
            one.end(code=75)
            one.trains()

    found = attempts(play, retries=RETRIES)
    assert (found.run.status, found.attempt, found.run.variables["lost"]) == ("FAILED", 3, 0)
    assert found.run.problem is not None
    error, cause = found.run.problem
    assert error == "TrainingFailed"
    assert "exited with code 75" in cause
    assert "No retry is left (retries.times of the request)." in cause
    assert all(later > earlier + PAUSE_S for earlier, later in pairwise(launches(found)))


def test_a_job_whose_command_fails_once_with_such_a_code_ends_well() -> None:
    def play(one: Attempts) -> None:
        one.end(code=75)
        one.trains()
        one.end()

    found = attempts(play, retries=RETRIES)
    assert (found.run.status, found.attempt) == ("SUCCEEDED", 2)


@pytest.mark.parametrize(("code", "request_"), [(1, {"retries": RETRIES}), (75, {}), (74, {"retries": RETRIES})])
def test_any_other_failure_of_the_command_ends_the_job_at_once(code: int, request_: dict[str, Any]) -> None:
    found = attempts(lambda one: one.end(code=code), **request_)
    assert (found.run.status, found.attempt) == ("FAILED", 1)
    assert found.run.problem is not None
    assert found.run.problem[0] == "TrainingFailed"
    assert "No re" not in found.run.problem[1]


@pytest.mark.parametrize("changed", [("$attempt < 500", "$attempt < 4"), ("$events < 20000", "$events < 70")])
def test_a_job_that_has_had_as_many_attempts_as_an_execution_has_room_for_says_so(changed: tuple[str, str]) -> None:
    def play(one: Attempts) -> None:
        while not one.run.status:
            one.close(one.attempt)
            one.lose()
            one.trains()

    found = attempts(play, changed=changed)
    assert (found.run.status, found.attempt) == ("FAILED", 4 if "attempt" in changed[0] else 3)
    assert found.run.problem is not None
    assert "No new attempt: one execution has room for 500 of them, or for 25000 events" in found.run.problem[1]
    assert found.nodes == []
