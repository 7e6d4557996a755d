"""The cleanup of searches: an end that ran no step of the machine stops the round's grid, and only that execution's own."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from contract.codec import encode
from contract.search import STARTED_BY, Search, SearchPrefix
from search_cleanup.handler import handler
from tests.fakes.executions import Execution, Executions
from tests.fakes.faults import Kind
from tests.functions.search.account import ENVIRONMENT, SEARCH, Searches, record_of

PREFIX = SearchPrefix("tune-7")
STARTED_AT = "2027-01-15T08:00:00.000Z"
"""Of the account's clock when a test begins."""


@pytest.fixture
def search(there: Searches) -> Search:
    """A search whose execution runs, with a queue for its end."""
    there.aws.queue.feed(lambda event: handler(event, None))
    return settle(there)


def settle(there: Searches, **changes: Any) -> Search:
    """Its time of start is what Step Functions says of its execution."""
    begun = there.settle()
    found = replace(begun, started_at=STARTED_AT, **changes)
    there.aws.s3.write(there.store.name, PREFIX.description, encode(found))
    return found


def event_of(execution: Execution) -> str:
    return json.dumps({"source": "aws.states", "detail": Executions.detail(execution)})


def stop(there: Searches, status: str = "ABORTED", error: str | None = None, cause: str | None = None) -> Execution:
    """The search's execution ends badly, and a message says so."""
    execution = there.end("tune-7", status, SEARCH)
    execution.error, execution.cause = error, cause
    there.aws.queue.put(event_of(execution))
    return execution


def grid_of(there: Searches, name: str = "tune-7-r1") -> Execution:
    return there.aws.states.executions.known[f"{ENVIRONMENT.machine.replace(':stateMachine:', ':execution:')}:{name}"]


def run(there: Searches, seconds: float = 60.0) -> None:
    there.aws.clock.run(seconds)


def report(there: Searches) -> dict[str, Any] | None:
    body = there.aws.s3.read(there.store.name, PREFIX.report)
    return None if body is None else json.loads(body)


def test_a_running_grid_is_stopped_and_its_trials_are_reported_when_they_are_counted(
    there: Searches, search: Search
) -> None:
    there.train(search, [0.5, 0.6])
    grid = there.ask(search, [{"lr": 0.05}], 2, 2)
    there.plan(grid, 1)
    stop(there, cause="a person pressed Stop")
    run(there)
    found = grid_of(there, grid)
    assert (found.status, found.error, found.cause) == ("ABORTED", "GridEnded", "The search of this round is over.")
    assert report(there) is None
    run(there, 900)
    assert report(there) is None
    there.count(grid, [record_of(0, None, outcome="Stopped")])
    run(there, 900)
    whole = report(there)
    assert whole is not None
    assert (whole["trials"], whole["problem"]) == (3, {"error": "Aborted", "cause": "a person pressed Stop"})
    assert whole["why"] == "a person pressed Stop"
    assert len(there.aws.topics.messages) == 1
    assert (there.aws.queue.messages, there.aws.queue.dead) == ({}, [])


def test_only_the_last_rounds_grid_is_stopped(there: Searches, search: Search) -> None:
    there.ask(search, [{"lr": 0.01}])
    there.ask(search, [{"lr": 0.02}], 2, 1)
    stop(there)
    run(there)
    assert [grid_of(there, name).status for name in ("tune-7-r1", "tune-7-r2")] == ["RUNNING", "ABORTED"]


@pytest.mark.parametrize("status", ["FAILED", "TIMED_OUT", "ABORTED"])
def test_every_bad_end_is_reported_once(there: Searches, search: Search, status: str) -> None:
    there.train(search, [0.5])
    execution = stop(there, status)
    there.aws.queue.put(event_of(execution))
    run(there, 3600)
    assert len(there.aws.topics.messages) == 1
    assert there.aws.queue.messages == {}


def test_a_grid_that_succeeded_needs_no_report_of_its_own_to_be_over(there: Searches, search: Search) -> None:
    grid = there.ask(search, [{"lr": 0.01}])
    there.plan(grid, 1)
    there.end(grid, "SUCCEEDED", ENVIRONMENT.machine)
    stop(there)
    run(there)
    assert report(there) is not None


@pytest.mark.parametrize("status", ["FAILED", "TIMED_OUT", "ABORTED"])
def test_a_grid_that_ended_badly_is_waited_for_until_it_is_counted(
    there: Searches, search: Search, status: str
) -> None:
    grid = there.ask(search, [{"lr": 0.01}])
    there.plan(grid, 1)
    there.end(grid, status, ENVIRONMENT.machine)
    stop(there)
    run(there, 900)
    assert report(there) is None
    there.count(grid, [])
    run(there, 900)
    assert report(there) is not None


def test_a_grid_that_was_refused_ran_nothing_that_could_be_counted(there: Searches, search: Search) -> None:
    there.end(there.ask(search, [{"lr": 0.01}]), "FAILED", ENVIRONMENT.machine)
    stop(there)
    run(there)
    assert report(there) is not None


def test_a_round_whose_grid_was_never_started_is_no_reason_to_wait(there: Searches, search: Search) -> None:
    there.ask(search, [{"lr": 0.01}], starts=False)
    stop(there)
    run(there)
    assert report(there) is not None
    assert there.aws.queue.messages == {}


def test_a_search_that_settled_and_asked_nothing_is_reported(there: Searches, search: Search) -> None:
    assert search.id == "tune-7"
    stop(there)
    run(there)
    whole = report(there)
    assert whole is not None
    assert whole["trials"] == 0


# what is left alone


@pytest.mark.parametrize(
    "given",
    [
        "{}",
        "not json",
        '{"manifest": "s3://x/y"}',
        json.dumps({STARTED_BY: "arn:aws:states:eu-central-1:111122223333:execution:yard-search:tune"}),
        json.dumps({STARTED_BY: "arn:aws:states:eu-central-1:111122223333:execution:yard-search:tune-7"}),
        json.dumps({STARTED_BY: 7}),
    ],
)
def test_a_strangers_grid_of_that_name_runs_on(there: Searches, search: Search, given: str) -> None:
    grid = there.ask(search, [{"lr": 0.01}])
    grid_of(there, grid).input = given
    stop(there)
    run(there, 3600)
    assert grid_of(there, grid).status == "RUNNING"
    assert report(there) is not None


def test_a_search_that_was_redriven_is_left_alone(there: Searches, search: Search) -> None:
    grid = there.ask(search, [{"lr": 0.01}])
    there.aws.states.executions.redrive(stop(there))
    run(there, 3600)
    assert grid_of(there, grid).status == "RUNNING"
    assert report(there) is None
    assert there.aws.queue.messages == {}


def test_a_search_that_ended_well_after_all_is_left_alone(there: Searches, search: Search) -> None:
    there.train(search, [0.5])
    stop(there).status = "SUCCEEDED"
    run(there, 3600)
    assert report(there) is None
    assert there.aws.topics.messages == []


def test_a_search_that_was_refused_has_nothing_to_clean_up(there: Searches, search: Search) -> None:
    assert search.id == "tune-7"
    del there.aws.s3.buckets[there.store.name].objects[PREFIX.description]
    stop(there, "FAILED", "InvalidRequest", "trials: is missing")
    run(there)
    assert there.aws.topics.messages == []
    assert there.aws.queue.messages == {}


def test_an_old_search_whose_name_came_again_keeps_its_report(there: Searches) -> None:
    """Names come back after 90 days; Ask refuses the new execution, and its end is nothing to the old search."""
    there.aws.queue.feed(lambda event: handler(event, None))
    old = settle(there)
    there.train(old, [0.5])
    there.aws.s3.write(
        there.store.name, PREFIX.description, encode(replace(old, started_at="2026-09-15T08:00:00.000Z"))
    )
    stop(there, "FAILED", "InvalidRequest")
    run(there)
    assert report(there) is None
    assert there.aws.queue.messages == {}


def test_a_search_of_another_execution_is_left_alone(there: Searches) -> None:
    there.aws.queue.feed(lambda event: handler(event, None))
    other = settle(there, execution=f"{SEARCH.replace(':stateMachine:', ':execution:')}:elsewhere")
    grid = there.ask(other, [{"lr": 0.01}])
    stop(there)
    run(there)
    assert grid_of(there, grid).status == "RUNNING"
    assert report(there) is None


@pytest.mark.parametrize("machine", [ENVIRONMENT.machine, ENVIRONMENT.train_machine, SEARCH.replace("yard-", "lab-")])
def test_an_event_of_another_machine_is_dropped(there: Searches, search: Search, machine: str) -> None:
    grid = there.ask(search, [{"lr": 0.01}])
    other = there.begin("tune-7", machine)
    other.status, other.ended_at = "ABORTED", there.aws.clock.now
    there.end("tune-7", "ABORTED", SEARCH)
    there.aws.queue.put(event_of(other))
    run(there)
    assert grid_of(there, grid).status == "RUNNING"
    assert there.aws.queue.messages == {}


@pytest.mark.parametrize("body", ["not json", "[]", "{}", '{"detail": {"stateMachineArn": 7}}'])
def test_a_message_that_names_no_search_becomes_a_letter(there: Searches, search: Search, body: str) -> None:
    assert search.id == "tune-7"
    there.aws.queue.receives = 3
    there.aws.queue.put(body)
    run(there, 24 * 3600)
    assert len(there.aws.queue.dead) == 1


# what does not answer


def test_a_grid_that_is_never_counted_becomes_a_letter_and_no_report(there: Searches, search: Search) -> None:
    grid = there.ask(search, [{"lr": 0.01}])
    there.plan(grid, 1)
    there.aws.queue.receives = 5
    stop(there)
    run(there, 24 * 3600)
    assert len(there.aws.queue.dead) == 1
    assert report(there) is None


@pytest.mark.parametrize(
    "operation", ["stepfunctions:DescribeExecution", "stepfunctions:StopExecution", "s3:GetObject"]
)
def test_a_service_that_does_not_answer_brings_the_message_back(
    there: Searches, search: Search, operation: str
) -> None:
    grid = there.ask(search, [{"lr": 0.01}])
    there.aws.faults.add(Kind.DENIED, operation, times=1)
    stop(there)
    run(there, 1)
    assert grid_of(there, grid).status == "RUNNING"
    run(there, 3600)
    assert grid_of(there, grid).status == "ABORTED"
    assert report(there) is not None
    assert len(there.aws.topics.messages) == 1
