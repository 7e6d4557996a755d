"""Messages that ask for a page: whatever is in them, only executions of the deployment's machines have pages."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from page_writer.policy import (
    CLOCK_S,
    MOST_TIMES,
    DuePage,
    PageKind,
    WrittenPage,
    is_missing,
    read_due,
    reports_end,
)

EXECUTIONS = "arn:aws:states:eu-central-1:123456789012:execution:"
BEGINS = {
    kind: f"{EXECUTIONS}yard-{machine}:" for kind, machine in zip(PageKind, ("train", "grid", "search"), strict=True)
}
DUE = DuePage(kind=PageKind.JOB, name="job-1", execution=f"{EXECUTIONS}yard-train:job-1")


def event(execution: str, machine: str = "") -> str:
    machine = machine or execution.rpartition(":")[0].replace(":execution:", ":stateMachine:")
    return json.dumps({"detail": {"executionArn": execution, "stateMachineArn": machine, "status": "FAILED"}})


@pytest.mark.parametrize("kind", PageKind)
def test_an_event_of_each_machine_asks_for_the_page_of_its_kind(kind: PageKind) -> None:
    due = read_due(event(f"{BEGINS[kind]}a"), BEGINS)
    assert due == DuePage(kind=kind, name="a", execution=f"{BEGINS[kind]}a")


def test_a_message_of_our_own_says_the_same_when_it_is_read() -> None:
    for due in (DUE, DUE.again(), replace(DUE, sent_at=12.5)):
        assert read_due(due.write(), BEGINS) == due


@pytest.mark.parametrize(
    "execution",
    [
        f"{EXECUTIONS}other-train:job-1",
        f"{EXECUTIONS}yard-build:job-1",
        f"{EXECUTIONS}yard-train:..",
        f"{EXECUTIONS}yard-train:a b",
        f"{EXECUTIONS}yard-train:a/b",
        f"{EXECUTIONS}yard-train:a:b",
        f"{EXECUTIONS}yard-train:",
        f"{EXECUTIONS}yard-grid:a.b",
        f"{EXECUTIONS}yard-search:{'x' * 80}",
        f"{EXECUTIONS.replace('123456789012', '999999999999')}yard-train:job-1",
        f"{EXECUTIONS.replace('eu-central-1', 'us-east-1')}yard-train:job-1",
    ],
)
def test_an_event_about_anything_else_asks_for_nothing(execution: str) -> None:
    assert read_due(event(execution), BEGINS) is None


def changed(**changes: Any) -> str:
    return json.dumps(json.loads(DUE.write()) | changes)


@pytest.mark.parametrize(
    "body",
    [
        *("", "{", "[]", "1", "null", "{}", '{"detail": 1}', "[" * 100_000),
        changed(kind="image"),
        changed(kind=None),
        changed(name="other"),
        changed(name=".."),
        changed(execution=f"{EXECUTIONS}other-train:job-1"),
        changed(execution=None),
        changed(times="often"),
        changed(times=None),
        changed(sent_at="yesterday"),
        changed(sent_at=[1]),
        '{"kind": "job"}',
    ],
)
def test_a_message_that_is_no_message_asks_for_nothing(body: str) -> None:
    assert read_due(body, BEGINS) is None


def test_a_message_that_a_person_writes_needs_kind_name_and_execution_alone() -> None:
    body = json.dumps({"kind": "job", "name": "job-1", "execution": DUE.execution})
    assert read_due(body, BEGINS) == DUE


def test_a_page_is_written_again_a_bounded_number_of_times() -> None:
    due, times = DUE, 0
    while due.comes_back:
        due, times = due.again(), times + 1
    assert times == MOST_TIMES


def test_what_the_clock_asks_for_does_not_come_back() -> None:
    assert not replace(DUE, sent_at=0.0).comes_back


def test_only_what_the_clock_asked_for_long_ago_is_overtaken() -> None:
    asked = replace(DUE, sent_at=1000.0)
    assert not asked.is_overtaken(1000 + 2 * CLOCK_S - 1)
    assert asked.is_overtaken(1000 + 2 * CLOCK_S)
    assert not DUE.is_overtaken(1e12)


@pytest.mark.parametrize(
    ("page", "missing"),
    [
        (None, True),
        (WrittenPage(read_at=99.0, is_whole=True), True),
        (WrittenPage(read_at=101.0, is_whole=False), True),
        (WrittenPage(read_at=101.0, is_whole=True), False),
    ],
)
def test_a_page_tells_of_an_end_if_it_was_read_after_it_and_is_whole(page: WrittenPage | None, missing: bool) -> None:
    assert is_missing(page, 100.0) is missing


@pytest.mark.parametrize(
    ("report", "is_of_it"),
    [
        (None, False),
        ({}, False),
        ({"ended_at": None}, False),
        ({"ended_at": "late"}, False),
        ({"ended_at": float("nan")}, False),
        ({"ended_at": 900.0}, False),
        ({"ended_at": 960.0}, True),
        ({"ended_at": 2000}, True),
    ],
)
def test_a_report_is_of_an_end_if_it_says_that_it_was_written_then(
    report: dict[str, Any] | None, is_of_it: bool
) -> None:
    assert reports_end(report, "ended_at", 1000.0) is is_of_it
