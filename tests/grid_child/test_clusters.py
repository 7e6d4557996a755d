"""A line on clusters of our own: one execution, found again whatever befalls its child, and recorded when nothing of it runs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from contract.grid import Backend, ExitCode, LineOutcome
from grid_child.backends import DESCRIBED_A_S, watch_s
from grid_child.identity import identify
from grid_child.plan import Work, read_work
from grid_child.retry import Retry
from grid_child.store import Home
from grid_child.waits import Waits
from tests.fakes.aws import Aws
from tests.fakes.clock import Killed
from tests.fakes.executions import MACHINE
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.grid_yard import BUCKET, HOME, NOW, GridYard, grid_of, job_line_of, sigterm
from tests.fakes.line_jobs import FAILS, IS_REFUSED, JobLife, LineJobs
from tests.fakes.s3 import Bucket

START, DESCRIBE, STOP = "stepfunctions:StartExecution", "stepfunctions:DescribeExecution", "stepfunctions:StopExecution"


@contextmanager
def planned_jobs(life: JobLife | None = None, lines: int = 1) -> Iterator[tuple[GridYard, LineJobs]]:
    aws = Aws(now=NOW)
    aws.s3.buckets[BUCKET] = Bucket(region=HOME)
    yard = GridYard(aws, grid_of(lines, (HOME,)), [job_line_of(index, index) for index in range(lines)])
    jobs = LineJobs(aws, BUCKET, lambda _: life or JobLife())
    yard.write()
    with aws.connected():
        yield yard, jobs


@pytest.fixture
def there() -> Iterator[tuple[GridYard, LineJobs]]:
    with planned_jobs() as found:
        yield found


def test_a_record_says_what_the_job_did_where_and_at_which_cost(there: tuple[GridYard, LineJobs]) -> None:
    yard, jobs = there
    assert yard.run() == ExitCode.DONE
    record, execution = yard.recorded(), yard.job()
    assert execution is not None
    assert (record.outcome, record.reason, record.arn) == (LineOutcome.COMPLETED, "", execution.arn)
    assert (record.backend, record.region) == (Backend.EC2, "us-east-1")
    assert (record.metrics, record.cost_usd, record.billable_seconds) == ({"metric": 0.5}, 1.25, 120.0)
    assert record.artifact == f"s3://yard-bytes-123456789012-us-east-1/jobs/{record.training}/artifacts/"
    assert "/cloudwatch/home?region=eu-central-1#logsV2" in record.log
    assert jobs.started == [record.training]


def test_a_job_that_fails_says_why_and_what_it_cost() -> None:
    with planned_jobs(FAILS) as (yard, _):
        assert yard.run() == ExitCode.DONE
        record = yard.recorded()
        assert record.outcome is LineOutcome.FAILED
        assert record.reason.startswith(
            "TrainingFailed: rank 0 exited with code 1. Logs: /trainyard/yard/nodes in eu-central-1"
        )
        assert (record.cost_usd, record.region) == (1.25, "us-east-1")


def test_what_admit_refuses_is_refused_in_its_words_and_costs_nothing() -> None:
    with planned_jobs(IS_REFUSED) as (yard, _):
        assert yard.run() == ExitCode.DONE
        record = yard.recorded()
        assert record.outcome is LineOutcome.REFUSED
        assert "nodes: 99 is too large; allowed: 1 to 16" in record.reason
        assert (record.cost_usd, record.billable_seconds) == (0.0, 0.0)


@pytest.mark.parametrize("kind", [Kind.LOST, Kind.THROTTLED, Kind.UNREACHABLE])
def test_an_unclear_answer_to_the_start_starts_nothing_twice(there: tuple[GridYard, LineJobs], kind: Kind) -> None:
    yard, jobs = there
    assert yard.run(mishaps=[Mishap(START, fault=kind)]) == ExitCode.DONE
    assert yard.recorded().outcome is LineOutcome.COMPLETED
    assert len(jobs.started) == 1


@pytest.mark.parametrize("death", Death)
def test_the_next_attempt_watches_the_job_of_a_child_that_was_killed(
    there: tuple[GridYard, LineJobs], death: Death
) -> None:
    yard, jobs = there
    with pytest.raises(Killed):
        yard.run(mishaps=[Mishap(START, death=death)])
    assert yard.run(attempt=2) == ExitCode.DONE
    assert yard.recorded().outcome is LineOutcome.COMPLETED
    assert len(jobs.started) == 1


def test_a_job_that_ended_while_no_child_watched_is_recorded(there: tuple[GridYard, LineJobs]) -> None:
    yard, jobs = there
    with pytest.raises(Killed):
        yard.run(mishaps=[Mishap(START, death=Death.AFTER)])
    yard.aws.clock.run(10_000)
    assert yard.run(attempt=2) == ExitCode.DONE
    assert yard.recorded().outcome is LineOutcome.COMPLETED
    assert len(jobs.started) == 1


def test_an_execution_of_another_input_is_a_strangers_and_stays(there: tuple[GridYard, LineJobs]) -> None:
    yard, _ = there
    execution = yard.aws.states.executions.begin(yard.lines[0].training)
    assert yard.run() == ExitCode.DONE
    record = yard.recorded()
    assert record.outcome is LineOutcome.REFUSED
    assert f"is taken by {execution.arn}, which was started with another input" in record.reason
    assert execution.status == "RUNNING"


def abort(yard: GridYard) -> None:
    """A person, or whoever ends the grid, stops the execution."""
    execution, executions = yard.job(), yard.aws.states.executions
    assert execution is not None
    executions.end(execution, "ABORTED", "GridEnded", "The grid of this line has ended.")
    executions.stopped(execution)


def test_a_job_that_is_stopped_is_recorded_once_its_instances_have_ended(there: tuple[GridYard, LineJobs]) -> None:
    yard, jobs = there
    jobs.life = lambda _: JobLife(ends_s=100_000, cleared_s=300)
    yard.at(70, lambda: abort(yard))
    assert yard.run() == ExitCode.DONE
    record = yard.recorded()
    assert record.outcome is LineOutcome.STOPPED
    assert record.reason.startswith("GridEnded: The grid of this line has ended. Logs: ")
    assert (record.cost_usd, record.region) == (0.5, "us-east-1")
    assert not jobs.running


def test_a_report_of_an_earlier_attempt_is_not_taken_for_the_end(there: tuple[GridYard, LineJobs]) -> None:
    yard, jobs = there
    jobs.life = lambda _: JobLife(ends_s=100_000, cleared_s=300)
    yard.at(
        30,
        lambda: yard.put(
            f"jobs/{yard.lines[0].training}/report.json", b'{"error": "NodeLost", "cost": {"usd_at_most": 9}}'
        ),
    )
    yard.at(70, lambda: abort(yard))
    assert yard.run() == ExitCode.DONE
    assert yard.recorded().cost_usd == 0.5


def test_a_report_that_never_comes_is_waited_for_so_long_and_no_longer(there: tuple[GridYard, LineJobs]) -> None:
    yard, jobs = there
    jobs.life = lambda _: JobLife(ends_s=100_000, cleared_s=1e9)
    yard.at(70, lambda: abort(yard))
    assert yard.run() == ExitCode.DONE
    record = yard.recorded()
    assert (record.outcome, record.cost_usd) == (LineOutcome.STOPPED, None)


def test_a_report_that_is_no_json_holds_nobody_up(there: tuple[GridYard, LineJobs]) -> None:
    yard, jobs = there
    jobs.life = lambda _: JobLife(ends_s=100_000, cleared_s=1e9)
    yard.at(30, lambda: yard.put(f"jobs/{yard.lines[0].training}/report.json", b"[1"))
    yard.at(70, lambda: abort(yard))
    assert yard.run() == ExitCode.DONE
    assert yard.recorded().outcome is LineOutcome.STOPPED


def test_once_the_grid_is_to_end_nothing_is_started(there: tuple[GridYard, LineJobs]) -> None:
    yard, jobs = there
    yard.stop()
    assert yard.run() == ExitCode.FINAL
    assert jobs.started == []


def test_a_grid_that_ends_during_the_start_stops_the_job(there: tuple[GridYard, LineJobs]) -> None:
    yard, jobs = there
    assert yard.run(mishaps=[Mishap(START, meanwhile=yard.stop)]) == ExitCode.DONE
    execution = yard.job()
    assert execution is not None
    assert execution.status == "ABORTED"
    assert not jobs.running


def test_sigterm_without_an_order_leaves_the_job_running(there: tuple[GridYard, LineJobs]) -> None:
    yard, _ = there
    assert yard.run(waits=sigterm(yard, 20)) == ExitCode.AGAIN
    execution = yard.job()
    assert execution is not None
    assert execution.status == "RUNNING"


def test_an_input_that_names_another_line_starts_nothing(
    there: tuple[GridYard, LineJobs], capsys: pytest.CaptureFixture[str]
) -> None:
    yard, jobs = there
    yard.lines[0] = replace(yard.lines[0], request=job_line_of(1).request)
    yard.write()
    assert yard.run() == ExitCode.FINAL
    assert "does not say of which grid and line it is" in capsys.readouterr().err
    assert jobs.started == []


def test_a_missing_right_is_named_and_no_attempt_repeats_it(
    there: tuple[GridYard, LineJobs], capsys: pytest.CaptureFixture[str]
) -> None:
    yard, _ = there
    assert yard.run(attempt=2, mishaps=[Mishap(DESCRIBE, fault=Kind.DENIED)]) == ExitCode.FINAL
    assert "states:DescribeExecution is not allowed" in capsys.readouterr().err


def work_of(yard: GridYard) -> Work:
    waits, chance = Waits(yard.aws.clock), random.Random(0)
    me = identify(yard.variables())
    return read_work(me, Home(BUCKET, HOME, Retry(waits, chance, base_s=1.0, most_s=1.0)), chance)


def test_many_lines_look_so_seldom_that_step_functions_answers_all() -> None:
    with planned_jobs(lines=1000) as (yard, _):
        work = work_of(yard)
        assert watch_s(work, 60.0) == 1000 / DESCRIBED_A_S == 200.0
        assert watch_s(replace(work, line=replace(work.line, backend=Backend.SAGEMAKER)), 60.0) == 60.0


def test_a_job_that_runs_is_asked_for_once_a_minute(there: tuple[GridYard, LineJobs]) -> None:
    yard, jobs = there
    jobs.life = lambda _: JobLife(ends_s=6000)
    assert yard.run() == ExitCode.DONE
    assert 80 <= yard.calls("DescribeExecution") <= 130


def test_the_execution_is_of_the_train_machine(there: tuple[GridYard, LineJobs]) -> None:
    yard, _ = there
    yard.run()
    (call,) = [one for one in yard.aws.calls if one.operation == "StartExecution"]
    assert call.params["stateMachineArn"] == MACHINE
    assert call.region == HOME
