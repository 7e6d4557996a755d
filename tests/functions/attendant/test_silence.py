"""When a node that nobody hears is lost, and when it is only that nobody can hear it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attendant.policy import Action, judge
from attendant.silence import count_silence, list_gaps
from aws.facts import Pass
from contract.sessions import AttemptSessions
from tests.builders import JOB, NOW
from tests.functions.attendant.attempts import FOUR, LATER, TRAINING, heard, instance

SILENT = replace(TRAINING, nodes={0: heard(0), 1: heard(1, age_s=181)})


def test_time_that_nobody_watched_is_no_silence_of_a_node() -> None:
    assert judge(SILENT, now=LATER).error == "NodeLost"
    assert judge(replace(SILENT, gaps_s=(5.0, 900.0)), now=LATER).action is Action.HEARTBEAT


def test_a_gap_does_not_hide_what_ec2_says() -> None:
    states = dict(SILENT.instances or {})
    states["i-1"] = replace(states["i-1"], state="terminated")
    assert judge(replace(SILENT, instances=states, gaps_s=(5.0, 900.0)), now=LATER).error == "NodeLost"


def test_a_boot_that_nobody_could_hear_of_has_one_more_look() -> None:
    booting = replace(TRAINING, nodes={0: heard(0)}, gaps_s=(5.0, 900.0, *[60.0] * 13))
    assert judge(booting, now=NOW + 1500).action is Action.HEARTBEAT
    assert judge(replace(booting, gaps_s=(60.0,) * 15), now=NOW + 901).error == "NodeLost"


@pytest.mark.parametrize(
    ("silent_s", "gaps_s", "counted_s"),
    [
        (200, (20.0, 60.0, 60.0, 60.0, 60.0), 200.0),
        (930, (5.0, 900.0, 60.0), 5 + 90 + 25.0),
        (930, (900.0, 60.0), 90 + 30.0),
        (930, (900.0,), 90 + 30.0),
        (930, (), 90.0),
        (930, (30.0, 60.0, 900.0), 30 + 60 + 90.0),
    ],
)
def test_of_the_time_between_two_passes_half_of_the_allowed_silence_counts_at_most(
    silent_s: float, gaps_s: tuple[float, ...], counted_s: float
) -> None:
    assert count_silence(silent_s, replace(TRAINING, gaps_s=gaps_s)) == counted_s


def test_a_clock_that_is_always_slow_only_delays_the_end_of_a_lost_node() -> None:
    passes = [(500.0,) * number for number in range(4)]
    lost = [
        judge(replace(SILENT, nodes={0: heard(0), 1: heard(1, age_s=5000)}, gaps_s=one), now=LATER) for one in passes
    ]
    assert [verdict.error for verdict in lost] == ["", "", "NodeLost", "NodeLost"]


def test_passes_are_remembered_for_longer_than_any_silence_that_is_allowed() -> None:
    before = Pass(age_s=60, gaps_s=(61.0,) * 100)
    kept = list_gaps(before)
    assert kept[:2] == (60, 61.0)
    assert sum(kept) > 2 * JOB.timing.silence_s
    assert len(kept) < len(before.gaps_s)
    assert list_gaps(None) == ()


def test_nodes_that_fall_silent_together_while_ec2_says_they_run_have_twice_the_time() -> None:
    silent = {rank: heard(rank, age_s=200 + rank) for rank in range(4)}
    assert judge(replace(FOUR, nodes=silent), now=LATER).action is Action.HEARTBEAT
    assert judge(replace(FOUR, nodes=silent, instances=None), now=LATER).action is Action.HEARTBEAT
    later = {rank: heard(rank, age_s=361) for rank in range(4)}
    assert "silent for 361 s (allowed: 360 s)" in judge(replace(FOUR, nodes=later), now=LATER).reason


def test_one_voice_is_enough_to_take_the_others_silence_seriously() -> None:
    silent = {rank: heard(rank, age_s=200 if rank else 10) for rank in range(4)}
    assert judge(replace(FOUR, nodes=silent), now=LATER).error == "NodeLost"


def test_nodes_that_fall_silent_together_while_ec2_says_that_one_is_gone_have_no_more_time() -> None:
    states = dict(FOUR.instances or {})
    states["i-3"] = replace(states["i-3"], state="shutting-down")
    silent = {rank: heard(rank, age_s=200) for rank in range(4)}
    assert judge(replace(FOUR, nodes=silent, instances=states), now=LATER).error == "NodeLost"


@pytest.mark.parametrize("age_s", [5.0, 100.0, 180.0])
def test_a_node_that_was_heard_is_not_lost_because_one_look_at_ec2_does_not_know_it(age_s: float) -> None:
    unknown = {id_: one for id_, one in (TRAINING.instances or {}).items() if id_ != "i-1"}
    facts = replace(TRAINING, instances=unknown, nodes={0: heard(0), 1: heard(1, age_s=age_s)})
    assert judge(facts, now=LATER).action is Action.HEARTBEAT


# A node without keys can neither read its job nor report

KEYLESS = replace(TRAINING, nodes={}, sessions=AttemptSessions())


def test_a_node_that_nobody_has_given_keys_is_not_lost_however_long_it_waits() -> None:
    assert judge(KEYLESS, now=NOW + 2 * 3600).action is Action.HEARTBEAT


def test_its_boot_allowance_counts_from_its_first_keys() -> None:
    keyed = replace(KEYLESS, sessions=AttemptSessions(since=NOW + 7200, until=NOW + 10800))
    assert judge(keyed, now=NOW + 7200 + 899).action is Action.HEARTBEAT
    verdict = judge(keyed, now=NOW + 7200 + 901)
    assert verdict.error == "NodeLost"
    assert "901 s after it got the credentials of its job" in verdict.reason


@pytest.mark.parametrize("state", ["terminated", "shutting-down", "stopped"])
def test_a_node_without_keys_that_has_ended_is_lost(state: str) -> None:
    states = dict(KEYLESS.instances or {})
    states["i-1"] = replace(states["i-1"], state=state)
    assert judge(replace(KEYLESS, instances=states), now=NOW + 100).error == "NodeLost"


def test_waiting_for_keys_moves_no_deadline() -> None:
    assert judge(KEYLESS, now=JOB.deadline + 200).error == "DeadlineReached"


@pytest.mark.parametrize("state", ["shutting-down", "terminated"])
def test_a_spot_node_that_aws_took_back_without_a_notice_is_an_interruption(state: str) -> None:
    taken = replace(
        instance(1, state), why="Server.SpotInstanceTermination: Spot instance termination", taken_back=True
    )
    verdict = judge(replace(TRAINING, instances={"i-0": instance(0), "i-1": taken}), now=NOW + 60)
    assert (verdict.action, verdict.error) == (Action.FAIL, "Interrupted")
    assert "Server.SpotInstanceTermination" in verdict.reason


def test_a_silent_node_and_one_that_another_reason_ended_are_lost() -> None:
    ended = replace(instance(1, "terminated"), why="Server.InternalError")
    assert judge(replace(TRAINING, instances={"i-0": instance(0), "i-1": ended}), now=NOW + 60).error == "NodeLost"
    silent = replace(TRAINING, nodes={0: heard(0), 1: heard(1, age_s=9_999)})
    assert judge(silent, now=NOW + 60).error == "NodeLost"
