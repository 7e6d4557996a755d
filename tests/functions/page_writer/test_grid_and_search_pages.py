"""Pages of grids and searches: all that is known of their lines and trials, while they run and once they have ended."""

from __future__ import annotations

from typing import Any

import pytest

from contract.codec import encode
from contract.grid import GridPrefix, LineOutcome, Record
from contract.metric_values import write_expression
from contract.search import SearchPrefix, name_round
from page_writer.policy import PageKind
from searches.request import read, write_line
from tests.builders import JOB
from tests.fakes.executions import GRID_MACHINE, SEARCH_MACHINE
from tests.fakes.faults import Kind
from tests.fakes.grid_yard import line_of as plan_line
from tests.functions.page_writer.account import Pages

SWEEP, TUNE = GridPrefix("sweep"), SearchPrefix("tune")
GIVEN: dict[str, Any] = {
    "template": {
        "region": "eu-central-1",
        "image": "images:v1",
        "instance_type": "ml.g5.xlarge",
        "max_hours": 1,
        "metrics": {"accuracy": write_expression("accuracy")},
    },
    "search": {"lr": {"float": [0.001, 0.1]}},
    "objective": {"metric": "accuracy", "direction": "maximize"},
    "trials": 8,
}


def record_of(index: int, outcome: LineOutcome = LineOutcome.COMPLETED, reason: str = "", **changes: Any) -> Record:
    return Record(
        index=index,
        line=index + 1,
        region="eu-central-1",
        training=f"yard-sweep-{index}",
        outcome=outcome,
        reason=reason,
        **changes,
    )


def begin_round(pages: Pages, number: int, values: list[float], *, is_over: bool = True) -> None:
    """A round is asked; once it is over it has its results."""
    grid, wanted = name_round("tune", number), read(GIVEN)[0]
    lines = [write_line(wanted, place, {"lr": 0.01 * (place + 1)}) for place in range(len(values))]
    pages.write(TUNE.questions(number), b"".join(encode(line) + b"\n" for line in lines))
    if is_over:
        planned = [encode(plan_line(place, "eu-central-1")) for place in range(len(values))]
        pages.write(GridPrefix(grid).lines(0), b"\n".join(planned) + b"\n")
        records = [record_of(place, metrics={"accuracy": value}) for place, value in enumerate(values)]
        pages.write(GridPrefix(grid).results_jsonl, b"".join(encode(one) + b"\n" for one in records))


def test_a_grid_that_runs_has_the_records_that_there_are_and_their_hyperparameters(pages: Pages) -> None:
    pages.begin("sweep", GRID_MACHINE)
    pages.plan([record_of(2, LineOutcome.FAILED, "out of memory"), record_of(0)])
    pages.run()
    facts = pages.newest
    assert [(one.index, one.outcome.value) for one in facts.records] == [(0, "Completed"), (2, "Failed")]
    assert facts.parameters == {0: {"lr": 0}, 2: {"lr": 2}}
    assert (facts.grid.lines, facts.report, facts.unread) == (4, None, ())


def test_a_grid_that_has_ended_is_read_from_its_results_and_not_record_by_record(pages: Pages) -> None:
    execution = pages.begin("sweep", GRID_MACHINE)
    records = [record_of(index) for index in range(4)]
    pages.plan(records)
    pages.write(SWEEP.results_jsonl, b"".join(encode(one) + b"\n" for one in records))
    pages.run()
    pages.report(PageKind.GRID, "sweep", completed=4)
    pages.aws.calls.clear()
    pages.end(execution)
    pages.run()
    assert len(pages.newest.records) == 4
    assert pages.newest.report["completed"] == 4
    read_one_by_one = [call for call in pages.aws.calls if SWEEP.records in str(call.params.get("Key"))]
    assert read_one_by_one == []


def test_results_of_an_earlier_end_are_not_taken_for_those_of_this_one(pages: Pages) -> None:
    """Of a grid that was redriven."""
    execution = pages.begin("sweep", GRID_MACHINE)
    pages.plan([record_of(index) for index in range(4)])
    pages.write(SWEEP.results_jsonl, encode(record_of(0)) + b"\n")
    pages.end(execution, "ABORTED")
    pages.run()
    assert [one.index for one in pages.newest.records] == [0, 1, 2, 3]


def test_a_manifest_that_was_refused_has_a_page_with_the_cause(pages: Pages) -> None:
    execution = pages.begin("sweep", GRID_MACHINE)
    pages.run(2)
    pages.end(execution, "FAILED", "InvalidRequest", "line 3: no such region")
    pages.run()
    assert pages.newest.grid is None
    assert pages.newest.status.cause == "line 3: no such region"


def test_a_grid_whose_name_an_earlier_one_has_gets_no_page(pages: Pages) -> None:
    pages.plan()
    pages.run(90 * 86_400)
    execution = pages.begin("sweep", GRID_MACHINE)
    pages.end(execution, "FAILED", "InvalidRequest")
    pages.run()
    assert pages.count(PageKind.GRID, "sweep") == 0


def test_a_garbled_record_is_said_in_the_page(pages: Pages) -> None:
    pages.begin("sweep", GRID_MACHINE)
    pages.plan([record_of(0)])
    pages.write(SWEEP.record(1), b"{}")
    pages.run()
    assert [one.partition(":")[0] for one in pages.newest.unread] == ["records of lines"]


def test_long_reasons_of_many_lines_are_cut(pages: Pages) -> None:
    pages.begin("sweep", GRID_MACHINE)
    pages.plan([record_of(0, LineOutcome.FAILED, "x" * 30_000)])
    pages.run()
    assert len(pages.newest.records[0].reason) == 2000


def test_a_search_that_runs_has_the_trials_of_the_rounds_that_have_ended(pages: Pages) -> None:
    pages.begin("tune", SEARCH_MACHINE)
    pages.settle(GIVEN)
    begin_round(pages, 1, [0.5, 0.75])
    begin_round(pages, 2, [0.9], is_over=False)
    pages.run()
    facts = pages.newest
    assert [(row["trial"], row["value"], row["hp.lr"]) for row in facts.trials] == [
        ("0", "0.5", "0.01"),
        ("1", "0.75", "0.02"),
    ]
    assert facts.search["given"]["trials"] == 8
    assert (facts.report, facts.unread) == (None, ())


def test_a_search_that_has_ended_has_the_rows_of_its_table(pages: Pages) -> None:
    execution = pages.begin("tune", SEARCH_MACHINE)
    pages.settle(GIVEN)
    pages.run()
    pages.write(TUNE.trials, b'trial,value,reason\r\n0,0.5,\r\n1,,"two\nlines"\r\n')
    pages.report(PageKind.SEARCH, "tune", why="All 2 trials are told.")
    pages.end(execution)
    pages.run()
    assert [dict(row) for row in pages.newest.trials] == [
        {"trial": "0", "value": "0.5", "reason": ""},
        {"trial": "1", "value": "", "reason": "two\nlines"},
    ]
    assert pages.newest.report["why"] == "All 2 trials are told."


@pytest.mark.parametrize("body", [b"", b"\xff\xfe\x00", b'"' * 10, b"a,b\n1,2,3,4\n"])
def test_a_table_that_is_none_keeps_nothing_else_from_the_page(pages: Pages, body: bytes) -> None:
    execution = pages.begin("tune", SEARCH_MACHINE)
    pages.settle(GIVEN)
    pages.write(TUNE.trials, body)
    pages.report(PageKind.SEARCH, "tune", why="enough")
    pages.end(execution)
    pages.run()
    assert pages.newest.report["why"] == "enough"


def test_a_search_with_an_input_that_cannot_be_read_says_so(pages: Pages) -> None:
    pages.begin("tune", SEARCH_MACHINE)
    pages.settle({"trials": "many"})
    pages.run()
    assert pages.newest.search["given"] == {"trials": "many"}
    assert pages.count(PageKind.SEARCH, "tune") == 1


def test_a_search_that_was_refused_has_a_page_with_the_cause(pages: Pages) -> None:
    execution = pages.begin("tune", SEARCH_MACHINE)
    pages.run(2)
    pages.end(execution, "FAILED", "InvalidRequest", "trials: 0")
    pages.run()
    assert (pages.newest.search, pages.newest.status.cause) == (None, "trials: 0")


@pytest.mark.parametrize(("machine", "name"), [(GRID_MACHINE, "sweep"), (SEARCH_MACHINE, "tune")])
def test_what_of_a_grid_or_a_search_does_not_answer_is_read_later(pages: Pages, machine: str, name: str) -> None:
    kind = PageKind.GRID if machine == GRID_MACHINE else PageKind.SEARCH
    execution = pages.begin(name, machine)
    pages.plan() if kind is PageKind.GRID else pages.settle(GIVEN)
    pages.run(60)
    pages.report(kind, name, why="enough")
    pages.aws.faults.add(Kind.DENIED, "s3:ListObjectsV2", times=1000)
    pages.end(execution)
    pages.run()
    assert pages.newest.unread
    pages.aws.faults.waiting.clear()
    pages.run(120)
    assert pages.newest.unread == ()
    assert JOB.home_bucket == pages.newest.bucket
