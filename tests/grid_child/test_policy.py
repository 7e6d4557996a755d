"""What a child does next, from facts alone."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from contract.grid import ExitCode
from contract.timing import Timing
from contract.timings import ChildTiming
from grid_child.pace import Round, backoff_s, earliest, jittered, slot
from grid_child.policy import (
    Action,
    ChildFacts,
    ChildRules,
    Known,
    SubmitAnswer,
    answered,
    decide,
    is_ours,
    out_of_quota,
)
from tests.fakes.grid_yard import NOW, REGIONS, grid_of, line_of

TIMING = Timing().of(ChildTiming)
RULES = ChildRules(
    timing=TIMING, earliest=NOW + 100, turn_s=1250.0, leaves_at=NOW + 13 * 86_400, watch_s=TIMING.training_watch_s
)
ABSENT = ChildFacts(known=Known.ABSENT)
OURS = ChildFacts(known=Known.OURS, status="InProgress", answer=SubmitAnswer.ACCEPTED)


def verdicts(facts: ChildFacts, now: float = NOW, rules: ChildRules = RULES) -> set[tuple[Action, ExitCode]]:
    """Whatever the dice say."""
    found = [decide(facts, rules, now, random.Random(seed)) for seed in range(20)]
    return {(one.action, one.exit) for one in found}


def waits(facts: ChildFacts, now: float = NOW, rules: ChildRules = RULES) -> list[float]:
    return [decide(facts, rules, now, random.Random(seed)).wait_s for seed in range(200)]


def test_a_new_child_waits_for_its_turn_and_submits() -> None:
    verdict = decide(ABSENT, RULES, NOW, random.Random(0))
    assert (verdict.action, verdict.wait_s) == (Action.CREATE, 100.0)
    assert decide(ABSENT, RULES, NOW + 500, random.Random(0)).wait_s == 0.0


@pytest.mark.parametrize("answer", list(SubmitAnswer))
def test_where_nobody_has_looked_nothing_is_submitted(answer: SubmitAnswer) -> None:
    assert verdicts(ChildFacts(known=Known.UNKNOWN, answer=answer, tries=3)) == {(Action.LOOK, ExitCode.AGAIN)}


@pytest.mark.parametrize("answer", [None, *SubmitAnswer])
@pytest.mark.parametrize("known", [Known.ABSENT, Known.UNKNOWN])
def test_once_there_is_to_be_no_training_none_is_submitted(answer: SubmitAnswer | None, known: Known) -> None:
    actions = {action for action, _ in verdicts(ChildFacts(known=known, answer=answer, unwanted="the grid is ending"))}
    assert actions <= {Action.LEAVE, Action.LOOK}


def test_a_grid_that_is_to_end_leaves_a_line_without_training_for_good() -> None:
    assert verdicts(replace(ABSENT, unwanted="the grid is ending")) == {(Action.LEAVE, ExitCode.FINAL)}


@pytest.mark.parametrize("status", ["Completed", "Failed", "Stopped"])
@pytest.mark.parametrize("unwanted", ["", "the grid is ending"])
def test_what_has_ended_is_recorded(status: str, unwanted: str) -> None:
    facts = replace(OURS, status=status, unwanted=unwanted)
    assert verdicts(facts) == {(Action.RECORD, ExitCode.AGAIN)}


@pytest.mark.parametrize("status", ["InProgress", "Stopping", "Deleting", "Something new"])
def test_what_has_not_ended_is_looked_at_again_about_every_minute(status: str) -> None:
    facts = replace(OURS, status=status)
    assert verdicts(facts) == {(Action.LOOK, ExitCode.AGAIN)}
    assert 48 <= min(waits(facts)) < max(waits(facts)) <= 72


def test_an_unwanted_training_is_stopped_once_and_then_watched_more_often() -> None:
    unwanted = replace(OURS, unwanted="the grid is ending")
    assert verdicts(unwanted) == {(Action.STOP, ExitCode.AGAIN)}
    assert set(waits(unwanted)) == {0.0}
    for asked in (replace(unwanted, stopping=True), replace(unwanted, status="Stopping")):
        assert verdicts(asked) == {(Action.LOOK, ExitCode.AGAIN)}
        assert max(waits(asked)) <= 18


def test_a_strangers_name_is_refused_with_its_holder() -> None:
    verdict = decide(ChildFacts(known=Known.STRANGER, holder="arn:x"), RULES, NOW, random.Random(0))
    assert verdict.action is Action.REFUSE
    assert "arn:x" in verdict.reason


def test_a_refusal_says_what_sagemaker_said() -> None:
    verdict = decide(
        replace(ABSENT, answer=SubmitAnswer.REFUSED, said="ValidationException: x"), RULES, NOW, random.Random(0)
    )
    assert (verdict.action, verdict.reason) == (Action.REFUSE, "SageMaker refused the request: ValidationException: x")


@pytest.mark.parametrize("tries", [1, 2, 9, 10, 30, 10_000])
def test_throttles_are_tried_again_ten_times_and_more_within_patience(tries: int) -> None:
    facts = replace(ABSENT, answer=SubmitAnswer.THROTTLED, tries=tries, since=NOW - 10)
    assert verdicts(facts) == {(Action.CREATE, ExitCode.AGAIN)}
    assert max(waits(facts)) <= min(300.0, 2.0 * 2.0 ** min(tries - 1, 20))


def test_in_a_storm_the_pauses_grow_to_the_turn_of_the_region_and_no_further_than_five_minutes() -> None:
    facts = replace(ABSENT, answer=SubmitAnswer.THROTTLED, tries=20, since=NOW - 10)
    assert max(waits(facts)) > 280
    assert max(waits(facts, rules=replace(RULES, turn_s=40.0))) <= 40


@pytest.mark.parametrize("answer", [SubmitAnswer.THROTTLED, SubmitAnswer.OPEN])
def test_when_patience_is_over_the_next_attempt_goes_on(answer: SubmitAnswer) -> None:
    facts = replace(ABSENT, answer=answer, tries=100, since=NOW - TIMING.training_patience_s)
    assert verdicts(facts) == {(Action.LEAVE, ExitCode.AGAIN)}


def test_a_quota_is_waited_for_and_refused_at_the_end_of_patience() -> None:
    facts = replace(ABSENT, answer=SubmitAnswer.QUOTA, said="limit 'ml.p4d usage'", tries=5, since=NOW - 1000)
    assert verdicts(facts) == {(Action.CREATE, ExitCode.AGAIN)}
    assert min(waits(facts)) >= 15
    assert verdicts(replace(facts, since=NOW - TIMING.training_patience_s)) == {(Action.REFUSE, ExitCode.AGAIN)}


@pytest.mark.parametrize("answer", [SubmitAnswer.ACCEPTED, SubmitAnswer.IN_USE, SubmitAnswer.OPEN])
def test_what_is_not_there_after_all_is_submitted_again_under_the_same_name(answer: SubmitAnswer) -> None:
    assert verdicts(replace(ABSENT, answer=answer, tries=1)) == {(Action.CREATE, ExitCode.AGAIN)}


@pytest.mark.parametrize("facts", [ABSENT, OURS, ChildFacts(known=Known.UNKNOWN)], ids=["absent", "ours", "unknown"])
def test_a_child_goes_before_its_container_is_too_old(facts: ChildFacts) -> None:
    assert verdicts(facts, now=RULES.leaves_at) == {(Action.LEAVE, ExitCode.AGAIN)}
    assert (Action.LEAVE, ExitCode.AGAIN) not in verdicts(facts, now=RULES.leaves_at - 1)


@pytest.mark.parametrize(
    ("code", "status", "answer"),
    [
        ("ThrottlingException", 400, SubmitAnswer.THROTTLED),
        ("TooManyRequestsException", 429, SubmitAnswer.THROTTLED),
        ("Whatever", 429, SubmitAnswer.THROTTLED),
        ("ResourceLimitExceeded", 400, SubmitAnswer.QUOTA),
        ("ResourceInUse", 400, SubmitAnswer.IN_USE),
        ("InternalFailure", 500, SubmitAnswer.OPEN),
        ("ServiceUnavailable", 503, SubmitAnswer.OPEN),
        ("Whatever", 500, SubmitAnswer.OPEN),
        ("", 0, SubmitAnswer.OPEN),
        ("", 302, SubmitAnswer.OPEN),
        ("ExpiredTokenException", 400, SubmitAnswer.OPEN),
        ("RequestTimeout", 408, SubmitAnswer.OPEN),
        ("ConflictException", 409, SubmitAnswer.OPEN),
        ("ValidationException", 400, SubmitAnswer.REFUSED),
        ("ResourceNotFound", 400, SubmitAnswer.REFUSED),
        ("AccessDeniedException", 400, SubmitAnswer.REFUSED),
        ("AccessDenied", 403, SubmitAnswer.REFUSED),
        ("UnrecognizedClientException", 400, SubmitAnswer.REFUSED),
    ],
)
def test_what_an_error_of_a_submission_means(code: str, status: int, answer: SubmitAnswer) -> None:
    assert answered(code, status) is answer


@pytest.mark.parametrize("said", ["", "no quotes at all"])
def test_a_quota_without_a_name_is_told_all_the_same(said: str) -> None:
    assert "of its machine type" in out_of_quota("SageMaker", said, 3600)


@pytest.mark.parametrize(
    "found", [{}, {"a": "1"}, {"a": "1", "b": "3"}, {"a": "1", "B": "2"}, {"a": "", "b": "2"}], ids=str
)
def test_a_training_with_other_tags_is_not_ours(found: dict[str, str]) -> None:
    assert not is_ours(found, {"a": "1", "b": "2"})


def test_further_tags_change_nothing() -> None:
    assert is_ours({"a": "1", "b": "2", "team": "vision"}, {"a": "1", "b": "2"})


# Pace


def test_no_two_lines_of_a_region_share_a_slot_in_any_round() -> None:
    grid = grid_of(40, REGIONS)
    for work in (list(range(40)), list(range(0, 40, 3)), [0, 4, 8], list(range(11))):
        for region in REGIONS:
            lines = [line for line in map(line_of, work) if line.region == region]
            slots = [slot(line, grid, Round(2, NOW, work)) for line in lines]
            assert len(slots) == len(set(slots)), (region, work)


def test_a_short_round_takes_no_longer_than_its_lines() -> None:
    grid = grid_of(4000, REGIONS)
    assert slot(line_of(3999), grid, Round(1, NOW)) == 999
    assert slot(line_of(3999), grid, Round(2, NOW, [7, 3999])) == 1


def test_the_jitter_stays_within_the_slot_and_the_begin_within_a_minute() -> None:
    grid = grid_of(4000, REGIONS, pace=2.0)
    for seed in range(50):
        found = earliest(line_of(400), grid, Round(1, 0.0), 60.0, random.Random(seed))
        assert NOW + 60 + 50.0 <= found < NOW + 60 + 50.5


def test_backoff_is_full_jitter_under_a_bound_that_doubles() -> None:
    chance = random.Random(0)
    for tries, most in ((1, 2), (2, 4), (3, 8), (10, 60), (5000, 60)):
        found = [backoff_s(tries, 2.0, 60.0, chance) for _ in range(300)]
        assert 0 <= min(found) < most / 10
        assert most * 0.9 < max(found) <= most


def test_jitter_is_a_fifth() -> None:
    found = [jittered(60, random.Random(seed)) for seed in range(300)]
    assert 48 <= min(found) < 49
    assert 71 < max(found) <= 72
