"""Every row of the table of refusals, through what refuses it: the reader of requests, or Admit's function on real boto3 clients,
which changes nothing then."""

from __future__ import annotations

import dataclasses
import json

import pytest

import admission.handler
from aws.s3 import as_json
from contract import items
from contract.codec import encode
from contract.errors import InvalidRequest
from contract.jobs import Job
from job_requests.reading import read
from job_requests.request import JobRequest
from refusals.wording import refusal
from tests.fakes.state import remove, store
from tests.functions.admission.account import ADMITTING, ARN, FORGOTTEN, TAKEN, Account, start
from tools.refusals.jobs import LEAST, SECTIONS, Row, Section
from tools.refusals.jobs.preset import RULES

ROWS = [(section, row) for section in SECTIONS for row in section.rows]


def is_refused_by_the_reader(section: Section, row: Row) -> bool:
    """Whether the reader says every line of the row's answer, in its order."""
    _, problems = read(json.loads(json.dumps(row.input)), ADMITTING.limits, RULES)
    return problems == section.lines(row)


JUDGED = [(section, row) for section, row in ROWS if not is_refused_by_the_reader(section, row)]
"""Rows of which the reader does not say all: Admit must."""
FIELDS = dict.fromkeys(section.field for section, _ in JUDGED)


def test_what_a_request_alone_shows_to_be_wrong_is_said_by_the_reader() -> None:
    assert len(ROWS) - len(JUDGED) >= 350


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.usefixtures("git_hosts_here")
def test_a_wrong_request_is_told_what_is_wrong_and_changes_nothing(there: Account, field: str) -> None:
    rows = [(section, row) for section, row in JUDGED if section.field == field]
    said = [(row.what, answer(row, there)) for _, row in rows]
    assert said == [(row.what, word(section.lines(row))) for section, row in rows]
    assert there.changes == []


def word(lines: list[str]) -> list[str]:
    reasons = "" if len(lines) == 1 else f" for {len(lines)} reasons"
    return [f"The request was refused{reasons}; nothing was started.", *(f"- {line}" for line in lines)]


def answer(row: Row, there: Account) -> list[str]:
    """The lines with which Admit refuses a row; admission is closed meanwhile where the row says so."""
    if row.closed:
        store(there, items.ADMISSION_CLOSED, as_json({"reason": row.closed}))
    try:
        with pytest.raises(InvalidRequest) as problem:
            start(row.input, row.name)
    finally:
        if row.closed:
            remove(there, items.ADMISSION_CLOSED)
    return str(problem.value).split("\n")


@pytest.mark.parametrize("section", [one for one in SECTIONS if one.taken is not None], ids=lambda one: one.field)
def test_what_the_table_says_is_taken_or_left_out_stands_in_the_job(there: Account, section: Section) -> None:
    wanted = {section.name: section.taken} | ({} if section.left_out is None else {"left-out": section.left_out})
    for name, value in wanted.items():
        least = {key: one for key, one in LEAST.items() if key not in section.without}
        start({**least, **({**section.beside, section.field: value} if name == section.name else {})}, name)
        job = there.job(name)
        assert job is not None
        assert json.loads(encode(job))[section.field] == value


def test_the_table_has_a_value_that_is_taken_for_every_field_that_the_job_has_too() -> None:
    both = JobRequest.model_fields.keys() & {field.name for field in dataclasses.fields(Job)} - {"code", "roles"}
    assert {section.field for section in SECTIONS if section.taken is not None} == both


def test_the_table_has_every_field_and_at_least_forty_rows() -> None:
    assert len(ROWS) >= 40
    assert {section.field for section in SECTIONS} == {*JobRequest.model_fields, "request", "name", "several"}


def test_every_line_names_its_field_and_what_is_allowed() -> None:
    lines = [line for section, row in ROWS for line in section.lines(row)]
    assert [line for line in lines if ": " not in line or "; allowed: " not in line or "\n" in line] == []


def test_every_reason_of_a_refusal_is_a_line_of_the_log_without_a_traceback(
    there: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = list[dict[str, str]]()
    monkeypatch.setattr(
        admission.handler.logger, "warning", lambda message, **told: lines.append({"message": message, **told})
    )
    with pytest.raises(InvalidRequest) as problem:
        start({**LEAST, "nodes": 0, "market": "cheap"})
    assert [line["reason"] for line in lines] == [one.removeprefix("- ") for one in str(problem.value).split("\n")[1:]]
    assert {(line["message"], line["execution"]) for line in lines} == {("refused", f"{ARN}job-1")}
    assert there.changes == []


def test_a_request_that_is_admitted_leaves_no_line_of_a_refusal(
    there: Account,  # noqa: ARG001  (the account behind Admit)
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = list[str]()
    monkeypatch.setattr(admission.handler.logger, "warning", lambda message, **_: lines.append(message))
    start(LEAST)
    assert lines == []


def test_a_request_with_nothing_wrong_is_admitted_and_only_then_anything_changes(there: Account) -> None:
    start(LEAST)
    assert there.changes == ["s3:PutObject", "s3:CopyObject", "dynamodb:PutItem"]


def test_a_name_of_eighty_characters_is_a_job(there: Account) -> None:
    assert start(LEAST, "a" * 80)["job"] == "a" * 80
    assert there.job("a" * 80) is not None


@pytest.mark.parametrize("name", ["tmp.7n0", "v1.2.3", "a..b", "a.", "-rf", "_", "0"])
def test_a_name_with_dots_is_a_job(there: Account, name: str) -> None:
    assert start(LEAST, name)["job"] == name
    job = there.job(name)
    assert job is not None
    assert job.code is not None
    assert job.code.key == f"jobs/{name}/code/code.tar.gz"


@pytest.mark.parametrize("name", [".", "..", ".job", "../job", "a/b", "", "jöb", "a b", "a:b", "a*", "job\n", "a" * 81])
def test_a_name_that_could_lead_elsewhere_is_no_job(there: Account, name: str) -> None:
    with pytest.raises(InvalidRequest, match="name: the execution is called"):
        start(LEAST, name)
    assert there.changes == []
    assert there.find_params("s3:CopyObject") == []


def test_a_redriven_execution_is_taken_because_it_keeps_its_start(there: Account) -> None:
    first = start(LEAST)
    assert start({**LEAST, "nodes": 2}) == first  # the job stands as it was admitted
    assert there.changes == ["s3:PutObject", "s3:CopyObject", "dynamodb:PutItem", "dynamodb:PutItem"]


def test_a_name_whose_execution_was_forgotten_is_refused_and_its_job_stays_as_it_was(there: Account) -> None:
    before = there.job(FORGOTTEN)
    with pytest.raises(InvalidRequest, match="of 2026-09-01 08:00 UTC, whose files are kept"):
        start(LEAST, FORGOTTEN)
    assert there.job(FORGOTTEN) == before
    assert there.changes == []


def test_the_same_execution_asked_twice_changes_nothing_more(there: Account) -> None:
    assert start(LEAST) == start(LEAST)
    assert there.changes == ["s3:PutObject", "s3:CopyObject", "dynamodb:PutItem", "dynamodb:PutItem"]


@pytest.mark.parametrize("note", [b"", b"not JSON", b"[]", b"{}", b"null"])
def test_a_note_that_nobody_can_read_closes_admission_all_the_same(there: Account, note: bytes) -> None:
    store(there, items.ADMISSION_CLOSED, note)
    with pytest.raises(InvalidRequest, match="admission is closed"):
        start(LEAST)
    assert there.changes == []


def test_a_closed_door_is_closed_for_what_was_admitted_before_too(there: Account) -> None:
    start(LEAST)
    store(there, items.ADMISSION_CLOSED, as_json({"reason": "it is late"}))
    with pytest.raises(InvalidRequest, match="it is late"):
        start(LEAST)


def test_a_refusal_leaves_the_job_that_has_the_name_as_it_was(there: Account) -> None:
    before = there.job(TAKEN)
    with pytest.raises(InvalidRequest, match="another execution"):
        start(LEAST, TAKEN)
    assert there.job(TAKEN) == before


def test_a_region_without_its_stack_is_told_beside_all_else(there: Account) -> None:
    there.directory.parameters.clear()
    with pytest.raises(InvalidRequest) as problem:
        start({**LEAST, "instance_types": ["g9.huge"], "nodes": 0})
    assert [line.split(":")[0] for line in str(problem.value).split("\n")[1:]] == [
        "- nodes",
        "- region",
        "- instance_types",
    ]
    assert "/trainyard/yard/regions/eu-central-1 is missing" in str(problem.value)
    assert there.changes == []


def test_ten_thousand_problems_are_a_message_that_step_functions_keeps() -> None:
    text = str(refusal(f"environment.{n}-{'long' * 20}: is wrong" for n in range(10_000)))
    assert len(text) < 20_000
    assert "refused for 10000 reasons" in text
    assert text.endswith(" more")


def test_ten_thousand_unknown_fields_are_one_line_with_the_known_ones_once(there: Account) -> None:
    with pytest.raises(InvalidRequest) as problem:
        start({**LEAST, **{f"{n}-{'long' * 30}": n for n in range(10_000)}})
    text = str(problem.value)
    assert len(text) < 4_000
    assert " and 9,980 more: there are no such fields; allowed: code, command, " in text
    assert text.count("; allowed: ") == 1
    assert there.changes == []


@pytest.mark.parametrize(
    "place", ["s3://elsewhere/a.zip", "s3://yard-home/jobs/x/code.zip", "s3://yard-home/control/a.zip"]
)
def test_nobody_learns_by_a_request_what_lies_where_jobs_may_not_read(there: Account, place: str) -> None:
    for fields in ({"code": place}, {"data": [place]}):
        with pytest.raises(InvalidRequest):
            start({**LEAST, "code": LEAST["code"], **fields})
    assert len(there.find_params("s3:HeadObject")) == 1  # the good address beside the foreign one
    assert there.find_params("s3:ListObjectsV2") == []
