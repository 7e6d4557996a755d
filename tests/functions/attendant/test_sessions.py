"""Nodes get keys for their job, new ones long before those expire, and none once their attempt is over."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from attendant.sessions import RENEWED_S, is_due, list_regions
from aws import breaker
from aws.state import State
from contract import items, sessions
from contract.codec import decode, encode
from contract.intents import Intent
from contract.jobs import Job, SourceCheckpoint
from contract.sessions import LASTS_S, SessionCredentials
from tests.builders import JOB, JOB_ROLE, NODE_ROLE, NOW
from tests.fakes import state
from tests.fakes.faults import Kind, Mishap
from tests.fakes.fleet import WORKING, Fleet
from tests.fakes.functions import Outcome
from tests.fakes.state import TABLE

A, B = "job-0000", "job-0001"


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    made = Fleet([2, 3], now=NOW)
    with made.functions.installed():
        yield made


def looked(fleet: Fleet, *mishaps: Mishap) -> Outcome:
    return fleet.functions.invoke("attendant", {"source": "aws.events"}, list(mishaps))


def later(fleet: Fleet, seconds: float, *, away: Kind | None = None, reporting: bool = True) -> int:
    """Minutes pass, each with a look, while every node reports; STS may be `away` all the time. Returns how many looks."""
    looks, until = 0, fleet.clock.now + seconds
    while fleet.clock.now < until:
        fleet.clock.now = max(fleet.clock.now, fleet.clock.now // 60 * 60 + 60)
        for job, instances in fleet.instances.items() if reporting else ():
            for rank, one in enumerate(instances):
                state.report(fleet.aws, replace(WORKING, job=job, rank=rank, instance=one))
        looked(fleet, *([Mishap("sts:AssumeRole", times=math.inf, fault=away)] if away else []))
        looks += 1
    return looks


def keys_of(fleet: Fleet, job: str) -> list[SessionCredentials | None]:
    """Of each of its nodes."""
    found = [state.stored(fleet.aws, items.node_credentials(NODE_ROLE, one)) for one in fleet.instances[job]]
    return [decode(SessionCredentials, one) if one else None for one in found]


def of_job(fleet: Fleet, job: str) -> list[dict[str, Any]]:
    """What was asked for each session of the job."""
    return [one for one in fleet.aws.sts.sessions if one["Tags"] == [{"Key": sessions.TAG, "Value": job}]]


def test_every_node_learns_the_address_of_every_node_of_its_own_attempt(fleet: Fleet) -> None:
    looked(fleet)
    for job, nodes in ((A, 2), (B, 3)):
        told = [found.addresses for found in keys_of(fleet, job) if found is not None]
        assert told == [tuple(f"10.0.0.{rank + 4}" for rank in range(nodes))] * nodes


def test_every_node_of_a_job_has_the_same_keys_and_no_other_jobs_nodes_have_them(fleet: Fleet) -> None:
    looked(fleet)
    first, *others = keys_of(fleet, A)
    assert first is not None
    assert others == [first]
    assert first not in keys_of(fleet, B)
    (asked,) = of_job(fleet, A)
    assert asked["RoleArn"] == JOB_ROLE
    assert asked["RoleSessionName"] == f"{A}.1"
    assert asked["DurationSeconds"] == LASTS_S == 3600


def test_a_session_reads_the_secrets_of_its_own_job_and_of_no_other(fleet: Fleet) -> None:
    arn, key = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:trainyard/yard/hush-AbCdEf", items.job(A)
    admitted = decode(Job, state.stored(fleet.aws, key) or b"")
    state.store(fleet.aws, key, encode(replace(admitted, secrets={"HUSH": arn})))
    looked(fleet)
    assert [one["Policy"] for one in of_job(fleet, A)] == [sessions.policy([arn])]
    assert [one["Policy"] for one in of_job(fleet, B)] == [sessions.policy([])]


def test_a_session_of_a_job_that_begins_from_another_may_read_that_one_and_no_other_session_may(fleet: Fleet) -> None:
    key = items.job(A)
    admitted = decode(Job, state.stored(fleet.aws, key) or b"")
    source = SourceCheckpoint(job="earlier", region="eu-central-1", bucket="b", attempt=1, number=1, step=9)
    state.store(fleet.aws, key, encode(replace(admitted, resume=source)))
    looked(fleet)
    asked = [one["Tags"] for one in fleet.aws.sts.sessions]
    own = {"Key": sessions.TAG, "Value": A}
    assert [tags for tags in asked if own in tags] == [[own, {"Key": sessions.SOURCE_TAG, "Value": "earlier"}]]
    assert [tags for tags in asked if own not in tags] == [[{"Key": sessions.TAG, "Value": B}]]


def test_looks_at_fresh_keys_begin_no_session(fleet: Fleet) -> None:
    for _ in range(3):
        looked(fleet)
        fleet.clock.run(60)
    assert len(fleet.aws.sts.sessions) == 2


def test_keys_are_renewed_while_half_of_their_time_is_left(fleet: Fleet) -> None:
    looked(fleet)
    before = keys_of(fleet, A)
    later(fleet, LASTS_S - RENEWED_S + 60)
    assert before != keys_of(fleet, A) != [None, None]
    assert len(of_job(fleet, A)) == 2


@pytest.mark.parametrize(
    ("left", "due"), [(LASTS_S, False), (RENEWED_S, False), (RENEWED_S - 1, True), (0, True), (-math.inf, True)]
)
def test_what_is_valid_for_less_than_half_an_hour_is_due(left: float, due: bool) -> None:
    assert is_due(NOW + left, NOW) is due


def test_an_attempt_that_never_had_keys_is_due() -> None:
    assert is_due(0.0, NOW)


def test_an_attempt_that_is_over_gets_no_keys(fleet: Fleet) -> None:
    fleet.ends(A, after_s=1.0)
    fleet.clock.run(5)
    looked(fleet)
    assert of_job(fleet, A) == []
    assert keys_of(fleet, A) == [None, None]


def test_an_attempt_that_nobody_waits_for_any_more_gets_no_keys(fleet: Fleet) -> None:
    del fleet.aws.states.waits[fleet.tokens[A]]
    looked(fleet)
    assert of_job(fleet, A) == []


def test_a_session_service_that_does_not_answer_keeps_no_heartbeat_back_and_the_next_look_tries_again(
    fleet: Fleet,
) -> None:
    away = Mishap("sts:AssumeRole", times=math.inf, fault=Kind.DENIED)
    outcome = looked(fleet, away)
    assert "2 of 2 looks failed" in outcome.cause
    beats = [call.params["taskToken"] for call in fleet.aws.calls if call.operation == "SendTaskHeartbeat"]
    assert sorted(beats) == sorted(fleet.tokens.values())
    looked(fleet)
    assert None not in keys_of(fleet, A)


def test_keys_that_could_not_be_given_to_every_node_are_begun_again(fleet: Fleet) -> None:
    """A node that lacks its copy would otherwise wait for half an hour."""
    spoiled = f"{NODE_ROLE}:{fleet.instances[A][1]}"
    puts = [call for call in fleet.aws.calls if call.operation == "PutItem"]
    assert puts == []
    # The pass is noted first; of the five copies one is refused.
    looked(fleet, Mishap("dynamodb:PutItem", nth=3, fault=Kind.DENIED))
    assert None in (*keys_of(fleet, A), *keys_of(fleet, B)), spoiled
    looked(fleet)
    assert None not in (*keys_of(fleet, A), *keys_of(fleet, B))


def test_keys_written_by_a_node_itself_are_replaced_at_their_time_and_reach_nobody_else(fleet: Fleet) -> None:
    looked(fleet)
    own = items.node_credentials(NODE_ROLE, fleet.instances[A][0])
    state.store(fleet.aws, own, b"nonsense")
    assert looked(fleet).error == ""
    later(fleet, LASTS_S)
    assert None not in keys_of(fleet, A)


# STS is away

AWAY = [Kind.DENIED, Kind.ERROR, Kind.UNREACHABLE]
"""It refuses, it has an error of its own, it does not answer."""


def ends(fleet: Fleet) -> list[str]:
    """Answers to Train that ended an attempt."""
    return [one.operation for one in fleet.aws.calls if one.operation in ("SendTaskFailure", "SendTaskSuccess")]


def beats(fleet: Fleet) -> int:
    return len([one for one in fleet.aws.calls if one.operation == "SendTaskHeartbeat"])


@pytest.mark.parametrize("seconds", [600, pytest.param(7200, marks=pytest.mark.at_length)])
@pytest.mark.parametrize("kind", AWAY)
def test_a_job_that_trains_while_sts_is_away_is_not_ended_and_has_new_keys_at_the_next_look(
    fleet: Fleet, kind: Kind, seconds: int
) -> None:
    looked(fleet)
    later(fleet, LASTS_S - RENEWED_S)
    before = keys_of(fleet, A)
    beaten = beats(fleet)
    looks = later(fleet, seconds, away=kind)
    assert (ends(fleet), keys_of(fleet, A)) == ([], before)
    assert (looks >= seconds / 60 - 1, beats(fleet)) == (True, beaten + len(fleet.jobs) * looks)
    later(fleet, breaker.OPEN_S + 60)
    (given,) = set(keys_of(fleet, A))
    assert given is not None
    assert given.expires > fleet.clock.now + RENEWED_S


@pytest.mark.parametrize("seconds", [600, pytest.param(7200, marks=pytest.mark.at_length)])
@pytest.mark.parametrize("kind", AWAY)
def test_nodes_that_wait_for_their_first_keys_are_not_lost_by_that(kind: Kind, seconds: int) -> None:
    """A new attempt would wait as well, and an hour of an outage would use up all recoveries."""
    fleet = Fleet([2], now=NOW, age_s=0.0, reporting=False)
    with fleet.functions.installed():
        looks = later(fleet, seconds, away=kind, reporting=False)
        assert ends(fleet) == []
        assert (looks >= seconds / 60 - 1, beats(fleet)) == (True, looks)
        later(fleet, breaker.OPEN_S + 60, reporting=False)
        assert None not in keys_of(fleet, A)
        later(fleet, JOB.timing.boot_allowance_s - 180, reporting=False)
        assert ends(fleet) == []
        later(fleet, 300, reporting=False)
        assert ends(fleet) == ["SendTaskFailure"]


def test_renewals_do_not_put_off_the_end_of_a_node_that_never_reports() -> None:
    fleet = Fleet([2], now=NOW, age_s=0.0, reporting=False)
    fleet.aws.sts.lasts_s = 20.0
    with fleet.functions.installed():
        later(fleet, JOB.timing.boot_allowance_s + 120, reporting=False)
        assert ends(fleet) == ["SendTaskFailure"]


def walked(fleet: Fleet, job: str, attempt: int, region: str) -> None:
    """An attempt of the job was launched in a region."""
    key = items.launch(job, 1, 1)
    first = decode(Intent, state.stored(fleet.aws, key) or b"")
    step = next(one for one in first.steps if one.answer)
    there = replace(step, rung=replace(step.rung, region=region))
    state.store(fleet.aws, items.launch(job, attempt, 1), encode(replace(first, attempt=attempt, steps=(there,))))


def test_nodes_of_a_first_attempt_are_told_of_no_region(fleet: Fleet) -> None:
    looked(fleet)
    assert {one.ran_in for one in keys_of(fleet, A) if one} == {()}


def test_nodes_of_a_later_attempt_are_told_where_earlier_ones_ran_and_not_where_their_own_does(fleet: Fleet) -> None:
    job = decode(Job, state.stored(fleet.aws, items.job(A)) or b"")
    for attempt, region in enumerate(("us-east-1", "eu-west-1", "us-east-1", "ap-south-1"), 1):
        walked(fleet, A, attempt, region)
    assert list_regions(State(TABLE), job, 4) == ("eu-west-1", "us-east-1")


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_nodes_ask_every_region_where_the_launch_of_an_earlier_attempt_is_not_known(fleet: Fleet, lost: int) -> None:
    """A table that was restored to an earlier point lacks some; the newest checkpoint may be where such an attempt ran."""
    job = decode(Job, state.stored(fleet.aws, items.job(A)) or b"")
    for attempt in (1, 2, 3):
        walked(fleet, A, attempt, "us-east-1")
    State(TABLE).delete(items.launch(A, lost, 1))
    assert list_regions(State(TABLE), job, 4) == ()
