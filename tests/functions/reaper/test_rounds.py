"""The reaper and searches: a round whose search is over ends after two looks, and nothing else does."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from contract import metrics
from contract.search import STARTED_BY, SearchPrefix
from tests.fakes.executions import GRID_MACHINE, MACHINE, SEARCH_MACHINE, Execution
from tests.fakes.faults import Kind, Mishap
from tests.functions.reaper.reaped import Yard, reaped

HOUR = 3600.0
DESCRIBE = "stepfunctions:DescribeExecution"


@pytest.fixture
def yard() -> Iterator[Yard]:
    with reaped() as one:
        yield one


def search(yard: Yard, name: str = "foo") -> Execution:
    """A search runs since an hour."""
    execution = yard.fake.states.executions.begin(name, SEARCH_MACHINE)
    execution.started_at -= HOUR
    return execution


def start(yard: Yard, of: str, name: str = "foo-r1", given: str = "", machine: str = GRID_MACHINE) -> Execution:
    """A grid runs since an hour; `of` is the ARN of what started it, `given` another input."""
    made = yard.fake.states.executions.begin(name, machine)
    asked, _, number = name.rpartition("-r")
    lines = (
        f"s3://home/{SearchPrefix(asked).questions(int(number))}" if number.isdecimal() else "s3://home/uploads/m.csv"
    )
    made.input = given or json.dumps({STARTED_BY: of, "manifest": lines})
    made.started_at -= HOUR
    return made


def over(yard: Yard, execution: Execution, ago: float = HOUR, status: str = "ABORTED") -> None:
    yard.fake.states.executions.end(execution, status)
    execution.ended_at = yard.now - ago


def reads(yard: Yard, execution: Execution) -> int:
    return sum(one["executionArn"] == execution.arn for one in yard.calls(DESCRIBE))


def test_a_round_whose_search_is_over_is_stopped_at_the_second_look(yard: Yard) -> None:
    execution = search(yard)
    round_ = start(yard, execution.arn)
    over(yard, execution)
    yard.run()
    assert round_.status == "RUNNING"
    yard.reaping.later()
    assert (round_.status, round_.error, round_.cause) == (
        "ABORTED",
        "GridEnded",
        "The search of this round is over.",
    )
    ((subject, text),) = yard.fake.topics.messages
    assert "ended 1" in subject
    assert "foo" in text


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"])
def test_a_round_is_stopped_however_its_search_ended(yard: Yard, status: str) -> None:
    execution = search(yard)
    round_ = start(yard, execution.arn, "foo-r1000")
    over(yard, execution, status=status)
    yard.run(2)
    assert round_.status == "ABORTED"


def test_a_round_whose_search_runs_is_kept_and_nobody_is_called(yard: Yard) -> None:
    round_ = start(yard, search(yard).arn)
    assert yard.run(4).value[metrics.TOLD] == 0
    assert round_.status == "RUNNING"
    assert yard.fake.topics.messages == []


def test_a_round_whose_search_ended_a_moment_ago_is_its_own_cleanups(yard: Yard) -> None:
    execution = search(yard)
    round_ = start(yard, execution.arn)
    over(yard, execution, ago=0)
    yard.run(2)
    assert round_.status == "RUNNING"


def test_a_round_whose_search_was_redriven_between_two_looks_is_kept(yard: Yard) -> None:
    execution = search(yard)
    round_ = start(yard, execution.arn)
    over(yard, execution)
    yard.run()
    yard.fake.states.executions.redrive(execution)
    yard.reaping.later()
    yard.reaping.later()
    assert round_.status == "RUNNING"


LINES = f"s3://home/{SearchPrefix('foo').questions(1)}"
OTHER = "arn:aws:states:eu-central-1:123456789012:execution"


@pytest.mark.parametrize(
    "given",
    [
        '{"manifest": "s3://bucket/uploads/m.csv"}',
        "{}",
        "not json",
        "[]",
        json.dumps({STARTED_BY: 7, "manifest": LINES}),
        json.dumps({STARTED_BY: "", "manifest": LINES}),
        json.dumps({STARTED_BY: f"{OTHER}:lab-search:foo", "manifest": LINES}),
        json.dumps({STARTED_BY: f"{OTHER}:yard-grid:foo", "manifest": LINES}),
        json.dumps({STARTED_BY: f"{OTHER}:yard-search:bar", "manifest": LINES}),
        json.dumps({STARTED_BY: f"{OTHER}:yard-search:foo-r1", "manifest": LINES}),
        json.dumps({STARTED_BY: f"{OTHER}:yard-search:foo"}),
        json.dumps({STARTED_BY: f"{OTHER}:yard-search:foo", "manifest": LINES.replace("1.jsonl", "2.jsonl")}),
        json.dumps({STARTED_BY: f"{OTHER}:yard-search:foo", "manifest": "s3://home/uploads/1.jsonl"}),
        json.dumps({"input": {STARTED_BY: f"{OTHER}:yard-search:foo"}}),
    ],
)
def test_a_persons_own_grid_of_such_a_name_is_never_ended(yard: Yard, given: str) -> None:
    """Whatever ran under that name, and however long it is over."""
    for name in ("foo", "bar", "foo-r1"):
        over(yard, search(yard, name))
    mine = start(yard, "", given=given)
    yard.run(4)
    assert mine.status == "RUNNING"
    assert yard.fake.topics.messages == []


@pytest.mark.parametrize("name", ["foo", "foo-r", "foo-r0", "foo-r01", "foo-rx", "foo-r1-", "foo-r1b", "foo-R1"])
def test_a_grid_of_another_name_is_not_even_asked_for(yard: Yard, name: str) -> None:
    execution = search(yard)
    mine = start(yard, execution.arn, name)
    over(yard, execution)
    yard.run(4)
    assert mine.status == "RUNNING"
    assert reads(yard, mine) == 0


def test_a_round_of_a_search_with_a_name_like_a_rounds_is_known(yard: Yard) -> None:
    execution = search(yard, "foo-r2")
    round_ = start(yard, execution.arn, "foo-r2-r3")
    over(yard, execution)
    yard.run(2)
    assert round_.status == "ABORTED"


def test_an_execution_of_another_machine_with_a_rounds_name_and_input_is_kept(yard: Yard) -> None:
    execution = search(yard)
    job = start(yard, execution.arn, machine=MACHINE)
    over(yard, execution)
    yard.run(4)
    assert job.status == "RUNNING"


def test_a_round_that_ended_between_two_looks_is_ended_by_nobody(yard: Yard) -> None:
    execution = search(yard)
    round_ = start(yard, execution.arn)
    over(yard, execution)
    yard.run()
    over(yard, round_, status="SUCCEEDED")
    yard.reaping.later()
    assert round_.status == "SUCCEEDED"
    assert yard.fake.topics.messages == []


def test_a_round_that_ends_just_before_its_end_is_not_reported_as_ended(yard: Yard) -> None:
    """The last of a pass's questions is about the round itself."""
    execution = search(yard)
    round_ = start(yard, execution.arn)
    over(yard, execution)
    yard.run()
    yard.fake.clock.run(300)

    def end() -> None:
        over(yard, round_, status="SUCCEEDED")

    yard.reaping.run(mishaps=[Mishap(DESCRIBE, nth=3, meanwhile=end)])
    assert round_.status == "SUCCEEDED"
    assert yard.fake.topics.messages == []


def test_a_name_that_came_again_between_two_looks_is_read_again(yard: Yard) -> None:
    """What the first look saw as a round is a person's grid by the second."""
    execution = search(yard)
    round_ = start(yard, execution.arn)
    over(yard, execution)
    yard.run()
    round_.input = "{}"
    yard.reaping.later()
    yard.reaping.later()
    assert round_.status == "RUNNING"


def test_a_round_whose_search_step_functions_no_longer_has_is_ended(yard: Yard) -> None:
    round_ = start(yard, f"{OTHER}:yard-search:foo")
    yard.run(4)
    assert round_.status == "ABORTED"


@pytest.mark.parametrize("operation", ["stepfunctions:*", DESCRIBE, "stepfunctions:ListExecutions"])
def test_step_functions_that_does_not_answer_stops_no_round(yard: Yard, operation: str) -> None:
    execution = search(yard)
    round_ = start(yard, execution.arn)
    over(yard, execution)
    yard.fake.faults.add(Kind.THROTTLED, operation, times=10_000)
    yard.run(4)
    assert round_.status == "RUNNING"


def test_a_deployment_whose_grids_are_gone_is_looked_at_as_ever(yard: Yard) -> None:
    yard.fake.states.executions.machines -= {GRID_MACHINE, SEARCH_MACHINE}
    assert yard.run().value[metrics.PASSES] == 1


def test_report_only_stops_no_round() -> None:
    with reaped(report_only=True) as quiet:
        execution = search(quiet)
        round_ = start(quiet, execution.arn)
        over(quiet, execution)
        assert quiet.run(4).value[metrics.WOULD_END] >= 1
        assert round_.status == "RUNNING"
        assert quiet.written() == []
