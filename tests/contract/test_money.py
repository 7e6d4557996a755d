"""What a job costs at most, and what its money pays for."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from contract import money
from contract.intents import Intent, LaunchAnswer, LaunchOutcome, Step
from contract.jobs import Job
from tests.builders import INTENT, JOB, LAUNCHED, NOW, rung

HOUR = 3600.0
PRICED = replace(rung(), most_usd=2.0)
OTHER = replace(rung("eu-central-1b"), most_usd=5.0)
UNPRICED = rung()
CAPPED = replace(JOB, nodes=2, max_cost_usd=40.0, ladder=(PRICED, OTHER))
"""Two nodes at 4 dollars an hour: ten hours."""


def walk(attempt: int = 1, hours: float = 0.0, number: int = 1, **of_step: object) -> Intent:
    """One that launched, unless `of_step` says otherwise, and began so many hours after NOW."""
    step = Step(**{"rung": PRICED, "request": {"a": 1}, "answer": LAUNCHED} | of_step)  # type: ignore[arg-type]
    return replace(INTENT, attempt=attempt, walk=number, started_at=NOW + hours * HOUR, steps=(step,))


def answer(outcome: LaunchOutcome) -> LaunchAnswer:
    return LaunchAnswer(outcome=outcome, at=NOW, code="code")


def spent(
    *walks: Intent, ends: dict[int, float] | None = None, now: float = NOW + 10 * HOUR, job: Job = CAPPED
) -> float | None:
    return money.spent_usd(job, walks, ends or {}, now=now)


def test_a_job_without_a_cap_has_the_deadline_of_its_hours() -> None:
    free = replace(CAPPED, max_cost_usd=None)
    launched = money.launched_as(free, walk(), PRICED)
    assert (launched.deadline, launched.money_ends, launched.late_error) == (free.deadline, False, "DeadlineReached")


def test_money_that_lasts_longer_than_the_hours_changes_nothing() -> None:
    rich = replace(CAPPED, max_cost_usd=10_000.0)
    assert money.launched_as(rich, walk(), PRICED) == rich


def test_the_deadline_leaves_money_for_the_minutes_in_which_nodes_end_themselves() -> None:
    launched = money.launched_as(CAPPED, walk(), PRICED)
    off_s = JOB.timing.power_off_after_deadline_s
    assert launched.deadline == NOW + 10 * HOUR - off_s
    assert (launched.money_ends, launched.late_error) == (True, "BudgetExceeded")
    until_off = launched.deadline + off_s
    assert 2 * 2.0 * (until_off - NOW) / HOUR <= 40.0


def test_what_was_spent_before_shortens_the_next_attempt() -> None:
    later = replace(walk(attempt=2, hours=5), spent_usd=30.0)
    launched = money.launched_as(CAPPED, later, PRICED)
    assert launched.deadline == NOW + 7.5 * HOUR - JOB.timing.power_off_after_deadline_s


def test_a_dearer_place_ends_sooner() -> None:
    cheap, dear = (money.launched_as(CAPPED, walk(), one).deadline for one in (PRICED, OTHER))
    assert dear < cheap


def test_hours_that_a_job_waited_cost_nothing() -> None:
    waited = replace(walk(hours=48), waited_s=48 * HOUR)
    assert money.launched_as(CAPPED, waited, PRICED).deadline == NOW + 58 * HOUR - JOB.timing.power_off_after_deadline_s


@pytest.mark.parametrize("usd", [0.0, 40.0, 41.0, 1e9])
def test_a_place_whose_price_is_not_known_is_paid_for_by_no_cap(usd: float) -> None:
    assert money.affords_s(CAPPED, UNPRICED, usd) == 0.0


def test_money_that_is_spent_buys_nothing() -> None:
    assert money.affords_s(CAPPED, PRICED, 40.0) == money.affords_s(CAPPED, PRICED, 50.0) == 0.0
    assert money.affords_s(replace(CAPPED, max_cost_usd=None), UNPRICED, 1e9) == math.inf


def test_an_attempt_costs_its_nodes_from_its_walk_to_its_end() -> None:
    assert spent(walk(), ends={1: NOW + 2 * HOUR}) == pytest.approx(8.0)


def test_an_attempt_of_which_nobody_knows_the_end_costs_until_the_next_one_or_until_now() -> None:
    assert spent(walk(), walk(attempt=2, hours=3), ends={2: NOW + 4 * HOUR}) == pytest.approx(4 * 3 + 4 * 1)
    assert spent(walk(), now=NOW + 6 * HOUR) == pytest.approx(24.0)


def test_waiting_between_two_attempts_costs_nothing_once_the_end_is_known() -> None:
    assert spent(walk(), walk(attempt=2, hours=100), ends={1: NOW + HOUR}, now=NOW + 101 * HOUR) == pytest.approx(8.0)


@pytest.mark.parametrize("outcome", [LaunchOutcome.UNKNOWN, LaunchOutcome.RENEW])
def test_a_launch_of_which_nobody_knows_counts_as_one_that_ran(outcome: LaunchOutcome) -> None:
    assert spent(walk(answer=answer(outcome)), ends={1: NOW + HOUR}) == pytest.approx(4.0)


def test_a_place_that_was_asked_again_with_a_new_token_counts_from_the_first() -> None:
    assert spent(walk(answer=answer(LaunchOutcome.NO_CAPACITY), generation=1), ends={1: NOW + HOUR}) == pytest.approx(4)


def test_a_place_that_never_said_whether_it_launched_counts_beside_the_one_that_did() -> None:
    doubted = replace(answer(LaunchOutcome.NO_CAPACITY), doubted=True)
    assert spent(walk(answer=doubted), walk(number=2), ends={1: NOW + HOUR}) == pytest.approx(4.0 + 4.0)


@pytest.mark.parametrize("outcome", [LaunchOutcome.NO_CAPACITY, LaunchOutcome.QUOTA, LaunchOutcome.CLOSED])
def test_places_that_launched_nothing_cost_nothing(outcome: LaunchOutcome) -> None:
    assert spent(walk(answer=answer(outcome))) == 0.0
    assert spent(walk(answer=None, request={})) == spent() == 0.0


def test_a_request_whose_sender_died_before_the_answer_may_have_launched() -> None:
    assert spent(walk(answer=None), ends={1: NOW + HOUR}) == pytest.approx(4.0)


@pytest.mark.parametrize("first", [LaunchOutcome.LAUNCHED, LaunchOutcome.UNKNOWN, LaunchOutcome.MISTAKE])
def test_a_request_whose_turn_has_not_come_launched_nothing(first: LaunchOutcome) -> None:
    asked = walk(answer=answer(first))
    waiting = replace(asked, steps=(*asked.steps, Step(rung=OTHER, request={"a": 1})))
    assert spent(waiting, ends={1: NOW + HOUR}) == spent(asked, ends={1: NOW + HOUR})


def test_nodes_that_may_run_beside_it_shorten_an_attempt() -> None:
    beside = replace(walk(), doubted_usd=4.0)
    assert money.launched_as(CAPPED, beside, PRICED).deadline == NOW + 5 * HOUR - JOB.timing.power_off_after_deadline_s


def test_several_walks_of_an_attempt_count_once_where_one_launched() -> None:
    empty = walk(answer=answer(LaunchOutcome.NO_CAPACITY))
    assert spent(empty, walk(number=2, hours=1), ends={1: NOW + 2 * HOUR}) == pytest.approx(4.0)


def test_a_cost_is_unknown_where_a_price_is() -> None:
    assert spent(walk(), walk(attempt=2, hours=1, rung=UNPRICED)) is None


@pytest.mark.parametrize("lived_s", [-7200.0, 0.0, 20.0, 60.0])
def test_a_launch_costs_a_minute_at_least_however_soon_it_ends(lived_s: float) -> None:
    """EC2 bills no less: fifty attempts of twenty seconds cost fifty minutes."""
    assert spent(walk(), ends={1: NOW + lived_s}) == pytest.approx(4.0 / 60)


def test_what_is_worth_a_launch_is_longer_than_the_notice_before_its_end() -> None:
    assert money.least_s(CAPPED.timing) > JOB.timing.deadline_notice_s + JOB.timing.power_off_after_deadline_s


@pytest.mark.parametrize(
    ("usd", "told"), [(0.0, 0.0), (0.001, 0.01), (4.0, 4.0), (0.1 + 0.2, 0.3), (12.991, 13.0), (0.29, 0.29)]
)
def test_what_is_said_to_be_the_most_is_never_rounded_down(usd: float, told: float) -> None:
    assert money.up_to_cents(usd) == told
