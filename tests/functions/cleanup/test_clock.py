"""The cleanup's clock, on the fake: an end whose event got lost has its report within half an hour, and no other end is touched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from contract import items, names
from contract.codec import encode
from localaws.model import Pages
from messages.policy import read, write_unheard
from tests.builders import JOB
from tests.fakes.executions import GRID_MACHINE, MACHINE
from tests.fakes.faults import Kind, Mishap
from tests.fakes.functions import Outcome
from tests.fakes.state import store
from tests.functions.cleanup.cleaning import PREFIX, Yard, cleaning

AFTER_S, UNTIL_S = JOB.timing.missing_report_after_s, JOB.timing.missing_report_until_s
TICK_S = 300.0
HALF_AN_HOUR_S = 1800.0
NOTHING = {"ended": 0, "missing": 0, "sent": 0}


@pytest.fixture
def yard() -> Iterator[Yard]:
    with cleaning() as made:
        yield made


def lose_events(yard: Yard) -> None:
    yard.aws.events.weather = lambda _: ()


def start_clock(yard: Yard) -> list[Outcome]:
    ticks = list[Outcome]()
    yard.aws.events.every(TICK_S, lambda event: ticks.append(yard.functions.invoke("cleanup", event)))
    return ticks


def tick(yard: Yard) -> Outcome:
    return yard.functions.invoke("cleanup", {})


def abort_unheard(yard: Yard, ago_s: float = AFTER_S + 60) -> None:
    """Its nodes have ended, as the reaper would have seen to."""
    lose_events(yard)
    yard.train()
    yard.abort()
    for one in yard.running():
        one.ending_at = one.terminated_at = yard.aws.clock.now
    yard.aws.clock.run(ago_s)


def at_describe(yard: Yard, *, forgets: bool = False) -> Mishap:
    """Just before the clock describes the execution, it is redriven, or Step Functions forgets it."""

    def happen() -> None:
        if forgets:
            del yard.aws.states.executions.known[yard.execution.arn]
        else:
            yard.aws.states.executions.redrive(yard.execution)

    return Mishap("stepfunctions:DescribeExecution", meanwhile=happen)


def sent(yard: Yard) -> int:
    """How many messages the cleanup sent itself."""
    return len([call for call in yard.aws.calls if call.name == "sqs:SendMessage"])


def deliver(yard: Yard, body: str, *mishaps: Mishap) -> Outcome:
    record = {"messageId": "m", "receiptHandle": "r", "body": body}
    return yard.functions.invoke("cleanup", {"Records": [record]}, mishaps)


def written(yard: Yard) -> int:
    """How often the job's report was written."""
    return len(yard.aws.s3.buckets[JOB.home_bucket].objects.get(PREFIX.result, ()))


def test_an_end_whose_event_was_lost_has_its_report_before_half_an_hour_is_over(yard: Yard) -> None:
    ticks = start_clock(yard)
    abort_unheard(yard, HALF_AN_HOUR_S)
    report = yard.report()
    assert (report["error"], report["cause"], report["attempts"]) == ("Aborted", "somebody pressed Stop", 1)
    assert len(report["launches"][0]["instances"]) == 2
    assert "usd_at_most" in report["cost"]
    yard.aws.clock.run(2 * UNTIL_S)
    assert {one.error for one in ticks} == {""}
    assert written(yard) == 1
    assert sent(yard) == 1  # and no second look follows
    assert yard.quiet()


@pytest.mark.parametrize("status", ["ABORTED", "FAILED", "TIMED_OUT"])
def test_every_bad_end_is_found(yard: Yard, status: str) -> None:
    lose_events(yard)
    yard.train()
    yard.end(status)
    yard.aws.clock.run(AFTER_S + 60)
    assert tick(yard).value == {"ended": 1, "missing": 1, "sent": 1}
    yard.aws.clock.run(60)
    assert yard.reported


def test_what_nobody_ended_is_ended_too(yard: Yard) -> None:
    """As the event would have done, where the reaper did not."""
    lose_events(yard)
    start_clock(yard)
    yard.train()
    yard.abort()
    yard.aws.clock.run(HALF_AN_HOUR_S)
    assert yard.running() == []
    assert yard.reported


def test_where_the_event_came_the_clock_writes_and_asks_nothing(yard: Yard) -> None:
    yard.train()
    yard.abort()
    yard.aws.clock.run(AFTER_S)
    assert yard.reported
    before = len(yard.aws.calls)
    for _ in range(8):
        yard.aws.clock.run(TICK_S)
        assert tick(yard).value["sent"] == 0
    assert {call.operation for call in yard.aws.calls[before:]} <= {
        "ListExecutions",
        "DescribeExecution",
        "GetItem",
        "Query",
        "GetObject",
    }
    assert written(yard) == 1


def test_where_the_machine_reported_the_end_itself_the_clock_asks_nothing(yard: Yard) -> None:
    lose_events(yard)
    yard.train()
    problem = {"error": "TrainingFailed", "cause": "rank 0: exit code 3"}
    yard.terminate(problem=problem)
    yard.aws.clock.run(30)
    yard.terminate(problem=problem)
    before = written(yard)
    yard.end("FAILED", problem["error"], problem["cause"])
    yard.aws.clock.run(AFTER_S + 60)
    assert tick(yard).value == {"ended": 1, "missing": 0, "sent": 0}
    assert written(yard) == before


def test_an_event_and_a_message_of_the_clock_at_the_same_time_make_one_report(yard: Yard) -> None:
    """One is about to write the report while the other one does."""
    abort_unheard(yard)

    def arrive() -> None:
        assert deliver(yard, yard.event()).value == {"batchItemFailures": []}
        assert written(yard) == 1

    late = Mishap("s3:PutObject", meanwhile=arrive)
    assert deliver(yard, write_unheard(MACHINE, yard.execution.arn), late).value == {"batchItemFailures": []}
    assert written(yard) == 1


def test_two_ticks_at_the_same_time_make_one_report(yard: Yard) -> None:
    abort_unheard(yard)
    others = list[Outcome]()
    outcome = yard.functions.invoke(
        "cleanup", {}, [Mishap("sqs:SendMessage", meanwhile=lambda: others.append(tick(yard)))]
    )
    assert [outcome.value["sent"], others[0].value["sent"]] == [1, 1]
    yard.aws.clock.run(600)
    assert written(yard) == 1
    assert yard.quiet()


def test_a_report_of_an_attempt_before_is_no_report_of_this_end(yard: Yard) -> None:
    """Terminate wrote it seconds before the execution was stopped."""
    lose_events(yard)
    yard.train()
    for _ in range(2):
        yard.terminate(problem={"error": "NodeLost", "cause": "rank 1"})
        yard.aws.clock.run(20)
    yard.abort()
    yard.aws.clock.run(AFTER_S + 60)
    assert tick(yard).value["sent"] == 1
    yard.aws.clock.run(60)
    assert yard.report()["error"] == "Aborted"


def test_an_execution_that_runs_is_left_alone(yard: Yard) -> None:
    start_clock(yard)
    yard.train()
    yard.aws.clock.run(2 * UNTIL_S)
    assert len(yard.running()) == 2
    assert sent(yard) == 0
    assert not yard.reported


def test_an_execution_that_succeeded_is_left_alone(yard: Yard) -> None:
    lose_events(yard)
    yard.train()
    yard.end("SUCCEEDED")
    yard.aws.clock.run(AFTER_S + 60)
    assert tick(yard).value == NOTHING


@pytest.mark.parametrize("ago_s", [0, 60, AFTER_S - 1, UNTIL_S + 1, 30 * 86_400])
def test_an_end_that_is_too_young_or_too_old_is_left_alone(yard: Yard, ago_s: float) -> None:
    abort_unheard(yard, ago_s)
    before = len(yard.aws.calls)
    assert tick(yard).value == NOTHING
    assert {call.operation for call in yard.aws.calls[before:]} == {"ListExecutions"}
    assert yard.aws.queue.messages == {}


def test_an_execution_that_was_redriven_since_it_was_listed_is_left_alone(yard: Yard) -> None:
    abort_unheard(yard)
    outcome = yard.functions.invoke("cleanup", {}, [at_describe(yard)])
    assert outcome.value == {"ended": 1, "missing": 0, "sent": 0}


def test_an_execution_of_which_step_functions_knows_nothing_any_more_is_kept_and_told(yard: Yard) -> None:
    abort_unheard(yard)
    outcome = yard.functions.invoke("cleanup", {}, [at_describe(yard, forgets=True)])
    assert outcome.error == "EndsUnknown"
    assert JOB.id in outcome.cause
    assert yard.aws.queue.messages == {}


def test_a_request_that_was_refused_needs_no_report(yard: Yard) -> None:
    lose_events(yard)
    yard.execution = yard.aws.states.executions.begin("refused")
    yard.end("FAILED", "InvalidRequest", "code: is missing")
    yard.aws.clock.run(AFTER_S + 60)
    assert tick(yard).value == {"ended": 1, "missing": 0, "sent": 0}


def test_the_refused_execution_of_an_old_name_gets_no_report(yard: Yard) -> None:
    old = replace(yard.job, admitted_at=yard.job.admitted_at - 91 * 86_400)
    store(yard.aws, items.job(JOB.id), encode(old))
    lose_events(yard)
    yard.end("FAILED", "InvalidRequest", "name: it was taken")
    yard.aws.clock.run(AFTER_S + 60)
    assert tick(yard).value["sent"] == 0


@pytest.mark.parametrize("name", ["..", ".job", "a b", "jöb"])
def test_a_name_that_no_job_has_is_not_looked_up(yard: Yard, name: str) -> None:
    lose_events(yard)
    yard.execution = yard.aws.states.executions.begin(name)
    yard.end("FAILED")
    yard.aws.clock.run(AFTER_S + 60)
    assert tick(yard).value == NOTHING
    assert [call.name for call in yard.aws.calls if call.service == "s3"] == []


def test_the_ends_of_grids_are_not_its_own(yard: Yard) -> None:
    lose_events(yard)
    yard.execution = yard.aws.states.executions.begin(JOB.id, GRID_MACHINE)
    yard.end("ABORTED")
    yard.aws.clock.run(AFTER_S + 60)
    assert tick(yard).value == NOTHING


def test_without_the_machine_there_is_nothing_to_do(yard: Yard) -> None:
    """As during a destroy."""
    abort_unheard(yard)
    yard.aws.states.executions.machines.discard(MACHINE)
    assert tick(yard).value == NOTHING


@pytest.mark.parametrize("kind", [Kind.THROTTLED, Kind.DENIED, Kind.UNREACHABLE])
def test_a_list_that_fails_is_told_and_keeps_no_other_end_from_its_report(yard: Yard, kind: Kind) -> None:
    lose_events(yard)
    yard.train()
    yard.end("FAILED")
    yard.aws.clock.run(AFTER_S + 60)
    yard.aws.faults.add(kind, "stepfunctions:ListExecutions", times=1 if kind is Kind.DENIED else 8)
    outcome = tick(yard)
    assert outcome.error == "EndsUnknown"
    assert "executions that are ABORTED" in outcome.cause
    yard.aws.clock.run(60)
    assert yard.reported


@pytest.mark.parametrize(
    "call", ["stepfunctions:DescribeExecution", "s3:GetObject", "dynamodb:GetItem", "dynamodb:Query"]
)
def test_without_a_right_to_see_an_end_it_is_told_and_nothing_is_done(yard: Yard, call: str) -> None:
    abort_unheard(yard)
    yard.aws.faults.add(Kind.DENIED, call)
    outcome = tick(yard)
    assert outcome.error == "EndsUnknown"
    assert JOB.id in outcome.cause
    assert yard.aws.queue.messages == {}


def test_a_message_that_cannot_be_sent_is_told_and_the_next_tick_sends_it(yard: Yard) -> None:
    abort_unheard(yard)
    yard.aws.faults.add(Kind.DENIED, "sqs:SendMessage")
    assert tick(yard).error == "EndsUnknown"
    assert tick(yard).value["sent"] == 1


def test_a_job_whose_document_cannot_be_read_is_told_and_kept(yard: Yard) -> None:
    abort_unheard(yard)
    store(yard.aws, items.job(JOB.id), b"not a job")
    assert tick(yard).error == "EndsUnknown"
    assert yard.aws.queue.messages == {}


def test_a_report_that_no_person_can_read_is_written_again(yard: Yard) -> None:
    abort_unheard(yard)
    yard.aws.s3.write(JOB.home_bucket, PREFIX.result, b"not JSON")
    assert tick(yard).value["sent"] == 1
    yard.aws.clock.run(60)
    assert yard.report()["error"] == "Aborted"


def test_a_tick_without_time_left_says_so_and_leaves_the_rest_to_the_next(yard: Yard) -> None:
    abort_unheard(yard)
    slow = Mishap("stepfunctions:ListExecutions", meanwhile=lambda: yard.aws.clock.spend(105))
    outcome = yard.functions.invoke("cleanup", {}, [slow])
    assert outcome.error == "EndsUnknown"
    assert "the time of this tick was over" in outcome.cause
    assert tick(yard).value["sent"] == 1


def test_many_ends_without_a_report_have_theirs_over_several_ticks_the_newest_first(yard: Yard) -> None:
    """All events were lost for a while. No tick asks for more than the queue's function works through until the next one."""
    lose_events(yard)
    executions = yard.aws.states.executions
    executions.pages = Pages(size=100, error="InvalidToken")
    for number in range(450):
        name = f"job-{number + 1000}"
        one = executions.begin(name)
        job = replace(yard.job, id=name, execution=one.arn, admitted_at=yard.aws.clock.now)
        store(yard.aws, items.job(name), encode(job))
        executions.end(one, "ABORTED")
        yard.aws.clock.run(1)
    yard.aws.clock.run(AFTER_S)
    yard.aws.queue.feed(lambda _: None)
    assert tick(yard).value == {"ended": 450, "missing": 450, "sent": 200}
    asked = [json.loads(one.body)["detail"]["executionArn"] for one in yard.aws.queue.messages.values()]
    assert asked == [f"{JOB.execution.rpartition(':')[0]}:job-{number + 1000}" for number in range(449, 249, -1)]


def test_the_message_of_the_clock_reads_as_an_event_without_a_second_look() -> None:
    notice = read(write_unheard(MACHINE, JOB.execution), names.machine(JOB.deployment))
    assert notice is not None
    assert (notice.execution, notice.second) == (JOB.execution, True)
