"""Every row of the table of refused searches, through the function and real boto3 clients: what it says, and that it changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contract.errors import InvalidRequest
from search.handler import handler
from searches import request
from tests.functions.search.account import Searches
from tests.functions.search.troubles import THERE
from tools.refusals.searches.page import ROWS
from tools.refusals.searches.row import Row
from tools.refusals.searches.yard import LEAST, execution


def ask(given: object, run: Any) -> dict[str, Any]:
    """The first Ask, as the machine invokes it, the input having been JSON."""
    event = {"action": "ask", "request": json.loads(json.dumps(given)), "round": 1, "execution": dict(run)}
    return handler(event, None)


@pytest.mark.usefixtures("there")
def test_the_smallest_search_is_asked() -> None:
    answer = ask(LEAST, execution())
    assert (answer["next"], answer["grid"]) == ("train", "tune-7-r1")


@pytest.mark.parametrize("row", [pytest.param(row, id=row.what) for row in ROWS])
def test_a_wrong_search_is_answered_with_all_that_is_wrong_and_starts_nothing(there: Searches, row: Row) -> None:
    THERE.get(row.what, lambda _: None)(there)
    there.aws.calls.clear()
    with pytest.raises(InvalidRequest) as problem:
        ask(row.input, row.run)
    head, *reasons = str(problem.value).split("\n")
    assert [one.removeprefix("- ") for one in reasons] == row.reasons()
    assert head.startswith("The request was refused")
    assert there.aws.changes == []


def test_every_reason_says_where_it_is_and_what_is_allowed() -> None:
    reasons = [reason for row in ROWS for reason in row.reasons()]
    assert [one for one in reasons if ": " not in one or "; allowed: " not in one or "\n" in one] == []


def test_no_two_rows_have_the_same_name() -> None:
    assert len({row.what for row in ROWS}) == len(ROWS)


def test_what_the_account_has_belongs_to_a_refusal() -> None:
    assert set(THERE) <= {row.what for row in ROWS}


def test_every_field_says_what_it_may_be() -> None:
    assert list(request.ALLOWED) == list(request.SearchRequest.model_fields)


@pytest.mark.usefixtures("there")
def test_a_refusal_of_very_many_reasons_is_told_in_what_a_cause_holds() -> None:
    with pytest.raises(InvalidRequest) as problem:
        ask(
            {**LEAST, "trials": 5000, "parallel": 5, "begin_with": [{f"h{one}": 1} for one in range(5000)]}, execution()
        )
    assert str(problem.value).splitlines()[-1].startswith("- and 4")
    assert len(json.dumps(str(problem.value))) < 32_768
