"""The drain and searches: they are stopped before the grids, so that none starts another one."""

from __future__ import annotations

import json

import pytest

from contract.search import STARTED_BY
from tests.fakes.executions import GRID_MACHINE, SEARCH_MACHINE, Execution
from tests.fakes.faults import Kind, Mishap
from tests.functions.drain.draining import Yard


def search(yard: Yard, name: str = "foo") -> Execution:
    execution = yard.aws.states.executions.begin(name, SEARCH_MACHINE)
    yard.aws.clock.run(60)
    return execution


def round_of(yard: Yard, execution: Execution, number: int = 1) -> Execution:
    made = yard.aws.states.executions.begin(f"{execution.name}-r{number}", GRID_MACHINE)
    made.input = json.dumps({STARTED_BY: execution.arn, "manifest": "s3://any/any"})
    return made


def test_a_destroy_stops_searches_and_the_grids_of_their_rounds(yard: Yard) -> None:
    execution = search(yard)
    round_ = round_of(yard, execution)
    yard.aws.clock.run(60)
    assert yard.destroy()["Status"] == "SUCCESS"
    assert (execution.status, round_.status) == ("ABORTED", "ABORTED")


def test_searches_are_stopped_before_the_grids_of_their_rounds(yard: Yard) -> None:
    execution = search(yard)
    round_ = round_of(yard, execution)
    yard.aws.clock.run(60)
    yard.run_drain()
    stopped = [one.params["executionArn"] for one in yard.aws.calls if one.operation == "StopExecution"]
    assert stopped.index(execution.arn) < stopped.index(round_.arn)


def test_a_round_that_a_search_started_at_the_last_moment_is_stopped_by_the_next_look(yard: Yard) -> None:
    """Its StartExecution was under way while the search was stopped."""
    execution = search(yard)
    late: list[Execution] = []

    def start() -> None:
        late[:] = late or [round_of(yard, execution)]

    outcome = yard.run_drain(None, Mishap("stepfunctions:StopExecution", meanwhile=start))
    assert outcome.error == "StillRunning"
    assert yard.destroy()["Status"] == "SUCCESS"
    assert [one.status for one in late] == ["ABORTED"]


def test_a_destroy_is_not_done_at_the_look_that_stops_a_search(yard: Yard) -> None:
    execution = search(yard)
    outcome = yard.run_drain()
    assert outcome.error == "StillRunning"
    assert f"{execution.arn} was running a moment ago" in outcome.cause


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED", "ABORTED", "TIMED_OUT"])
def test_a_search_that_is_over_is_not_stopped_and_not_waited_for(yard: Yard, status: str) -> None:
    execution = search(yard)
    yard.aws.states.executions.end(execution, status)
    assert yard.destroy()["Status"] == "SUCCESS"
    assert execution.status == status
    assert [one for one in yard.aws.calls if one.operation == "StopExecution"] == []


def test_a_search_of_another_deployment_runs_on(yard: Yard) -> None:
    machine = SEARCH_MACHINE.replace("yard-", "yard-two-")
    yard.aws.states.executions.machines.add(machine)
    theirs = yard.aws.states.executions.begin("foo", machine)
    yard.aws.clock.run(60)
    assert yard.destroy()["Status"] == "SUCCESS"
    assert theirs.status == "RUNNING"


def test_a_deployment_without_searches_drains_as_ever(yard: Yard) -> None:
    yard.aws.states.executions.machines.discard(SEARCH_MACHINE)
    assert yard.destroy()["Status"] == "SUCCESS"


@pytest.mark.parametrize("operation", ["stepfunctions:ListExecutions", "stepfunctions:StopExecution"])
def test_searches_that_cannot_be_listed_or_stopped_are_not_taken_to_be_over(yard: Yard, operation: str) -> None:
    execution = search(yard)
    yard.aws.faults.add(Kind.DENIED, operation, times=1)
    assert yard.run_drain().error != ""
    assert yard.destroy()["Status"] == "SUCCESS"
    assert execution.status == "ABORTED"


def test_a_look_that_comes_twice_does_no_harm(yard: Yard) -> None:
    execution = search(yard)
    round_of(yard, execution)
    yard.run_drain(None, Mishap("stepfunctions:StopExecution", meanwhile=lambda: beside(yard)))
    assert yard.destroy()["Status"] == "SUCCESS"
    assert execution.status == "ABORTED"


def beside(yard: Yard) -> None:
    """A whole look, in the middle of another one."""
    yard.run_drain()
