"""Which ends of a command the attendant tells the machine as ones that the request retries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from attendant.facts import AttemptFacts
from attendant.policy import judge
from aws.facts import Heard
from contract.jobs import RetryPlan
from contract.reports import Exit, Phase
from tests.builders import JOB, NOW
from tests.functions.attendant.attempts import GIVEN, LATER, TRAINING, ended, heard, instance

SOME = RetryPlan(times=2, exit_codes=(75, 137))


def attempt(*nodes: Heard, retries: RetryPlan = SOME, **fields: Any) -> AttemptFacts:
    job = replace(JOB, retries=retries)
    return replace(TRAINING, job=job, nodes={one.report.rank: one for one in nodes}, **fields)


def said(facts: AttemptFacts) -> str:
    return judge(facts, now=LATER).error


@pytest.mark.parametrize("code", [75, 137])
def test_an_exit_code_that_the_request_names_is_one_to_retry(code: int) -> None:
    assert said(attempt(heard(0), ended(1, code, ago_s=20))) == "RetriedExit"


@pytest.mark.parametrize("code", [1, 74, 76, 139, 255, -9])
def test_any_other_exit_code_ends_the_job(code: int) -> None:
    assert said(attempt(heard(0), ended(1, code, ago_s=20))) == "TrainingFailed"


@pytest.mark.parametrize("code", [1, 75, 255])
def test_a_request_without_exit_codes_means_all_and_one_without_retries_none(code: int) -> None:
    failed = (heard(0), ended(1, code, ago_s=20))
    assert said(attempt(*failed, retries=RetryPlan(times=1))) == "RetriedExit"
    assert said(attempt(*failed, retries=RetryPlan())) == "TrainingFailed"


def test_the_first_error_decides_and_not_those_that_follow_it() -> None:
    assert said(attempt(ended(0, 1, ago_s=10), ended(1, 75, ago_s=20))) == "RetriedExit"
    assert said(attempt(ended(0, 75, ago_s=10), ended(1, 1, ago_s=20))) == "TrainingFailed"


def test_a_lost_node_explains_an_exit_code_and_takes_no_retry() -> None:
    instances = {"i-0": instance(0), "i-1": replace(instance(1), state="terminated")}
    facts = attempt(ended(0, 75, ago_s=20), heard(1, age_s=60), instances=instances)
    assert said(facts) == "NodeLost"


def test_an_order_explains_an_exit_code_and_takes_no_retry() -> None:
    left = [ended(rank, 75, ago_s=10, error="Interrupted", ordered=True) for rank in (0, 1)]
    assert said(attempt(*left, order=GIVEN)) == "Interrupted"


def test_a_command_that_never_began_has_no_exit_code_to_retry() -> None:
    failed = ended(1, 75, ago_s=20, started=False, error="TrainingFailed", reason="requirements")
    assert said(attempt(heard(0), failed, retries=RetryPlan(times=5))) == "TrainingFailed"


@pytest.mark.parametrize("error", ["RoleRefused", "DeadlineReached", "Stalled", "nonsense", "InvalidRequest"])
def test_another_error_that_a_node_names_is_no_exit_to_retry(error: str) -> None:
    assert said(attempt(heard(0), ended(1, 75, ago_s=20, error=error))) != "RetriedExit"


def test_a_success_is_never_retried() -> None:
    assert said(attempt(ended(0), ended(1), retries=RetryPlan(times=5))) == ""


def test_an_exit_that_is_told_before_the_last_commits_is_retried_as_well() -> None:
    saving = heard(1, age_s=20, phase=Phase.SAVING, outcome=Exit(code=75), timeline={"started": NOW})
    assert said(attempt(heard(0), saving)) == "RetriedExit"
