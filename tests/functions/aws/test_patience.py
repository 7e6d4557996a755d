"""The end of a step's patience: what a function raises afterwards is a verdict, and what it raises before is tried again."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from aws.patience import final
from contract import errors
from tests.builders import JOB
from tests.fakes.faults import Kind, Mishap
from tests.fakes.functions import Functions
from tests.fakes.yard import admitted, deployed

ENTERED = 1_800_000_000.0
EVENT = {"job": "a", "patience": {"entered_at": "2027-01-15T08:00:00.000Z", "seconds": 600}}
LAST, OVER = ENTERED + 599.9, ENTERED + 600.0


def test_an_error_before_the_patience_is_over_stays_what_it_is() -> None:
    assert final(RuntimeError("S3 does not answer"), EVENT, LAST) is None


def test_an_error_after_it_is_a_verdict_that_names_the_error_in_words() -> None:
    verdict = final(RuntimeError("S3 does not answer"), EVENT, OVER)
    assert type(verdict) is errors.PatienceOver
    assert "RuntimeError: S3 does not answer" in str(verdict)
    assert "600 s" in str(verdict)


@pytest.mark.parametrize("verdict", sorted(errors.BY_NAME.keys() - {one.__name__ for one in errors.ASKED_AGAIN}))
def test_a_verdict_stays_the_verdict_that_it_is(verdict: str) -> None:
    assert final(errors.BY_NAME[verdict]("why"), EVENT, OVER) is None


def test_what_asks_to_be_asked_again_is_asked_again_no_more() -> None:
    assert isinstance(final(errors.CapacityPending("no capacity yet"), EVENT, OVER), errors.PatienceOver)
    assert final(errors.CapacityPending("no capacity yet"), EVENT, LAST) is None


def test_patience_that_is_over_is_no_reason_for_a_new_attempt() -> None:
    assert errors.PatienceOver not in errors.NEW_ATTEMPT
    assert errors.PatienceOver.__name__ in errors.BY_NAME


@pytest.mark.parametrize(
    "patience",
    [
        None,
        7,
        "soon",
        [],
        {},
        {"seconds": 600},
        {"entered_at": "2027-01-15T08:00:00Z"},
        {"entered_at": 7, "seconds": 600},
        {"entered_at": "yesterday", "seconds": 600},
        {"entered_at": "2027-01-15T08:00:00Z", "seconds": "long"},
    ],
)
def test_an_event_that_tells_of_no_patience_leaves_the_end_to_the_machine(patience: object) -> None:
    assert final(RuntimeError(), {"patience": patience}, OVER) is None
    assert final(RuntimeError(), {}, OVER) is None


@pytest.mark.parametrize(
    "entered_at", ["2027-01-15T08:00:00Z", "2027-01-15T08:00:00.123Z", "2027-01-15T08:00:00.123456+00:00"]
)
def test_the_time_is_read_as_step_functions_and_the_rehearsal_write_it(entered_at: str) -> None:
    event = {"patience": {"entered_at": entered_at, "seconds": 600}}
    assert final(RuntimeError(), event, OVER - 1) is None
    assert final(RuntimeError(), event, OVER + 1) is not None


@pytest.mark.parametrize("function", ["launcher", "artifact_check"])
@pytest.mark.parametrize(("ago_s", "error"), [(500.0, "ClientError"), (601.0, "PatienceOver")])
def test_a_function_whose_store_does_not_answer_ends_its_step_when_its_patience_is_over(
    function: str, ago_s: float, error: str
) -> None:
    aws = deployed()
    admitted(aws)
    functions = Functions(aws)
    with functions.installed():
        entered = datetime.fromtimestamp(aws.clock.now - ago_s, timezone.utc)
        patience = {"entered_at": entered.isoformat(), "seconds": 600}
        event = {"job": JOB.id, "attempt": 1, "patience": patience}
        outcome = functions.invoke(function, event, [Mishap("dynamodb:*", times=99, fault=Kind.ERROR)])
    assert outcome.error == error
