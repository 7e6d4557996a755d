"""The policy of waiting: facts and the time in, what happens next out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contract.errors import CapacityAwaited, CapacityUnavailable
from contract.intents import LaunchAnswer, LaunchOutcome
from contract.waits import CapacityWait
from launcher import waits
from launcher.pace import LaunchPace
from launcher.turn import A_TRY_S
from launcher.walk import RESERVE_S
from tests.builders import INTENT, JOB, LAUNCHED, NOW

HOUR = 3600.0
TIMING = JOB.timing
PATIENT = replace(JOB, max_wait_hours=48.0)
NONE = LaunchAnswer(outcome=LaunchOutcome.NO_CAPACITY, at=NOW, code="InsufficientInstanceCapacity")
UNKNOWN = LaunchAnswer(outcome=LaunchOutcome.UNKNOWN, at=NOW, code="RequestLimitExceeded")
WALK = replace(INTENT, steps=tuple(replace(step, answer=NONE) for step in INTENT.steps))
LATER = replace(WALK, walk=2, started_at=NOW + HOUR, waiting=True, waited_s=HOUR)
WAIT = CapacityWait(job=JOB.id, attempt=1, token="t", since=NOW, until=NOW + 48 * HOUR, next_try_at=NOW + 60, tries=3)
UNAVAILABLE = CapacityUnavailable("no rung had capacity")


def test_a_job_that_may_wait_waits_once_the_patience_is_over() -> None:
    assert isinstance(waits.after_patience(PATIENT, [WALK], UNAVAILABLE, now=NOW + 1800), CapacityAwaited)


@pytest.mark.parametrize(
    ("hours", "after_h"),
    [(0.0, 0.5), (0.25, 0.5), (48.0, 48.0), (48.0, 100.0)],
    ids=["no wait", "short", "over", "past"],
)
def test_a_job_whose_wait_is_over_does_not_begin_one(hours: float, after_h: float) -> None:
    job = replace(JOB, max_wait_hours=hours)
    assert waits.after_patience(job, [WALK], UNAVAILABLE, now=NOW + after_h * HOUR) is UNAVAILABLE


def test_a_job_without_a_walk_on_record_does_not_wait() -> None:
    assert waits.after_patience(PATIENT, [], UNAVAILABLE, now=NOW) is UNAVAILABLE


def test_a_recovery_has_what_the_attempts_before_it_left() -> None:
    again = replace(WALK, attempt=2, started_at=NOW + 60 * HOUR, waited_s=40 * HOUR)
    assert waits.until(PATIENT, [again]) == NOW + 68 * HOUR


def test_a_recovery_after_a_wait_that_used_up_everything_has_nothing_left() -> None:
    again = replace(WALK, attempt=2, started_at=NOW + 60 * HOUR, waited_s=50 * HOUR)
    assert waits.until(PATIENT, [again]) == again.started_at


def test_the_end_of_a_wait_does_not_move_with_its_tries() -> None:
    assert waits.until(PATIENT, [WALK, LATER]) == waits.until(PATIENT, [WALK])


def test_pauses_grow_to_the_longest_and_no_further() -> None:
    pauses = [waits.pause_s(tries, TIMING, 0.5) for tries in (0, 1, 2, 3, 4, 10, 10_000)]
    assert pauses == [60, 120, 240, 480, 900, 900, 900]


@pytest.mark.parametrize("tries", [0, 3, 10_000])
def test_a_pause_varies_by_half(tries: int) -> None:
    least, middle, most = (waits.pause_s(tries, TIMING, chance) for chance in (0.0, 0.5, 1.0))
    assert (least, most) == (middle / 2, middle * 1.5)


def test_a_try_that_met_trouble_is_repeated_soon_at_first() -> None:
    late = replace(WAIT, tries=50)
    once = waits.count_try(late, TIMING, now=NOW, chance=0.5, trouble="no answer")
    twice = waits.count_try(once, TIMING, now=NOW, chance=0.5, trouble="no answer")
    well = waits.count_try(twice, TIMING, now=NOW, chance=0.5)
    assert [one.next_try_at - NOW for one in (once, twice, well)] == [60, 120, 900]
    assert (once.trouble, well.trouble, well.troubles, well.tries) == ("no answer", "", 0, 53)


def test_a_try_whose_time_did_not_suffice_goes_on_soon_and_is_no_trouble() -> None:
    on = waits.count_try(replace(WAIT, tries=50), TIMING, now=NOW, chance=0.5, soon=True)
    assert (on.next_try_at - NOW, on.troubles) == (60, 0)


def test_what_is_not_due_is_not_tried() -> None:
    assert waits.list_due([WAIT], now=NOW + 59) == []


def test_the_longest_overdue_comes_first() -> None:
    late = replace(WAIT, job="late", next_try_at=NOW - 100)
    assert [one.job for one in waits.list_due([WAIT, late], now=NOW + 61)] == ["late", JOB.id]


def test_a_wait_that_is_over_is_due_whenever_its_next_try_is() -> None:
    over = replace(WAIT, until=NOW, next_try_at=NOW + 900)
    assert waits.list_due([over], now=NOW) == [over]


def test_each_token_is_beaten_once_an_hour_and_not_all_in_the_same_minute() -> None:
    jobs = [f"job-{number}" for number in range(600)]
    beaten = [
        [job for job in jobs if waits.beats_now(job, now=NOW + 60 * minute, heartbeat_s=21600, every_s=60)]
        for minute in range(60)
    ]
    assert sorted(job for some in beaten for job in some) == sorted(jobs)
    assert max(map(len, beaten)) < 40


def test_a_clock_that_is_slower_than_the_beats_beats_every_token_at_each_tick() -> None:
    assert waits.beats_now("a", now=NOW, heartbeat_s=300, every_s=60)


def test_the_end_says_how_long_and_what_every_rung_answered() -> None:
    end = waits.explain_end(WAIT, PATIENT, [WALK], now=NOW + 48 * HOUR)
    assert str(end).startswith("no rung had capacity for 48.0 h (since 2027-01-15 08:00:00 UTC, 3 tries")
    assert str(end).count("InsufficientInstanceCapacity") == len(JOB.ladder)
    assert "max_wait_hours is 48" in str(end)


def test_the_end_names_the_trouble_of_the_last_try() -> None:
    end = waits.explain_end(
        replace(WAIT, trouble="EC2 of eu-central-1 does not answer"), PATIENT, [WALK], now=WAIT.until
    )
    assert "The last try failed: EC2 of eu-central-1 does not answer." in str(end)


def test_a_walk_that_launched_is_never_the_end() -> None:
    steps = (replace(WALK.steps[0], answer=LAUNCHED), *WALK.steps[1:])
    assert waits.explain_end(WAIT, PATIENT, [replace(WALK, steps=steps)], now=WAIT.until + 900) is None


def test_a_rung_that_nobody_asked_is_rest_and_one_without_a_clear_answer_is_in_doubt() -> None:
    asked = replace(WALK, steps=(*WALK.steps[:2], replace(WALK.steps[2], answer=None)))
    doubted = replace(WALK, steps=(*WALK.steps[:2], replace(WALK.steps[2], answer=UNKNOWN)))
    assert [(waits.has_unasked(one), bool(waits.describe_doubt(one))) for one in (WALK, asked, doubted)] == [
        (False, False),
        (True, False),
        (False, True),
    ]


def test_the_document_names_no_next_try_once_the_wait_is_over() -> None:
    assert waits.build_document(WAIT, [WALK], waits.WAITS, now=NOW)["next_try_at"] == "2027-01-15 08:01:00 UTC"
    assert waits.build_document(WAIT, [WALK], waits.LAUNCHED, now=NOW)["next_try_at"] is None


def test_hours_of_waiting_do_not_count_as_hours_of_the_job() -> None:
    later = JOB.extended(5 * HOUR + 0.7)
    assert later.deadline - JOB.deadline == 5 * HOUR
    assert later.stop_at - JOB.stop_at == 5 * HOUR


def test_a_short_job_that_waited_keeps_half_of_its_time() -> None:
    short = replace(JOB, deadline=int(NOW) + 60)
    assert short.extended(HOUR).stop_at == short.stop_at + HOUR


def test_no_wait_makes_a_deadline_earlier() -> None:
    assert JOB.extended(-5.0) == JOB


def test_the_first_call_of_an_invocation_waits_as_well_and_regions_do_not_wait_for_each_other() -> None:
    slept, clock = list[float](), [NOW]

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    pace = LaunchPace(2.0, now=lambda: clock[0], sleep=sleep)
    for region in ("a", "a", "b", "a"):
        pace.wait(region, 1)
    assert slept == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(("instances", "apart_s"), [(1, 2.0), (2, 2.0), (3, 3.0), (16, 16.0), (30, 30.0), (512, 30.0)])
def test_a_call_waits_for_the_instances_that_it_asks_for_and_never_for_longer_than_a_try_allows(
    instances: int, apart_s: float
) -> None:
    slept = list[float]()
    pace = LaunchPace(2.0, now=lambda: NOW, sleep=slept.append)
    pace.wait("a", instances)
    assert slept == [apart_s]
    assert apart_s + RESERVE_S < A_TRY_S
