"""Admit learns before anything costs money what STS would refuse the job, and takes no silence for a refusal."""

from __future__ import annotations

import pytest

from admission.trial import SessionPending
from aws.functions import FunctionFailed
from contract import keys
from contract.errors import InvalidRequest, JobError, RoleRefused
from tests.builders import JOB_ROLE, JOB_ROLES, NOW
from tests.fakes.faults import Kind
from tests.functions.admission.account import Account, start
from tools.refusals.jobs import LEAST

CORPUS = JOB_ROLES["corpus"]
PATIENCE_S = 300.0
WITH_ROLE = {**LEAST, "job_role": "corpus"}


def is_written(there: Account) -> bool:
    return there.s3.read("yard-home", keys.JobPrefix("job-1").description) is not None


@pytest.mark.parametrize("role", [JOB_ROLE, CORPUS])
def test_a_denial_that_outlasts_its_patience_ends_the_admission_with_what_sts_says(there: Account, role: str) -> None:
    there.sts.refuses[role] = "AccessDenied"
    there.clock.now = NOW + PATIENCE_S
    with pytest.raises(RoleRefused) as problem:
        start(WITH_ROLE)
    for words in ("Nothing was started", role, "sts:AssumeRole and sts:TagSession", "User: me is not authorized"):
        assert words in str(problem.value)
    assert not is_written(there)


def test_the_own_role_is_not_blamed_on_the_request(there: Account) -> None:
    there.sts.refuses[JOB_ROLE] = "AccessDenied"
    there.clock.now = NOW + PATIENCE_S
    with pytest.raises(RoleRefused) as problem:
        start(WITH_ROLE)
    assert "job_role" not in str(problem.value)
    assert "service control policies" in str(problem.value)


@pytest.mark.parametrize("role", [JOB_ROLE, CORPUS])
def test_a_denial_that_may_pass_has_the_admission_tried_again(there: Account, role: str) -> None:
    there.sts.refuses[role] = "AccessDenied"
    there.clock.now = NOW + PATIENCE_S - 60
    with pytest.raises(SessionPending) as problem:
        start(WITH_ROLE)
    assert not isinstance(problem.value, JobError)
    del there.sts.refuses[role]
    start(WITH_ROLE)
    assert is_written(there)


def test_a_dry_run_says_at_once_what_sts_denies(there: Account) -> None:
    there.sts.refuses[CORPUS] = "AccessDenied"
    with pytest.raises(RoleRefused, match="a new role takes up to 300 s"):
        start({**WITH_ROLE, "dry_run": True})


@pytest.mark.parametrize("code", ["PackedPolicyTooLarge", "MalformedPolicyDocument", "ValidationError"])
def test_more_than_a_session_can_have_is_refused_at_once(there: Account, code: str) -> None:
    there.sts.refuses[JOB_ROLE] = code
    with pytest.raises(InvalidRequest, match="allowed: fewer secrets"):
        start(LEAST)
    assert not is_written(there)


def test_what_sts_says_has_one_line(there: Account) -> None:
    there.sts.refuses[JOB_ROLE] = "PackedPolicyTooLarge"
    there.sts.words = "Packed size\n\nAction required: " + "x" * 5000
    with pytest.raises(InvalidRequest) as problem:
        start(LEAST)
    assert len(str(problem.value).splitlines()) == 2
    assert len(str(problem.value)) < 1000


@pytest.mark.parametrize("code", ["Throttling", "ServiceUnavailable", "ExpiredToken", "InvalidClientTokenId"])
def test_an_answer_that_says_nothing_about_the_session_is_no_verdict(there: Account, code: str) -> None:
    there.sts.refuses[JOB_ROLE] = code
    there.clock.now = NOW + 2 * PATIENCE_S
    with pytest.raises(FunctionFailed):
        start(LEAST)
    assert not is_written(there)


def test_an_attendant_that_cannot_be_asked_is_no_verdict(there: Account) -> None:
    there.faults.add(Kind.THROTTLED, "lambda:Invoke", times=1000)
    with pytest.raises(Exception, match="Invoke") as problem:
        start(LEAST)
    assert not isinstance(problem.value, JobError)
    assert not is_written(there)


def test_a_request_that_is_refused_begins_no_session(there: Account) -> None:
    with pytest.raises(InvalidRequest):
        start({**LEAST, "nodes": 0})
    assert there.sts.sessions == []


def test_the_sessions_that_are_tried_are_those_of_the_first_attempt(there: Account) -> None:
    start(WITH_ROLE)
    own, training = there.sts.sessions
    assert (own["RoleArn"], training["RoleArn"]) == (JOB_ROLE, CORPUS)
    assert own["RoleSessionName"] == training["RoleSessionName"] == "job-1.1"
    assert "Policy" in own
