"""Every row of the table of refused images, through the function and real boto3 clients: what it says, and that it changes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contract.errors import InvalidRequest
from image_build.request import ALLOWED, ImageRequest
from tests.functions.image_build.account import ENVIRONMENT, Account, check
from tests.functions.image_build.troubles import THERE
from tools.refusals.images import LEAST, ROWS, Row


@pytest.mark.parametrize("row", ROWS, ids=[row.what for row in ROWS])
@pytest.mark.usefixtures("git_hosts")
def test_a_wrong_request_is_told_what_is_wrong_and_starts_nothing(there: Account, row: Row) -> None:
    THERE.get(row.what, lambda _: None)(there)
    with pytest.raises(InvalidRequest) as problem:
        check(row.input)
    head, *lines = str(problem.value).split("\n")
    assert [line.removeprefix("- ") for line in lines] == row.lines()
    assert head.startswith("The request was refused")
    assert there.changes == []


def test_the_least_request_is_fine(there: Account) -> None:
    assert check(LEAST)["how"] == "built"
    assert there.changes == []


def test_every_line_names_its_field_and_what_is_allowed() -> None:
    lines = [line for row in ROWS for line in row.lines()]
    assert [line for line in lines if ": " not in line or "; allowed: " not in line or "\n" in line] == []


def test_nobody_learns_by_a_request_what_lies_where_contexts_may_not(there: Account) -> None:
    for place in ("s3://elsewhere/a.zip", "s3://yard-home/jobs/x/code.zip", "s3://yard-home/control/a.zip"):
        with pytest.raises(InvalidRequest):
            check({**LEAST, "context": place})
    assert there.calls_of("s3") == []


def test_every_field_says_what_it_may_be() -> None:
    assert {field.alias or name for name, field in ImageRequest.model_fields.items()} == set(ALLOWED)


def test_what_the_account_has_belongs_to_a_refusal() -> None:
    assert set(THERE) <= {row.what for row in ROWS}


@pytest.mark.parametrize("name", ["platform", "platform-cache", "build-cache"])
def test_no_settings_open_the_platforms_repositories_to_requests(
    there: Account, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for variable, value in replace(ENVIRONMENT, repositories=("images", name)).write().items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(InvalidRequest, match=f"repository: {name} takes the images of deploys only"):
        check({**LEAST, "repository": name})
    assert there.calls_of("ecr") == []
