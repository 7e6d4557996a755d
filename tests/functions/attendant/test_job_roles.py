"""The training of a job that names a role gets keys of it. A role that cannot be assumed ends the attempt in words; nothing else does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from attendant.policy import Action, judge
from contract import items, names, sessions
from contract.codec import decode, encode
from contract.errors import NEW_ATTEMPT, RoleRefused
from contract.sessions import LASTS_S, AttemptSessions, SessionCredentials
from tests.builders import JOB_ROLE, JOB_ROLES, NODE_ROLE, NOW
from tests.fakes import state
from tests.fakes.faults import Mishap
from tests.fakes.fleet import WORKING, Fleet
from tests.fakes.functions import Outcome
from tests.functions.attendant.attempts import TRAINING

PLAIN, WITH = "job-0000", "job-0001"
ARN = JOB_ROLES["corpus"]
PATIENCE_S = 300.0


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    made = Fleet([1, 2], now=NOW)
    names_role(made, "corpus")
    with made.functions.installed():
        yield made


def names_role(fleet: Fleet, role: str) -> None:
    (job,) = (one for one in fleet.jobs if one.id == WITH)
    state.store(fleet.aws, items.job(WITH), encode(replace(job, job_role=role)))


def looked(fleet: Fleet, *mishaps: Mishap) -> Outcome:
    return fleet.functions.invoke("attendant", {"source": "aws.events"}, list(mishaps))


def later(fleet: Fleet, seconds: float) -> None:
    """Minutes pass, each with a look, while every node reports."""
    until = fleet.clock.now + seconds
    while fleet.clock.now < until:
        fleet.clock.now += 60
        for job, instances in fleet.instances.items():
            for rank, one in enumerate(instances):
                state.report(fleet.aws, replace(WORKING, job=job, rank=rank, instance=one))
        looked(fleet)


def keys_of(fleet: Fleet, job: str) -> list[SessionCredentials]:
    found = [state.stored(fleet.aws, items.node_credentials(NODE_ROLE, one)) for one in fleet.instances[job]]
    return [decode(SessionCredentials, one) for one in found if one]


def begun(fleet: Fleet, role: str = ARN) -> list[dict[str, Any]]:
    """What was asked for each session of the role."""
    return [one for one in fleet.aws.sts.sessions if one["RoleArn"] == role]


def answer(fleet: Fleet, job: str) -> tuple[str, str]:
    """The error and cause that Train got; empty where it still waits."""
    return fleet.aws.states.waits[fleet.tokens[job]].error or ("", "")


def writes(fleet: Fleet) -> int:
    """Of nodes' keys."""
    puts = [call for call in fleet.aws.calls if call.operation == "PutItem"]
    return sum(call.params["Item"]["sk"]["S"] == items.KEYS for call in puts)


def test_the_training_gets_keys_of_its_role_tagged_with_the_job_in_the_item_of_the_jobs_keys(fleet: Fleet) -> None:
    looked(fleet)
    (asked,) = begun(fleet)
    assert asked["Tags"] == [{"Key": sessions.TAG, "Value": WITH}]
    assert (asked["RoleSessionName"], asked["DurationSeconds"]) == (f"{WITH}.1", LASTS_S)
    assert "Policy" not in asked
    first, second = keys_of(fleet, WITH)
    assert first == second
    assert first.training is not None
    assert fleet.aws.sts.session(first.training.access_key)["RoleArn"] == ARN
    assert fleet.aws.sts.session(first.access_key)["RoleArn"] == JOB_ROLE
    assert writes(fleet) == 3


def test_a_job_without_a_role_gets_the_keys_of_its_job_and_no_others(fleet: Fleet) -> None:
    looked(fleet)
    (keys,) = keys_of(fleet, PLAIN)
    assert (keys.training, keys.refusal) == (None, "")
    assert all(one["Tags"] != [{"Key": sessions.TAG, "Value": PLAIN}] for one in begun(fleet))


def test_both_kinds_are_renewed_together_at_half_of_their_time(fleet: Fleet) -> None:
    looked(fleet)
    later(fleet, LASTS_S / 2 - 120)
    assert len(begun(fleet)) == 1
    later(fleet, 180)
    assert len(begun(fleet)) == 2
    assert writes(fleet) == 6


def test_a_role_that_is_denied_for_longer_than_its_patience_ends_the_attempt_in_words(fleet: Fleet) -> None:
    fleet.aws.sts.refuses[ARN] = "AccessDenied"
    looked(fleet)
    later(fleet, PATIENCE_S + 60)
    error, cause = answer(fleet, WITH)
    assert error == RoleRefused.__name__
    for words in (ARN, "job_role", "job_roles.corpus in cdk.json", "sts:AssumeRole and sts:TagSession"):
        assert words in cause
    for words in (f"output {names.ATTENDANT_ROLE} of the stack yard-workflow", "User: me is not authorized"):
        assert words in cause
    assert answer(fleet, PLAIN) == ("", "")


def test_no_new_attempt_follows_a_role_that_cannot_be_assumed() -> None:
    assert RoleRefused not in NEW_ATTEMPT


def test_a_role_that_was_made_a_minute_ago_ends_nothing_and_its_keys_come_once_iam_knows_it(fleet: Fleet) -> None:
    fleet.aws.sts.refuses[ARN] = "AccessDenied"
    looked(fleet)
    later(fleet, PATIENCE_S - 60)
    assert answer(fleet, WITH) == ("", "")
    assert all(one.training is None and "User: me" in one.refusal for one in keys_of(fleet, WITH))
    del fleet.aws.sts.refuses[ARN]
    later(fleet, 60)
    assert all(one.training is not None and one.refusal == "" for one in keys_of(fleet, WITH))
    later(fleet, 2 * PATIENCE_S)
    assert answer(fleet, WITH) == ("", "")


def test_a_role_that_is_denied_keeps_nobody_from_the_keys_of_the_job_and_fails_no_look(fleet: Fleet) -> None:
    fleet.aws.sts.refuses[ARN] = "AccessDenied"
    assert looked(fleet).error == ""
    assert len(keys_of(fleet, WITH)) == 2
    later(fleet, 120)
    assert writes(fleet) == 3


@pytest.mark.parametrize(
    "code", ["Throttling", "ServiceUnavailable", "ExpiredToken", "InvalidClientTokenId", "ValidationError"]
)
def test_an_answer_that_says_nothing_about_the_role_ends_no_job(fleet: Fleet, code: str) -> None:
    fleet.aws.sts.refuses[ARN] = code
    looked(fleet)
    later(fleet, 3 * PATIENCE_S)
    assert answer(fleet, WITH) == ("", "")
    assert {one.refusal for one in keys_of(fleet, WITH)} == {""}
    fleet.aws.sts.refuses.clear()
    later(fleet, 60)
    assert all(one.training is not None for one in keys_of(fleet, WITH))


def test_a_session_service_that_answers_nobody_ends_no_job(fleet: Fleet) -> None:
    fleet.aws.keyless = True
    for _ in range(10):
        looked(fleet)
        fleet.clock.now += 60
        for job, instances in fleet.instances.items():
            for rank, one in enumerate(instances):
                state.report(fleet.aws, replace(WORKING, job=job, rank=rank, instance=one))
    assert answer(fleet, WITH) == ("", "")
    fleet.aws.keyless = False
    later(fleet, 120)
    assert all(one.training is not None for one in keys_of(fleet, WITH))


def test_a_training_that_had_its_role_goes_on_without_and_is_told_why(fleet: Fleet) -> None:
    looked(fleet)
    fleet.aws.sts.refuses[ARN] = "AccessDenied"
    later(fleet, 3 * LASTS_S)
    assert answer(fleet, WITH) == ("", "")
    for keys in keys_of(fleet, WITH):
        assert keys.training is None
        assert "User: me" in keys.refusal
        assert keys.expires > fleet.clock.now


def test_a_role_that_comes_back_reaches_a_running_training(fleet: Fleet) -> None:
    looked(fleet)
    fleet.aws.sts.refuses[ARN] = "AccessDenied"
    later(fleet, LASTS_S)
    del fleet.aws.sts.refuses[ARN]
    later(fleet, 60)
    assert all(one.training is not None and not one.refusal for one in keys_of(fleet, WITH))


def test_a_name_that_the_settings_no_longer_have_is_denied_without_asking_sts(fleet: Fleet) -> None:
    names_role(fleet, "gone")
    looked(fleet)
    later(fleet, PATIENCE_S + 60)
    error, cause = answer(fleet, WITH)
    assert error == RoleRefused.__name__
    assert "job_roles.gone in cdk.json" in cause
    assert "no longer has the name" in cause
    assert begun(fleet) == []


def test_an_urgent_report_asks_nobody_for_sessions(fleet: Fleet) -> None:
    fleet.ends(WITH, after_s=1.0)
    fleet.clock.run(5)
    assert begun(fleet) == []


DENIED = AttemptSessions(until=NOW + 3600, refused_from=NOW - 400, refused_last=NOW - 60, refusal="no")
ATTEMPT = replace(TRAINING, job=replace(TRAINING.job, job_role="corpus"), training_role=ARN, sessions=DENIED)


def test_denied_for_longer_than_the_patience_is_refused() -> None:
    verdict = judge(ATTEMPT, now=NOW)
    assert (verdict.action, verdict.error) == (Action.FAIL, RoleRefused.__name__)


@pytest.mark.parametrize(
    "kept",
    [
        replace(ATTEMPT, sessions=replace(DENIED, refused_last=DENIED.refused_from + 299)),
        # One denial, however long ago: nobody has asked since.
        replace(ATTEMPT, sessions=replace(DENIED, refused_from=NOW - 9999, refused_last=NOW - 9999)),
        replace(ATTEMPT, sessions=replace(DENIED, training_until=NOW + 3600)),
        replace(ATTEMPT, sessions=replace(DENIED, training_until=NOW - 3600)),
        replace(ATTEMPT, sessions=AttemptSessions(until=NOW + 3600)),
        replace(ATTEMPT, sessions=AttemptSessions()),
        replace(ATTEMPT, job=TRAINING.job),
    ],
)
def test_anything_less_is_kept(kept: Any) -> None:
    assert judge(kept, now=NOW).error != RoleRefused.__name__
