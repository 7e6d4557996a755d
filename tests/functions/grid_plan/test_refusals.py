"""Every row of the tables of refused grids, through the function and real boto3 clients: what it says, and that it changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from aws import prices
from contract.errors import InvalidRequest
from grid_plan import columns, request
from grid_plan.cells import READERS
from grid_plan.job_columns import JOB_ONLY
from tests.functions.grid_plan.account import Account, judging, plan
from tests.functions.grid_plan.troubles import THERE
from tools.refusals.grids.page import ROWS
from tools.refusals.grids.row import ALLOWED, GOOD, Row
from tools.refusals.grids.yard import DEFAULTS, MANIFEST

LONG = 100_000
"""A manifest of more bytes takes seconds."""


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    prices.forget()
    with judging(monkeypatch) as made:
        yield made


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=pytest.mark.at_length if len(row.manifest) > LONG else (), id=row.what) for row in ROWS],
)
def test_a_wrong_grid_is_told_what_is_wrong_and_starts_nothing(there: Account, row: Row) -> None:
    there.upload(row.manifest)
    THERE.get(row.what, lambda _: None)(there)
    with pytest.raises(InvalidRequest) as problem:
        plan(row.input, row.run)
    head, *reasons = str(problem.value).split("\n")
    assert [reason.removeprefix("- ") for reason in reasons] == row.reasons()
    assert head.startswith("The grid was refused")
    assert there.changes == []


def test_the_least_manifest_is_planned(there: Account) -> None:
    there.upload(GOOD)
    assert plan({"manifest": MANIFEST, "defaults": DEFAULTS})["lines"] == 1


def test_every_reason_says_where_it_is_and_what_is_allowed() -> None:
    reasons = [reason for row in ROWS for reason in row.reasons()]
    assert [one for one in reasons if ": " not in one or "; allowed: " not in one or "\n" in one] == []


def test_no_two_rows_have_the_same_name() -> None:
    assert len({row.what for row in ROWS}) == len(ROWS)


def test_nobody_learns_by_a_grid_what_lies_in_buckets_of_others(there: Account) -> None:
    there.upload(GOOD.replace("data-eu", "elsewhere"))
    with pytest.raises(InvalidRequest):
        plan({"manifest": MANIFEST, "defaults": DEFAULTS})
    with pytest.raises(InvalidRequest):
        plan({"manifest": "s3://elsewhere/manifest.csv", "defaults": DEFAULTS})
    assert [call for call in there.calls if call.params.get("Bucket") == "elsewhere"] == []


def test_every_field_says_what_it_may_be() -> None:
    assert set(columns.TrainingSpec.model_fields) | set(request.GridRequest.model_fields) == set(ALLOWED)


def test_a_manifest_of_very_many_different_mistakes_is_told_in_what_a_cause_holds(there: Account) -> None:
    there.upload("".join(f"mars-{number},s3://data-eu/train/\n" for number in range(5000)))
    with pytest.raises(InvalidRequest) as problem:
        plan({"manifest": MANIFEST, "defaults": DEFAULTS})
    head, *_, last = str(problem.value).split("\n")
    assert head == "The grid was refused for 5,000 reasons; nothing was started."
    assert last.startswith("- and 4,")
    assert len(json.dumps(str(problem.value))) < 32_768


def test_the_page_of_columns_has_those_of_the_fields() -> None:
    assert set(READERS) == {*columns.TrainingSpec.model_fields, *JOB_ONLY}


def test_what_the_account_has_belongs_to_a_refusal() -> None:
    assert set(THERE) <= {row.what for row in ROWS}
