"""The cleanup after an execution's end, on the fake: the event once, twice, late, never, and whatever AWS has in store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from aws.state import State
from contract import items
from contract.codec import encode
from tests.builders import JOB
from tests.fakes.state import TABLE, store
from tests.functions.cleanup.cleaning import AGAIN_S, PREFIX, PROVEN_S, Yard, cleaning


@pytest.fixture
def yard() -> Iterator[Yard]:
    with cleaning() as made:
        yield made


def test_an_aborted_execution_leaves_nothing_within_seconds(yard: Yard) -> None:
    yard.train()
    yard.abort()
    yard.aws.clock.run(5)
    assert yard.running() == []


def test_the_cleanup_looks_once_more_a_minute_later_and_then_never_again(yard: Yard) -> None:
    yard.train()
    yard.abort()
    yard.aws.clock.run(3600)
    first, proven, second = yard.cleanups()
    assert first < 3
    assert proven - first == pytest.approx(JOB.timing.terminate_again_s, abs=1)
    assert second - proven == pytest.approx(AGAIN_S, abs=1)
    assert yard.quiet()


def test_an_aborted_jobs_report_says_so_and_lists_what_was_launched(yard: Yard) -> None:
    yard.train()
    yard.abort()
    yard.aws.clock.run(PROVEN_S)
    report = yard.report()
    assert (report["error"], report["cause"], report["attempts"]) == ("Aborted", "somebody pressed Stop", 1)
    assert len(report["launches"][0]["instances"]) == 2


@pytest.mark.parametrize(
    ("status", "error", "cause"),
    [
        ("ABORTED", "Aborted", "The execution was stopped without a reason."),
        ("TIMED_OUT", "TimedOut", "The execution ran longer than its state machine allows."),
        ("FAILED", "Failed", "The execution failed, and Step Functions gives no reason."),
    ],
)
def test_an_end_without_a_reason_has_one_in_words(yard: Yard, status: str, error: str, cause: str) -> None:
    yard.train()
    yard.end(status)
    yard.aws.clock.run(PROVEN_S)
    report = yard.report()
    assert (report["error"], report["cause"]) == (error, cause)


def test_the_machines_own_report_of_the_same_end_stays_as_it_is(yard: Yard) -> None:
    yard.train()
    yard.terminate(problem={"error": "TrainingFailed", "cause": "rank 0: exit code 3"})
    yard.aws.clock.run(30)
    yard.terminate(problem={"error": "TrainingFailed", "cause": "rank 0: exit code 3"})
    before = len(yard.aws.s3.buckets[JOB.home_bucket].objects[PREFIX.result])
    yard.end("FAILED", "TrainingFailed", "rank 0: exit code 3")
    yard.aws.clock.run(200)
    assert len(yard.aws.s3.buckets[JOB.home_bucket].objects[PREFIX.result]) == before


@pytest.mark.parametrize("written", [b"", b"not JSON", b"[]", b'{"error": "Aborted", "attempts": "1"}'])
def test_a_report_that_nobody_can_read_is_written_again(yard: Yard, written: bytes) -> None:
    yard.train()
    yard.aws.s3.write(JOB.home_bucket, PREFIX.result, written)
    yard.abort()
    yard.aws.clock.run(PROVEN_S)
    assert yard.report()["attempts"] == 1


def test_the_report_of_an_attempt_before_is_not_the_report_of_the_abort(yard: Yard) -> None:
    yard.train()
    yard.terminate(problem={"error": "NodeLost", "cause": "rank 1"})
    yard.aws.clock.run(200)
    yard.terminate(problem={"error": "NodeLost", "cause": "rank 1"})
    yard.train(attempt=2)
    yard.abort()
    yard.aws.clock.run(PROVEN_S)
    report = yard.report()
    assert (report["error"], report["attempts"]) == ("Aborted", 2)
    assert {launch["attempt"] for launch in report["launches"]} == {1, 2}
    assert yard.running() == []


def test_a_job_of_two_attempts_has_both_ended_and_the_next_one_closed(yard: Yard) -> None:
    yard.train()
    yard.train(attempt=2)
    yard.abort()
    yard.aws.clock.run(5)
    assert yard.running() == []
    assert yard.closed() == {1, 2, 3}


def test_an_event_that_comes_twice_changes_nothing_more(yard: Yard) -> None:
    yard.aws.events.weather = lambda _: (1.0, 1.0, 40.0)
    yard.train()
    yard.abort()
    yard.aws.clock.run(1000)
    assert yard.running() == []
    assert yard.closed() == {1, 2}
    assert len(yard.aws.s3.buckets[JOB.home_bucket].objects[PREFIX.result]) == 1
    assert yard.quiet()


def test_an_event_that_comes_an_hour_late_still_ends_what_runs(yard: Yard) -> None:
    yard.aws.events.weather = lambda event: (3600.0,) if event["source"] == "aws.states" else ()
    yard.train()
    yard.abort()
    yard.aws.clock.run(3500)
    assert len(yard.running()) == 2
    yard.aws.clock.run(200)
    assert yard.running() == []


def test_an_event_that_never_comes_ends_nothing_and_breaks_nothing(yard: Yard) -> None:
    yard.aws.events.weather = lambda _: ()
    yard.train()
    yard.abort()
    yard.aws.clock.run(1000)
    assert len(yard.running()) == 2  # the reaper's
    assert yard.cleanups() == []


def test_an_event_of_an_execution_that_runs_again_touches_nothing(yard: Yard) -> None:
    yard.train()
    yard.abort()
    yard.aws.states.executions.redrive(yard.execution)
    yard.aws.clock.run(500)
    assert len(yard.running()) == 2
    assert yard.closed() == set()
    assert not yard.reported
    assert len(yard.cleanups()) == 1


def test_events_out_of_order_end_what_the_newest_state_says(yard: Yard) -> None:
    """Aborted, redriven, and the first abort's event arrives during the second run; then it is aborted again."""
    yard.aws.events.weather = lambda event: (100.0,) if event["source"] == "aws.states" else ()
    yard.train()
    yard.abort()
    yard.aws.states.executions.redrive(yard.execution)
    yard.aws.clock.run(150)
    assert len(yard.running()) == 2
    yard.abort()
    yard.aws.clock.run(150)
    assert yard.running() == []


def test_an_execution_that_succeeded_after_all_is_left_alone(yard: Yard) -> None:
    yard.train()
    body = yard.event()
    yard.end("SUCCEEDED")
    yard.aws.queue.put(body)
    yard.aws.clock.run(500)
    assert yard.closed() == set()
    assert not yard.reported
    assert yard.quiet()


def test_an_execution_that_never_got_past_admit_needs_nothing(yard: Yard) -> None:
    yard.execution = yard.aws.states.executions.begin("refused")
    yard.end("FAILED", "InvalidRequest", "code: is missing")
    yard.aws.clock.run(500)
    assert yard.quiet()
    assert [call.name for call in yard.aws.calls if call.service == "ec2" or call.operation.startswith("Put")] == []


def test_an_execution_whose_name_is_another_executions_job_ends_nothing_of_it(yard: Yard) -> None:
    yard.train()
    other = replace(yard.job, execution=f"{JOB.execution}-another")
    store(yard.aws, items.job(JOB.id), encode(other))
    yard.end("FAILED", "InvalidRequest", "name: taken")
    yard.aws.clock.run(500)
    assert len(yard.running()) == 2
    assert yard.quiet()


def test_the_refused_execution_of_an_old_name_leaves_the_old_jobs_report_as_it_is(yard: Yard) -> None:
    """Its name, and so its ARN, are those of an execution that Step Functions has forgotten."""
    old = replace(yard.job, admitted_at=yard.job.admitted_at - 91 * 86_400)
    store(yard.aws, items.job(JOB.id), encode(old))
    yard.aws.s3.write(JOB.home_bucket, PREFIX.result, b'{"error": null, "cause": "it went well"}')
    yard.end("FAILED", "InvalidRequest", "name: it was taken")
    yard.aws.clock.run(3600)
    assert yard.report() == {"error": None, "cause": "it went well"}
    assert yard.closed() == set()
    assert yard.quiet()


@pytest.mark.parametrize("name", ["..", ".job", "a b", "jöb"])
def test_the_end_of_an_execution_with_a_name_that_no_job_has_looks_for_no_job(yard: Yard, name: str) -> None:
    yard.execution = yard.aws.states.executions.begin(name)
    yard.end("FAILED", "InvalidRequest", "name")
    yard.aws.clock.run(3600)
    assert yard.quiet()
    assert [call.name for call in yard.aws.calls if call.service == "s3"] == []


def test_an_execution_that_step_functions_forgot_is_over(yard: Yard) -> None:
    yard.train()
    body = yard.event()
    del yard.aws.states.executions.known[yard.execution.arn]
    yard.aws.queue.put(body)
    yard.aws.clock.run(5)
    assert yard.running() == []


def test_a_stopped_attempt_costs_what_it_ran_and_not_the_days_until_a_redrive(yard: Yard) -> None:
    yard.train()
    stopped_at = yard.aws.clock.now
    yard.abort()
    yard.aws.clock.run(86_400)
    yard.aws.states.executions.redrive(yard.execution)
    assert yard.terminate(problem={"error": "NodeLost", "cause": "its nodes are gone"}).error == ""
    (ended,) = State(TABLE).endings(JOB.id).values()
    assert ended.at - stopped_at < 60
    assert (ended.error, ended.cause) == ("Aborted", "somebody pressed Stop")


def test_an_execution_that_was_stopped_before_its_launch_has_no_end_of_an_attempt(yard: Yard) -> None:
    yard.abort()
    yard.aws.clock.run(PROVEN_S)
    assert State(TABLE).endings(JOB.id) == {}
