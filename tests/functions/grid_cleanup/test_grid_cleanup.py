"""The cleanup of grids: an end that ran no step of the machine is met all the same, and only that execution's own grid is touched."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from localaws.services.sagemaker_planned import Life
from tests.fakes.executions import MACHINE
from tests.fakes.faults import Kind
from tests.fakes.grid_yard import BUCKET, STARTED
from tests.functions.grid_collect.collecting import PREFIX, Yard, cleaned_up, collected

BROKEN = {"error": "GridFailed", "cause": "it went wrong"}


@pytest.fixture
def yard() -> Iterator[Yard]:
    with collected() as made:
        cleaned_up(made)
        yield made


def test_an_aborted_grid_ends_its_trainings_and_reports_how_it_ended(yard: Yard) -> None:
    yard.submit()
    yard.train(0, 1, 2)
    yard.end("ABORTED", cause="somebody pressed Stop")
    yard.settle()
    assert yard.alive() == []
    report = json.loads(yard.text(PREFIX.report))
    assert report["problem"] == {"error": "Aborted", "cause": "somebody pressed Stop"}
    assert len(yard.aws.topics.messages) == 1
    assert yard.aws.queue.messages == {}
    assert yard.aws.queue.dead == []


def test_a_grid_that_ran_out_of_time_is_cleaned_up_as_well(yard: Yard) -> None:
    yard.train(0)
    yard.end("TIMED_OUT")
    yard.settle()
    assert yard.alive() == []
    assert json.loads(yard.text(PREFIX.report))["problem"]["error"] == "TimedOut"


def test_the_machines_own_report_of_the_same_end_stays_and_nobody_is_told_twice(yard: Yard) -> None:
    totals = yard.stop_until_over(BROKEN).value["totals"]
    yard.report(totals, BROKEN)
    before = yard.text(PREFIX.report)
    yard.end("FAILED", error="GridFailed", cause="it went wrong")
    yard.settle()
    assert yard.text(PREFIX.report) == before
    assert len(yard.aws.topics.messages) == 1


def test_a_grid_that_runs_again_by_the_time_of_the_message_is_left_alone(yard: Yard) -> None:
    yard.train(0)
    yard.end("ABORTED")
    yard.aws.states.executions.redrive(yard.execution)
    yard.settle(60)
    assert len(yard.alive()) == 1
    assert yard.aws.s3.read(BUCKET, PREFIX.stopped) is None


def test_a_grid_that_succeeded_is_left_alone_whatever_the_message_says(yard: Yard) -> None:
    yard.end("ABORTED")
    yard.execution.status = "SUCCEEDED"
    yard.settle(60)
    assert yard.aws.s3.read(BUCKET, PREFIX.stopped) is None


def test_an_execution_that_never_planned_anything_leaves_nothing_to_clean_up(yard: Yard) -> None:
    del yard.aws.s3.buckets[BUCKET].objects[PREFIX.description]
    yard.end("FAILED", error="InvalidRequest", cause="line 1: ...")
    yard.settle(60)
    assert yard.aws.queue.messages == {}
    assert yard.aws.topics.messages == []


def test_a_grid_of_the_same_name_and_another_execution_is_not_touched(yard: Yard) -> None:
    other = yard.grid.execution.replace("sweep", "elsewhere")
    yard.put(PREFIX.description, yard.text(PREFIX.description).replace(yard.grid.execution, other).encode())
    yard.train(0)
    yard.end("ABORTED")
    yard.settle(60)
    assert len(yard.alive()) == 1


def test_an_old_grid_whose_name_was_used_again_keeps_its_results(yard: Yard) -> None:
    """Names come back after 90 days; Plan refuses the new execution, and its end is nothing to the old grid."""
    yard.put(PREFIX.description, yard.text(PREFIX.description).replace(STARTED, "2026-09-15T08:00:00.000Z").encode())
    yard.put(PREFIX.report, b'{"completed": 4}')
    yard.end("FAILED", error="InvalidRequest", cause="the name is taken")
    yard.settle(60)
    assert yard.text(PREFIX.report) == '{"completed": 4}'
    assert yard.aws.s3.read(BUCKET, PREFIX.stopped) is None
    assert yard.aws.topics.messages == []
    assert yard.aws.queue.messages == {}


def test_lines_that_the_machine_had_to_leave_out_are_reported_when_they_have_ended(yard: Yard) -> None:
    yard.train(0, life=Life(uploading_s=3000.0))
    yard.settle(400)
    stopped = yard.stop_until_over(BROKEN).value
    yard.report(stopped["totals"], stopped["problem"])
    assert json.loads(yard.text(PREFIX.report))["unfinished"] == 1
    yard.aws.queue.receives = 1000
    yard.end("FAILED", error=stopped["problem"]["error"], cause=stopped["problem"]["cause"])
    yard.settle(20_000)
    assert yard.aws.queue.messages == {}
    assert json.loads(yard.text(PREFIX.report))["unfinished"] == 0
    assert len(yard.aws.topics.messages) == 2


def test_an_event_of_another_machine_is_dropped(yard: Yard) -> None:
    job = yard.aws.states.executions.begin("sweep", MACHINE)
    yard.aws.states.executions.end(job, "ABORTED")
    yard.settle(60)
    assert yard.aws.queue.messages == {}
    assert yard.aws.s3.read(BUCKET, PREFIX.stopped) is None


def test_what_never_ends_becomes_a_letter_and_its_report_names_it(yard: Yard) -> None:
    yard.aws.queue.receives = 45
    yard.train(0, life=Life(uploading_s=1e6))
    yard.settle(400)
    yard.end("ABORTED")
    yard.settle(20_000)
    assert len(yard.aws.queue.dead) == 1
    assert yard.lines[0].training in json.loads(yard.text(PREFIX.report))["problem"]["cause"]
    assert len(yard.aws.topics.messages) == 1


def test_a_letter_that_is_moved_back_when_its_reason_is_gone_is_made_good(yard: Yard) -> None:
    yard.aws.queue.receives = 45
    yard.train(0, life=Life(uploading_s=20_000.0))
    yard.settle(400)
    yard.end("ABORTED")
    yard.settle(10_000)
    (letter,) = yard.aws.queue.dead
    yard.settle(20_000)
    yard.aws.queue.put(letter.body)
    yard.settle(60)
    assert (len(yard.aws.queue.dead), yard.aws.queue.messages) == (1, {})
    assert len(yard.records()) == 4
    assert json.loads(yard.text(PREFIX.report))["unfinished"] == 0


@pytest.mark.parametrize("operation", ["s3:GetObject", "states:*", "batch:ListJobs", "sagemaker:StopTrainingJob"])
def test_a_cleanup_that_fails_comes_again(yard: Yard, operation: str) -> None:
    yard.submit()
    yard.train(0)
    yard.aws.faults.add(Kind.ERROR, operation.replace("states", "stepfunctions"), times=9)
    yard.end("ABORTED")
    yard.settle(2 * 3600)
    assert yard.alive() == []
    assert yard.aws.queue.dead == []
