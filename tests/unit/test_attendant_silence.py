"""When a node that nobody hears is lost, and when it is only that nobody can hear it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attendant.policy import Action, judge
from attendant.silence import trusts_silence
from aws.facts import Pass
from contract.timing import Timing
from tests.unit.test_attendant_policy import FOUR, LATER, TRAINING, heard

SILENT = replace(TRAINING, nodes={0: heard(0), 1: heard(1, age_s=181)})
TIMING = Timing()


def test_the_first_look_after_a_gap_loses_no_node_to_its_silence() -> None:
    assert judge(SILENT, now=LATER).error == "NodeLost"
    assert judge(replace(SILENT, trusts_silence=False), now=LATER).action is Action.HEARTBEAT


def test_a_gap_does_not_hide_what_ec2_says() -> None:
    states = dict(SILENT.instances or {})
    states["i-1"] = replace(states["i-1"], state="terminated")
    assert judge(replace(SILENT, instances=states, trusts_silence=False), now=LATER).error == "NodeLost"


def test_a_boot_that_nobody_could_hear_of_has_one_more_look() -> None:
    booting = replace(TRAINING, nodes={0: heard(0)}, trusts_silence=False)
    assert judge(booting, now=LATER + 900).action is Action.HEARTBEAT


@pytest.mark.parametrize(
    ("before", "in_pass", "trusts"),
    [
        (None, True, False),
        (None, False, False),
        (Pass(age_s=60, trusts_silence=True), True, True),
        (Pass(age_s=60, trusts_silence=True), False, True),
        (Pass(age_s=121, trusts_silence=True), True, False),
        (Pass(age_s=121, trusts_silence=True), False, False),
        (Pass(age_s=5, trusts_silence=False), False, False),
        (Pass(age_s=60, trusts_silence=False), True, True),
        (Pass(age_s=600, trusts_silence=False), True, True),
    ],
)
def test_silence_is_trusted_from_the_second_pass_after_a_gap(before: Pass | None, in_pass: bool, trusts: bool) -> None:
    assert trusts_silence(before, TIMING, in_pass=in_pass) is trusts


def test_a_clock_that_is_always_slow_only_delays_the_end_of_a_lost_node() -> None:
    before, trusted = None, []
    for _ in range(6):
        now = trusts_silence(before, TIMING, in_pass=True)
        trusted.append(now)
        before = Pass(age_s=500, trusts_silence=now)
    assert trusted == [False, True, False, True, False, True]


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


def test_a_node_that_was_heard_a_moment_ago_is_not_lost_because_one_look_at_ec2_does_not_know_it() -> None:
    unknown = {id_: one for id_, one in (TRAINING.instances or {}).items() if id_ != "i-1"}
    facts = replace(TRAINING, instances=unknown)
    assert judge(replace(facts, nodes={0: heard(0), 1: heard(1, age_s=60)}), now=LATER).action is Action.HEARTBEAT
    verdict = judge(replace(facts, nodes={0: heard(0), 1: heard(1, age_s=61)}), now=LATER)
    assert verdict.error == "NodeLost"
    assert "rank 1 (i-1) is unknown to EC2, and has been silent for 61 s" in verdict.reason
