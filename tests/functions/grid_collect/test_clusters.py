"""Lines on clusters of our own as Collect and Stop see them: each is its execution, and over once no instance of it runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contract.errors import StillTraining
from contract.grid import Backend, LineOutcome
from tests.fakes.faults import Kind, Mishap
from tests.fakes.grid_yard import BUCKET, job_line_of
from tests.fakes.line_jobs import FAILS, IS_REFUSED, JobLife, LineJobs
from tests.functions.grid_collect.collecting import PREFIX, Yard, cleaned_up, collected

WELL = JobLife()
LONG = JobLife(ends_s=100_000.0, cleared_s=120.0)
BROKEN = {"error": "GridFailed", "cause": "it went wrong"}
DESCRIBE = "stepfunctions:DescribeExecution"


@pytest.fixture
def yard() -> Iterator[Yard]:
    """Two lines of SageMaker, and two on clusters."""
    with collected() as made:
        made.lines[2:] = [job_line_of(index, index) for index in (2, 3)]
        made.write()
        yield made


def start(yard: Yard, *indices: int, life: JobLife = WELL) -> LineJobs:
    """Executions that run since now, as their children start them."""
    jobs = LineJobs(yard.aws, BUCKET, lambda _: life)
    for index in indices:
        yard.begin(index)
    return jobs


def test_a_job_that_ended_while_no_child_watched_is_recorded(yard: Yard) -> None:
    yard.complete(0, 1)
    start(yard, 2)
    start(yard, 3, life=FAILS)
    yard.settle()
    totals = yard.collect().value["totals"]
    assert totals["outcomes"] == {"Completed": 3, "Failed": 1, "Stopped": 0, "Refused": 0}
    records = yard.records()
    assert (records[2].backend, records[2].metrics, records[2].cost_usd) == (Backend.EC2, {"metric": 0.5}, 1.25)
    assert records[3].reason.startswith("TrainingFailed: rank 0 exited with code 1")


def test_the_table_has_the_same_columns_for_both_and_where_to_look(yard: Yard) -> None:
    yard.complete(0, 1)
    start(yard, 2, 3)
    yard.settle()
    yard.collect()
    rows = yard.table()
    assert [row["backend"] for row in rows] == ["sagemaker", "sagemaker", "ec2", "ec2"]
    assert all(row["log"].startswith("https://") and row["job"] in row["log"] for row in rows)
    assert {row["status"] for row in rows} == {"Completed"}


def test_what_admit_refused_is_a_refused_line(yard: Yard) -> None:
    yard.complete(0, 1)
    start(yard, 2, 3, life=IS_REFUSED)
    yard.settle()
    assert yard.collect().value["totals"]["outcomes"]["Refused"] == 2


def test_collect_waits_for_a_job_that_no_child_watches(yard: Yard) -> None:
    yard.complete(0, 1)
    start(yard, 2, 3, life=LONG)
    outcome = yard.collect()
    assert outcome.error == StillTraining.__name__
    assert yard.lines[2].training in outcome.cause


def test_an_execution_with_another_input_is_a_strangers_and_stays(yard: Yard) -> None:
    yard.complete(0, 1)
    stranger = yard.aws.states.executions.begin(yard.lines[2].training)
    start(yard, 3)
    yard.settle()
    yard.collect()
    assert yard.records()[2].outcome is LineOutcome.REFUSED
    assert "which has another input" in yard.records()[2].reason
    assert stranger.status == "RUNNING"
    yard.stop_until_over(BROKEN)
    assert stranger.status == "RUNNING"


def test_a_line_without_an_execution_is_given_to_batch_again(yard: Yard) -> None:
    yard.complete(0, 1)
    start(yard, 2)
    yard.settle()
    assert yard.collect().value["missing"] == 1


def test_a_stop_ends_jobs_and_says_so_once_no_instance_runs(yard: Yard) -> None:
    yard.complete(0)
    yard.train(1)
    jobs = start(yard, 2, life=LONG)
    yard.settle(60)
    first = yard.stop_grid(BROKEN)
    assert first.error == StillTraining.__name__, "instances of the stopped job may run"
    stopped = yard.stop_until_over(BROKEN).value
    assert not jobs.running
    assert stopped["left"] == 0
    records = yard.records()
    assert (records[2].outcome, records[2].cost_usd) == (LineOutcome.STOPPED, 0.5)
    assert records[2].reason.startswith("GridEnded: The grid of this line has ended")
    assert records[3].outcome is LineOutcome.STOPPED
    assert records[3].arn == ""


def test_a_job_whose_instances_do_not_end_is_named_when_the_patience_is_over(yard: Yard) -> None:
    yard.complete(0, 1)
    start(yard, 2, life=JobLife(ends_s=1e6, cleared_s=1e6))
    yard.settle(60)
    stopped = yard.stop_until_over(BROKEN).value
    assert stopped["left"] == 1
    assert yard.lines[2].training in stopped["problem"]["cause"]


def test_a_job_that_a_killed_child_started_late_is_stopped(yard: Yard) -> None:
    """Its start arrives after Stop has looked for it, before Stop has written its record."""
    yard.complete(0, 1)
    jobs = LineJobs(yard.aws, BUCKET, lambda _: LONG)
    mishap = Mishap("s3:PutObject", meanwhile=lambda: yard.begin(2) if not jobs.started else None)
    yard.stop_grid(BROKEN, [mishap])
    yard.stop_until_over(BROKEN)
    execution = yard.job(2)
    assert execution is not None
    assert execution.status == "ABORTED"


@pytest.mark.parametrize("kind", [Kind.THROTTLED, Kind.UNREACHABLE])
def test_step_functions_that_does_not_answer_ends_nothing_and_records_nothing(yard: Yard, kind: Kind) -> None:
    yard.complete(0, 1)
    start(yard, 2, 3)
    yard.settle()
    yard.aws.faults.add(kind, DESCRIBE, times=1000)
    outcome = yard.collect()
    assert outcome.error == StillTraining.__name__
    assert set(yard.records()) == {0, 1}


def test_the_cleanup_after_an_aborted_execution_ends_jobs_too(yard: Yard) -> None:
    yard.complete(0, 1)
    jobs = start(yard, 2, 3, life=LONG)
    yard.settle(60)
    cleaned_up(yard)
    yard.end("ABORTED")
    yard.settle(3600)
    assert not jobs.running
    assert {record.outcome for index, record in yard.records().items() if index > 1} == {LineOutcome.STOPPED}
    assert PREFIX.report in yard.aws.s3.buckets[BUCKET].live()


@pytest.mark.parametrize("after_s", [0.0, 3.0, 6.0, 60.0, 123.0, 126.0, 300.0])
def test_an_aborted_grid_leaves_no_job_running_whenever_it_is_aborted(yard: Yard, after_s: float) -> None:
    """Before its admission, while it trains, just as it ends, after its end; the other line is not started yet."""
    cleaned_up(yard)
    jobs = start(yard, 2)
    yard.train(0)
    yard.settle(after_s)
    yard.end("ABORTED")
    yard.settle(3600)
    assert not jobs.running
    execution = yard.job(2)
    assert execution is not None
    assert execution.status in {"ABORTED", "SUCCEEDED"}
    wanted = LineOutcome.COMPLETED if execution.status == "SUCCEEDED" else LineOutcome.STOPPED
    assert yard.records()[2].outcome is wanted
    assert yard.records()[3].outcome is LineOutcome.STOPPED
