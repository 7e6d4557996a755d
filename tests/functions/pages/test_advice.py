"""Every error has a next step, which a person can take."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest

from aws.facts import GONE, Status
from contract import errors
from pages.advice import NEXT, OTHER, choose_next
from pages.outcomes import judge_job
from tests.fakes.pages import jobs

BASES = {errors.JobError}
ERRORS = {
    name: error
    for name, error in inspect.getmembers(errors, inspect.isclass)
    if issubclass(error, Exception) and error not in BASES
}


def test_every_error_of_the_contract_has_a_next_step() -> None:
    assert sorted(NEXT) == sorted(ERRORS)


@pytest.mark.parametrize("error", sorted(NEXT))
def test_a_next_step_is_short_and_says_something(error: str) -> None:
    assert 20 < len(NEXT[error]) < 340
    assert NEXT[error].endswith((".", ".)"))


@pytest.mark.parametrize("error", sorted(errors.BY_NAME))
def test_a_job_that_ended_with_an_error_shows_its_next_step(error: str) -> None:
    facts = replace(jobs.failure(), status=Status(name="FAILED", error=error, cause="why"))
    assert judge_job(facts, []).following == NEXT[error]


def test_an_error_of_the_machine_itself_leads_to_the_execution() -> None:
    assert choose_next("States.Runtime", "FAILED") == OTHER
    assert "execution" in OTHER


@pytest.mark.parametrize("status", ["ABORTED", "TIMED_OUT", GONE])
def test_an_end_without_an_error_has_a_next_step_of_its_own(status: str) -> None:
    assert choose_next("", status) != OTHER


def test_an_error_is_stronger_than_the_way_in_which_an_execution_ended() -> None:
    name = errors.BudgetExceeded.__name__
    assert choose_next(name, "ABORTED") == NEXT[name]
