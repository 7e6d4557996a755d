"""What the reaper concludes about one thing: what is kept comes first, and is most of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from aws.facts import Belonging, Sort
from reaper.policy import Action, Life, OwningExecution, Rule, Rules, Suspect, Verdict, judge, read_deadline, span
from tests.builders import JOB, NOW
from tests.fakes.functions import PROFILE
from tests.fakes.reaping import ENVIRONMENT
from tests.functions.reaper.reaped import OURS

HOUR, DAY = 3600.0, 86_400.0
RULES = Rules.of(ENVIRONMENT)
RUNS = OwningExecution(life=Life.RUNS)
OVER = OwningExecution(life=Life.OVER, ended_at=NOW - HOUR, why="ABORTED")
UNKNOWN = OwningExecution(life=Life.UNKNOWN, why="throttled")
LATE = replace(OURS, deadline=str(int(NOW - 10 * 60)))
UNTAGGED = replace(OURS, deployment=None, execution="", deadline="", job="", born_at=NOW - 200 * HOUR)
VOLUME = replace(OURS, sort=Sort.VOLUME, id="vol-1", state="available", profile="")


def said(thing: Belonging, owner: OwningExecution = OVER, suspect: Suspect | None = None, now: float = NOW) -> Verdict:
    return judge(thing, owner, suspect, now, RULES)


def seen(rule: Rule, ago: float) -> Suspect:
    return Suspect(rule=rule, since=NOW - ago)


def assert_kept(verdict: Verdict, rule: Rule, *, tell: bool = False) -> None:
    assert (verdict.action, verdict.rule, verdict.tell) == (Action.KEEP, rule, tell), verdict


# What is none of ours


@pytest.mark.parametrize(
    "deployment",
    [None, "other", "yard ", " yard", "Yard", "YARD", "yard-2", "yar", "", "yard\u200b", "*", "y?rd"],
)
@pytest.mark.parametrize("profile", ["", "arn:aws:iam::123456789012:instance-profile/yard-node-2", PROFILE.upper()])
def test_what_has_neither_our_tag_nor_our_profile_is_kept_whatever_it_looks_like(
    deployment: str | None, profile: str
) -> None:
    stranger = replace(LATE, deployment=deployment, profile=profile, born_at=NOW - 1000 * HOUR)
    assert_kept(said(stranger, OVER, seen(Rule.OVER, DAY)), Rule.FOREIGN)


@pytest.mark.parametrize("deployment", ["other", "yard ", "Yard", ""])
@pytest.mark.parametrize("age", [2 * HOUR, 1000 * HOUR])
def test_another_deployments_instance_under_our_profile_is_kept_and_told(deployment: str, age: float) -> None:
    other = replace(LATE, deployment=deployment, born_at=NOW - age)
    for rule in Rule:
        assert_kept(said(other, OVER, seen(rule, DAY)), Rule.OTHER_DEPLOYMENT, tell=True)


# What ends, is protected, or is too young


@pytest.mark.parametrize("state", ["shutting-down", "terminated"])
def test_what_has_begun_to_end_is_left_alone(state: str) -> None:
    assert_kept(said(replace(LATE, state=state)), Rule.ENDING)


@pytest.mark.parametrize("thing", [LATE, OURS, UNTAGGED, replace(LATE, state="stopped"), replace(VOLUME)])
@pytest.mark.parametrize("rule", list(Rule))
def test_what_a_person_protects_is_kept_whatever_speaks_against_it(thing: Belonging, rule: Rule) -> None:
    assert_kept(said(replace(thing, protected=True), OVER, seen(rule, DAY)), Rule.PROTECTED)


@pytest.mark.parametrize("thing", [LATE, OURS, UNTAGGED, VOLUME])
def test_what_nobody_knows_the_age_of_is_kept_and_told(thing: Belonging) -> None:
    assert_kept(said(replace(thing, born_at=None)), Rule.UNKNOWN_AGE, tell=True)


@pytest.mark.parametrize("age", [-300.0, -1.0, 0.0, 1.0, 599.0])
@pytest.mark.parametrize("owner", [RUNS, OVER, UNKNOWN])
def test_an_instance_within_its_grace_period_is_kept(age: float, owner: OwningExecution) -> None:
    young = replace(OURS, born_at=NOW - age)
    assert_kept(said(young, owner, seen(Rule.OVER, DAY)), Rule.YOUNG)


@pytest.mark.parametrize("age", [-300.0, 0.0, 599.0])
def test_an_untagged_instance_within_its_grace_period_is_kept(age: float) -> None:
    assert_kept(said(replace(UNTAGGED, born_at=NOW - age)), Rule.YOUNG)


# The deadline


def test_an_instance_past_its_deadline_ends_at_the_first_look() -> None:
    verdict = said(LATE, RUNS)
    assert verdict.at_once
    assert verdict.reason == "its deadline passed 10 min ago"


@pytest.mark.parametrize("owner", [RUNS, OVER, UNKNOWN])
def test_past_the_deadline_it_does_not_matter_what_the_execution_does(owner: OwningExecution) -> None:
    assert said(LATE, owner).at_once


@pytest.mark.parametrize("after", [-HOUR, -1.0, 0.0, 119.0])
def test_a_deadline_that_is_not_past_by_two_minutes_ends_nothing(after: float) -> None:
    assert_kept(said(replace(OURS, deadline=str(int(NOW - after))), RUNS), Rule.RUNNING)


def test_a_stopped_instance_goes_by_the_same_rules() -> None:
    assert said(replace(LATE, state="stopped"), RUNS).at_once
    assert_kept(said(replace(OURS, state="stopped"), RUNS), Rule.RUNNING)
    assert said(replace(OURS, state="stopped"), OVER).action is Action.MARK


def test_an_instance_that_was_launched_just_before_its_deadline_is_gone_in_time_too() -> None:
    late = replace(OURS, born_at=NOW - 130, deadline=str(int(NOW - 125)))
    assert said(late, RUNS).at_once


@pytest.mark.parametrize("age", [-300.0, 0.0, 119.0])
def test_an_instance_that_was_launched_past_its_deadline_has_two_minutes_all_the_same(age: float) -> None:
    assert_kept(said(replace(OURS, born_at=NOW - age, deadline=str(int(NOW - DAY))), RUNS), Rule.YOUNG)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "soon",
        "-5",
        "1e9",
        "0",
        "24",
        "1800000000.5",
        " 1799999000",
        "1799999000 ",
        "+1799999000",
        "٣٤٥",
        "²",
        "1799999000000",
        "9" * 300,
        "nan",
        str(int(NOW + 103 * HOUR)),
        str(int(NOW - 30 * DAY)),
    ],
)
def test_a_deadline_that_cannot_be_one_ends_nothing_that_runs_and_is_told(text: str) -> None:
    verdict = said(replace(OURS, deadline=text), RUNS)
    assert_kept(verdict, Rule.RUNNING_UNREADABLE, tell=True)
    assert repr(text) in verdict.reason


def test_the_longest_deadline_that_a_job_can_have_is_read() -> None:
    born = NOW - 2 * HOUR
    longest = replace(OURS, deadline=str(int(born + RULES.longest_s)))
    assert read_deadline(longest, RULES) == born + RULES.longest_s
    assert read_deadline(replace(longest, deadline=str(int(born + RULES.longest_s) + 1)), RULES) is None


def test_a_redriven_executions_old_deadline_is_read() -> None:
    assert said(replace(OURS, deadline=str(int(NOW - 13 * DAY))), RUNS).at_once


# The execution


def test_what_runs_with_its_deadline_ahead_is_kept_without_a_word() -> None:
    verdict = said(OURS, RUNS, seen(Rule.OVER, DAY))
    assert_kept(verdict, Rule.RUNNING)
    assert verdict.quiet


@pytest.mark.parametrize("ended", [0.0, 1.0, 599.0])
def test_an_execution_that_ended_lately_leaves_its_instances_to_the_other_layers(ended: float) -> None:
    owner = replace(OVER, ended_at=NOW - ended)
    assert_kept(said(OURS, owner, seen(Rule.OVER, DAY)), Rule.ENDED_LATELY)


def test_an_execution_that_ends_in_the_future_is_not_over() -> None:
    assert_kept(said(OURS, replace(OVER, ended_at=NOW + 300), seen(Rule.OVER, DAY)), Rule.ENDED_LATELY)


@pytest.mark.parametrize("owner", [OVER, replace(OVER, ended_at=None)])
def test_an_instance_whose_execution_is_over_is_marked_first(owner: OwningExecution) -> None:
    assert said(OURS, owner).action is Action.MARK


@pytest.mark.parametrize("owner", [OVER, replace(OVER, ended_at=None)])
@pytest.mark.parametrize(
    ("ago", "action"), [(0, Action.MARK), (179, Action.MARK), (180, Action.TERMINATE), (235, Action.TERMINATE)]
)
def test_it_ends_at_a_second_look_that_is_late_enough(owner: OwningExecution, ago: float, action: Action) -> None:
    verdict = said(OURS, owner, seen(Rule.OVER, ago))
    assert (verdict.action, verdict.first) == (action, False)


@pytest.mark.parametrize("rule", [rule for rule in Rule if rule is not Rule.OVER])
def test_a_mark_for_another_reason_is_no_first_look(rule: Rule) -> None:
    """Made since the execution ended, and long enough ago, so that nothing but its reason stands against it."""
    verdict = said(OURS, OVER, seen(rule, HOUR / 2))
    assert (verdict.action, verdict.first) == (Action.MARK, True)


def test_a_mark_from_before_the_execution_ended_is_no_first_look_at_this_end() -> None:
    verdict = said(OURS, OVER, seen(Rule.OVER, 2 * HOUR))
    assert (verdict.action, verdict.first) == (Action.MARK, True)


def test_a_mark_of_the_future_is_no_first_look() -> None:
    assert said(OURS, OVER, seen(Rule.OVER, -HOUR)).action is Action.MARK


def test_not_to_know_whether_the_execution_runs_keeps_and_tells() -> None:
    for rule in Rule:
        assert_kept(said(OURS, UNKNOWN, seen(rule, DAY)), Rule.UNKNOWN_OWNER, tell=True)


@pytest.mark.parametrize("age", [2 * HOUR, 100 * HOUR])
def test_with_neither_execution_nor_deadline_known_an_instance_is_kept_as_long_as_a_job_may_last(age: float) -> None:
    lost = replace(OURS, deadline="?", born_at=NOW - age)
    assert_kept(said(lost, UNKNOWN, seen(Rule.LOST, DAY)), Rule.UNKNOWN_OWNER, tell=True)


def test_beyond_the_longest_job_it_wants_two_looks() -> None:
    lost = replace(OURS, deadline="?", born_at=NOW - 102 * HOUR)
    assert said(lost, UNKNOWN).action is Action.MARK
    assert said(lost, UNKNOWN, seen(Rule.LOST, 300)).action is Action.TERMINATE


# By the tag alone


STRANGE = ["", "arn:aws:iam::123456789012:instance-profile/somebody", PROFILE.upper(), f"{PROFILE}-2"]


@pytest.mark.parametrize("profile", STRANGE)
@pytest.mark.parametrize("owner", [RUNS, OVER, UNKNOWN, replace(OVER, ended_at=None)])
@pytest.mark.parametrize("thing", [LATE, OURS, replace(OURS, deadline="soon", born_at=NOW - 1000 * HOUR)])
def test_an_instance_with_our_tag_and_without_our_profile_is_kept_and_told(
    thing: Belonging, owner: OwningExecution, profile: str
) -> None:
    strange = replace(thing, profile=profile)
    for rule in Rule:
        assert_kept(said(strange, owner, seen(rule, DAY)), Rule.OTHER_PROFILE, tell=True)


def test_nobody_is_told_of_a_new_instance_whose_profile_ec2_may_not_show_yet() -> None:
    assert_kept(said(replace(OURS, profile="", born_at=NOW - 60)), Rule.YOUNG)


# By the profile alone


@pytest.mark.parametrize("age", [HOUR, 100 * HOUR, 101 * HOUR - 1])
def test_an_untagged_instance_under_our_profile_is_kept_and_told_as_long_as_a_job_may_last(age: float) -> None:
    young = replace(UNTAGGED, born_at=NOW - age)
    assert_kept(said(young, UNKNOWN, seen(Rule.UNTAGGED_OLD, DAY)), Rule.UNTAGGED, tell=True)


def test_beyond_that_it_wants_two_looks() -> None:
    assert said(UNTAGGED, UNKNOWN).action is Action.MARK
    assert said(UNTAGGED, UNKNOWN, seen(Rule.UNTAGGED_OLD, 100)).action is Action.MARK
    assert said(UNTAGGED, UNKNOWN, seen(Rule.UNTAGGED_OLD, 1800)).action is Action.TERMINATE


def test_a_deadline_without_the_deployments_tag_is_nobodys() -> None:
    assert said(replace(UNTAGGED, deadline=LATE.deadline), UNKNOWN).action is Action.MARK
    young = replace(UNTAGGED, deadline=LATE.deadline, born_at=NOW - HOUR)
    assert_kept(said(young, UNKNOWN), Rule.UNTAGGED, tell=True)


def test_an_instance_that_lost_its_deployments_tag_is_kept_while_its_execution_runs() -> None:
    verdict = said(replace(UNTAGGED, execution=JOB.execution), RUNS, seen(Rule.UNTAGGED_OLD, DAY))
    assert_kept(verdict, Rule.UNTAGGED_RUNNING, tell=True)


# Volumes, requests, interfaces


def test_a_volume_past_its_deadline_wants_two_looks() -> None:
    late = replace(VOLUME, deadline=LATE.deadline)
    assert said(late, RUNS).action is Action.MARK
    assert said(late, RUNS, seen(Rule.DEADLINE, 300)).action is Action.TERMINATE


def test_a_volume_whose_execution_runs_is_kept() -> None:
    assert_kept(said(VOLUME, RUNS, seen(Rule.OVER, DAY)), Rule.RUNNING)


def test_a_volume_is_not_known_by_a_profile() -> None:
    assert_kept(said(replace(VOLUME, deployment=None), OVER, seen(Rule.UNTAGGED_OLD, DAY)), Rule.FOREIGN)


def test_an_interfaces_age_is_not_known_and_two_looks_have_to_do() -> None:
    interface = replace(VOLUME, sort=Sort.INTERFACE, born_at=None)
    assert_kept(said(interface, RUNS), Rule.RUNNING)
    assert_kept(said(interface, UNKNOWN), Rule.UNKNOWN_OWNER, tell=True)
    assert said(interface, OVER).action is Action.MARK
    assert said(interface, OVER, seen(Rule.OVER, 300)).action is Action.TERMINATE


# The limit


@pytest.mark.parametrize(("ours", "most"), [(0, 5), (3, 5), (25, 5), (29, 5), (30, 6), (1000, 200)])
def test_a_pass_ends_a_fifth_of_ours_and_five_at_least(ours: int, most: int) -> None:
    assert RULES.most(ours) == most


@pytest.mark.parametrize(
    ("seconds", "text"), [(-5, "0 min"), (59, "1 min"), (3600, "60 min"), (7200, "2.0 h"), (200 * HOUR, "8.3 days")]
)
def test_durations_are_said_as_a_person_says_them(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_every_reason_is_a_clause_in_words() -> None:
    things: list[Any] = [OURS, LATE, UNTAGGED, VOLUME, replace(OURS, protected=True), replace(OURS, born_at=None)]
    for thing in things:
        for owner in (RUNS, OVER, UNKNOWN):
            assert len(said(thing, owner).reason.split()) >= 3
