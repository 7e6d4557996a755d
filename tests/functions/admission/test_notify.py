"""Admit notes whose end has to be told before the job can begin, and notes it of no other."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from contract import items
from contract.errors import InvalidRequest
from contract.events import Event
from tests.fakes.faults import Kind
from tests.functions.admission.account import Account, start
from tools.refusals.jobs import LEAST


def owed(there: Account) -> list[str]:
    found = [one for one in there.table.items("yard-state") if one[items.PARTITION]["S"] == items.UNTOLD]
    return [one[items.SORT]["S"] for one in found]


@pytest.mark.parametrize("notify", [["done"], ["failed"], ["stalled", "failed", "recovered", "done"]])
def test_an_end_that_people_want_to_hear_of_is_noted(there: Account, notify: list[str]) -> None:
    start({**LEAST, "notify": notify})
    assert owed(there) == ["job-1"]
    job = there.job("job-1")
    assert job is not None
    assert job.notify == tuple(map(Event, notify))


@pytest.mark.parametrize(
    "fields", [{}, {"notify": []}, {"notify": ["recovered", "stalled"]}, {"notify": ["done"], "dry_run": True}]
)
def test_no_other_end_is_noted(there: Account, fields: dict[str, object]) -> None:
    start({**LEAST, **fields})
    assert owed(there) == []


def test_of_a_request_that_is_refused_nobody_is_told(there: Account) -> None:
    with pytest.raises(InvalidRequest):
        start({**LEAST, "notify": ["done"], "nodes": 0})
    assert owed(there) == []


def test_it_is_noted_before_the_job_is_known(there: Account) -> None:
    """Whoever dies between the two leaves a job that is told, and not one that nobody hears of."""
    start({**LEAST, "notify": ["done"]})
    written = [call.params["Item"][items.PARTITION]["S"] for call in there.calls if call.operation == "PutItem"]
    assert written == [items.UNTOLD, items.job("job-1").partition]


def test_of_a_job_whose_code_cannot_be_copied_people_are_told(there: Account) -> None:
    """It has its name by then, and Admit is tried again for minutes: a person may stop it meanwhile."""
    there.faults.add(Kind.THROTTLED, "s3:CopyObject", times=1000)
    with pytest.raises(ClientError):
        start({**LEAST, "notify": ["failed"]})
    assert owed(there) == ["job-1"]


def test_an_admission_that_runs_twice_notes_it_once(there: Account) -> None:
    for _ in range(2):
        start({**LEAST, "notify": ["done"]})
    assert owed(there) == ["job-1"]
