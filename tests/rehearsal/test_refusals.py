"""Refusals through the deployed machine: each names its fields, takes two states, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import changes, failed, instances
from tools.refusals.jobs import SECTIONS

pytestmark = [pytest.mark.rehearsal]
CHOSEN = {
    "request": "an unknown field, close to a known one",
    "name": "a dot first",
    "code": "a part ..",
    "command": "a quote that is not closed",
    "instance_types": "a type named twice",
    "nodes": "a number as text",
    "market": "no market",
    "max_cost_usd": "zero",
    "environment": "invalid names",
    "data": "no bucket",
    "owner": "text turned from right to left",
}
"""Field to a row of the table whose answer does not depend on the settings of the deployment."""
FOUND = [(section, row) for section in SECTIONS for row in section.rows if CHOSEN.get(section.field) == row.what]
SEVERAL = "several"


@pytest.fixture(scope="module")
def refused(yard: Yard, trainer: str) -> Mapping[str, StartedJob]:
    """All started at once, by field."""
    jobs = {
        section.field: yard.start(
            {**row.input, "code": row.input["code"] if "code" in row.given else trainer},
            f"refused-{section.field}" if section.field != "name" else row.name,
        )
        for section, row in FOUND
    }
    wrong = {"code": f"s3://{yard.places.home}/uploads/none.zip", "nodes": "2", "instance_types": ["g9.huge"]}
    return {**jobs, SEVERAL: yard.start({"command": "python train.py", **wrong}, "refused-several")}


@pytest.mark.parametrize("field", [*CHOSEN, SEVERAL])
def test_a_refusal_takes_two_states_and_leaves_nothing(refused: Mapping[str, StartedJob], field: str) -> None:
    job = refused[field]
    failed(job, "InvalidRequest")
    assert job.states() == ["Admit", "Failed"]
    assert instances(job) == []
    assert changes(job) == []


@pytest.mark.parametrize("field", CHOSEN)
def test_the_cause_says_what_the_table_says(refused: Mapping[str, StartedJob], field: str) -> None:
    section, row = next(found for found in FOUND if found[0].field == field)
    cause = failed(refused[field], "InvalidRequest")
    assert cause.split("\n")[1:] == [f"- {line}" for line in section.lines(row)]


def test_what_is_wrong_as_it_stands_and_what_aws_does_not_have_are_told_together(
    refused: Mapping[str, StartedJob],
) -> None:
    cause = failed(refused[SEVERAL], "InvalidRequest")
    assert [line.split(":")[0] for line in cause.split("\n")[1:]] == ["- nodes", "- instance_types", "- code"]
    assert "g9.huge does not exist in" in cause
    assert "uploads/none.zip does not exist" in cause
