"""The cleanup after an execution's end, on the fake: the event once, twice, late, never, and whatever AWS has in store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from cleanup.policy import Unreadable, read
from contract import keys, tags
from contract.codec import encode
from contract.errors import StillRunning
from contract.jobs import Job
from tests.builders import JOB
from tests.fakes.aws import Aws
from tests.fakes.ec2_machine import Machine
from tests.fakes.executions import MACHINE, Execution
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.functions import Functions, Outcome
from tests.fakes.yard import admitted, deployed, home

AGAIN_S = JOB.timing.cleanup_again_s
PROVEN_S = 30.0
"""EC2 shows what was told to end as running for a moment, so that the second try, 15 s later, proves the end."""
PREFIX = keys.JobPrefix(JOB.id)


@dataclass
class Yard:
    """A deployment with one job whose execution runs, and the cleanup behind its rule and queue."""

    aws: Aws
    functions: Functions
    job: Job
    execution: Execution

    def launch(self, *mishaps: Mishap, attempt: int = 1) -> Outcome:
        return self.functions.invoke("launcher", {"job": self.job.id, "attempt": attempt}, mishaps)

    def terminate(self, attempt: int = 1, problem: dict[str, str] | None = None) -> Outcome:
        return self.functions.invoke("terminator", {"job": self.job.id, "attempt": attempt, "problem": problem})

    def train(self, attempt: int = 1) -> None:
        """The attempt was launched a while ago."""
        assert self.launch(attempt=attempt).error == ""
        self.aws.clock.run(60)

    def end(self, status: str = "ABORTED", error: str | None = None, cause: str | None = None) -> None:
        self.aws.states.executions.end(self.execution, status, error, cause)

    def abort(self) -> None:
        self.end("ABORTED", cause="ada pressed Stop")

    def event(self) -> str:
        detail = self.aws.states.executions.detail(self.execution)
        return json.dumps(self.aws.events.event("aws.states", "Step Functions Execution Status Change", detail))

    def cleanups(self) -> list[float]:
        """When the cleanup ran, in seconds since the execution's end."""
        ended = self.execution.ended_at or 0.0
        return [at - ended for at, name, _ in self.functions.log if name == "cleanup"]

    def running(self) -> list[Machine]:
        return [one for ec2 in self.aws.ec2.values() for one in ec2.running()]

    def report(self) -> dict[str, Any] | None:
        body = self.aws.s3.read(self.job.home_bucket, PREFIX.result)
        return None if body is None else json.loads(body)

    def closed(self) -> set[int]:
        there = self.aws.s3.buckets[self.job.home_bucket].live()
        return {number for number in range(1, 9) if PREFIX.closed(number) in there}

    def quiet(self) -> bool:
        return not self.aws.queue.messages and not self.aws.queue.dead


@pytest.fixture
def yard() -> Iterator[Yard]:
    aws = deployed()
    made = Yard(aws, Functions(aws), admitted(aws), aws.states.executions.begin(JOB.id))
    made.functions.clean_up()
    with made.functions.installed():
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
    assert report is not None
    assert (report["error"], report["cause"], report["attempts"]) == ("Aborted", "ada pressed Stop", 1)
    assert len(report["launches"][0]["instances"]) == 2


@pytest.mark.parametrize(
    ("status", "error", "cause"),
    [
        ("ABORTED", "Aborted", "The execution was stopped, and whoever stopped it gave no reason."),
        ("TIMED_OUT", "TimedOut", "The execution ran longer than its machine allows."),
        ("FAILED", "Failed", "The execution failed, and Step Functions gives no reason."),
    ],
)
def test_an_end_without_a_reason_has_one_in_words(yard: Yard, status: str, error: str, cause: str) -> None:
    yard.train()
    yard.end(status)
    yard.aws.clock.run(PROVEN_S)
    report = yard.report()
    assert report is not None
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
    report = yard.report()
    assert report is not None
    assert report["attempts"] == 1


def test_the_report_of_an_attempt_before_is_not_the_report_of_the_abort(yard: Yard) -> None:
    yard.train()
    yard.terminate(problem={"error": "NodeLost", "cause": "rank 1"})
    yard.aws.clock.run(200)
    yard.terminate(problem={"error": "NodeLost", "cause": "rank 1"})
    yard.train(attempt=2)
    yard.abort()
    yard.aws.clock.run(PROVEN_S)
    report = yard.report()
    assert report is not None
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
    assert yard.report() is None
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
    assert yard.report() is None
    assert yard.quiet()


def test_an_execution_that_never_got_past_admit_needs_nothing(yard: Yard) -> None:
    yard.execution = yard.aws.states.executions.begin("refused")
    yard.end("FAILED", "InvalidRequest", "code: is missing")
    yard.aws.clock.run(500)
    assert yard.quiet()
    assert [call.name for call in yard.aws.calls if call.service == "ec2" or call.operation == "PutObject"] == []


def test_an_execution_whose_name_is_another_executions_job_ends_nothing_of_it(yard: Yard) -> None:
    yard.train()
    other = replace(yard.job, execution=f"{JOB.execution}-another")
    yard.aws.s3.write(JOB.home_bucket, PREFIX.description, encode(other))
    yard.end("FAILED", "InvalidRequest", "name: taken")
    yard.aws.clock.run(500)
    assert len(yard.running()) == 2
    assert yard.quiet()


def test_an_execution_that_step_functions_forgot_is_over(yard: Yard) -> None:
    yard.train()
    body = yard.event()
    del yard.aws.states.executions.known[yard.execution.arn]
    yard.aws.queue.put(body)
    yard.aws.clock.run(5)
    assert yard.running() == []


def test_a_launcher_in_the_middle_of_its_walk_is_waited_for(yard: Yard) -> None:
    """Aborted while the launcher is at its call: the first cleanup meets a held walk, a later one what was launched."""

    def aborted() -> None:
        yard.abort()
        yard.aws.clock.spend(10)

    assert yard.launch(Mishap("ec2:RunInstances", meanwhile=aborted)).error == ""
    assert len(yard.running()) == 2
    yard.aws.clock.run(20)
    assert yard.running() == []
    yard.aws.clock.run(600)
    assert yard.running() == []
    assert yard.quiet()


def test_a_launcher_that_begins_after_the_abort_launches_nothing(yard: Yard) -> None:
    yard.abort()
    yard.aws.clock.run(5)
    assert yard.launch().error == "NodeLost"
    assert home(yard.aws).machines == {}


def test_a_launcher_that_is_about_to_begin_the_next_attempt_launches_nothing(yard: Yard) -> None:
    yard.train()
    yard.abort()
    yard.aws.clock.run(5)
    assert yard.launch(attempt=2).error == "NodeLost"
    assert yard.running() == []


def test_a_launcher_that_was_killed_at_its_call_is_waited_for_until_its_time_would_be_over(yard: Yard) -> None:
    home(yard.aws).invisible_s = 4.0
    yard.launch(Mishap("ec2:RunInstances", death=Death.AFTER))
    yard.abort()
    yard.aws.clock.run(700)
    assert yard.running() == []
    assert yard.quiet()
    assert max(yard.cleanups()) > 300


def test_a_redrive_after_the_cleanup_finds_its_attempts_closed_and_goes_on_with_a_new_one(yard: Yard) -> None:
    """What Launch answers is what starts a new attempt, in words that a person understands."""
    yard.train()
    yard.abort()
    yard.aws.clock.run(200)
    yard.aws.states.executions.redrive(yard.execution)
    for attempt in (1, 2):
        answer = yard.launch(attempt=attempt)
        assert answer.error == "NodeLost"
        assert answer.cause == f"attempt {attempt} was terminated; nothing is launched for it any more"
        assert yard.terminate(attempt).error == ""
    assert yard.launch(attempt=3).error == ""
    yard.aws.clock.run(300)
    assert {one.tags[tags.ATTEMPT] for one in yard.running()} == {"3"}


def test_a_second_look_after_a_redrive_ends_nothing_of_it(yard: Yard) -> None:
    yard.train()
    yard.abort()
    yard.aws.clock.run(5)
    yard.aws.states.executions.redrive(yard.execution)
    yard.launch(attempt=3)
    yard.aws.clock.run(200)
    assert len(yard.running()) == 2
    assert len(yard.cleanups()) == 2


def test_repeated_cleanups_do_not_close_one_attempt_after_the_other(yard: Yard) -> None:
    yard.train()
    yard.abort()
    for _ in range(5):
        yard.aws.queue.put(yard.event())
        yard.aws.clock.run(100)
    assert yard.closed() == {1, 2}


@pytest.mark.parametrize("kind", [Kind.UNREACHABLE, Kind.THROTTLED, Kind.DENIED, Kind.ERROR])
@pytest.mark.parametrize(
    "call",
    [
        "ec2:DescribeInstances",
        "ec2:TerminateInstances",
        "s3:ListObjectsV2",
        "s3:PutObject",
        "s3:GetObject",
        "stepfunctions:DescribeExecution",
        "sqs:SendMessage",
    ],
)
def test_a_cleanup_that_aws_does_not_answer_comes_back_until_it_does(yard: Yard, kind: Kind, call: str) -> None:
    yard.train()
    yard.aws.faults.add(kind, call, times=20)
    yard.abort()
    yard.aws.clock.run(1800)
    assert yard.running() == []
    assert yard.report() is not None
    assert yard.quiet()
    assert len(yard.cleanups()) >= 3


def test_a_second_message_that_cannot_be_sent_makes_the_first_come_back(yard: Yard) -> None:
    home(yard.aws).lag_s = 0.0
    yard.train()
    yard.aws.faults.add(Kind.DENIED, "sqs:SendMessage")
    yard.abort()
    yard.aws.clock.run(5)
    assert yard.running() == []
    yard.aws.clock.run(500)
    first, again, second = yard.cleanups()
    assert again - first == pytest.approx(JOB.timing.terminate_again_s, abs=2)
    assert second - again == pytest.approx(AGAIN_S, abs=2)


def test_a_cleanup_that_was_killed_comes_back_when_the_queue_says_so(yard: Yard) -> None:
    yard.train()
    yard.abort()
    yard.aws.queue.feed(lambda event: yard.functions.invoke("cleanup", event, [once.pop()] if once else []).value)
    once = [Mishap("ec2:TerminateInstances", death=Death.BEFORE)]
    yard.aws.clock.run(5)
    assert len(yard.running()) == 2
    yard.aws.clock.run(yard.aws.queue.visibility_s + 100)
    assert yard.running() == []
    assert yard.quiet()


def test_a_visibility_that_cannot_be_changed_only_makes_it_slow(yard: Yard) -> None:
    yard.train()
    yard.aws.faults.add(Kind.DENIED, "ec2:DescribeInstances", times=2)
    yard.aws.faults.add(Kind.DENIED, "sqs:ChangeMessageVisibility")
    yard.abort()
    yard.aws.clock.run(yard.aws.queue.visibility_s - 10)
    assert len(yard.running()) == 2
    yard.aws.clock.run(200)
    assert yard.running() == []


def test_a_region_of_other_jobs_that_cannot_be_asked_keeps_no_job_from_its_end(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed_to_the_account = "af-south-1"
    monkeypatch.setenv("TRAINYARD_REGIONS", json.dumps([closed_to_the_account, *yard.job.places]))
    yard.train()
    yard.abort()
    yard.aws.clock.run(100)
    assert yard.running() == []
    assert yard.report() is not None
    assert yard.quiet()


def test_a_job_that_cannot_be_ended_lands_in_the_dead_letter_queue(yard: Yard) -> None:
    yard.train()
    for one in yard.running():
        one.stuck = True
    yard.abort()
    yard.aws.clock.run(3600)
    assert len(yard.aws.queue.dead) == 1


def test_a_protected_instance_is_kept_and_told_and_the_others_end(yard: Yard) -> None:
    yard.train()
    kept, _ = yard.running()
    kept.tags[tags.PROTECTED] = "the debugger is attached"
    yard.abort()
    yard.aws.clock.run(3600)
    assert yard.running() == [kept]
    assert yard.quiet()
    report = yard.report()
    assert report is not None
    assert report["protected"] == [{"instance": kept.id, "region": "eu-central-1"}]


def test_instances_that_lost_their_tags_are_ended_by_remembered_ids(yard: Yard) -> None:
    yard.train()
    for one in yard.running():
        one.tags.clear()
    yard.abort()
    yard.aws.clock.run(5)
    assert yard.running() == []


def test_another_jobs_instances_stay(yard: Yard) -> None:
    yard.train()
    other = replace(yard.job, id="job-2", execution=JOB.execution.replace("job-1", "job-2"))
    admitted(yard.aws, other)
    yard.functions.invoke("launcher", {"job": "job-2", "attempt": 1})
    yard.abort()
    yard.aws.clock.run(500)
    assert {one.tags[tags.JOB] for one in yard.running()} == {"job-2"}


GOOD = {"executionArn": JOB.execution, "stateMachineArn": MACHINE, "status": "ABORTED"}
ELSEWHERE = MACHINE.replace("yard-train", "another")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "not JSON",
        "[]",
        "null",
        "{}",
        json.dumps({"detail": None}),
        json.dumps({"detail": []}),
        json.dumps({"detail": GOOD | {"stateMachineArn": None}}),
        json.dumps({"detail": GOOD | {"stateMachineArn": "yard-train"}}),
        json.dumps({"detail": GOOD | {"executionArn": 7}}),
        json.dumps({"detail": GOOD | {"executionArn": ""}}),
        json.dumps({"detail": GOOD | {"executionArn": MACHINE}}),
        json.dumps({"detail": GOOD | {"executionArn": JOB.execution.replace("yard-train", "yard-train-2")}}),
        json.dumps({"detail": GOOD | {"executionArn": JOB.execution.removesuffix("job-1")}}),
        json.dumps({"detail": GOOD | {"executionArn": JOB.execution.replace("job-1", "../job-1")}}),
    ],
)
def test_what_nobody_can_read_is_kept_and_ends_up_as_a_dead_letter(yard: Yard, body: str) -> None:
    with pytest.raises(Unreadable):
        read(body, JOB.deployment)
    yard.train()
    yard.aws.queue.put(body)
    yard.aws.clock.run(3600)
    assert [one.body for one in yard.aws.queue.dead] == [body]
    assert len(yard.running()) == 2


@pytest.mark.parametrize("machine", [ELSEWHERE, f"{MACHINE}-2", MACHINE.replace("yard", "YARD")])
def test_another_machines_event_is_dropped(yard: Yard, machine: str) -> None:
    execution = f"{machine.replace(':stateMachine:', ':execution:')}:{JOB.id}"
    body = json.dumps({"detail": GOOD | {"stateMachineArn": machine, "executionArn": execution}})
    assert read(body, JOB.deployment) is None
    yard.train()
    yard.aws.queue.put(body)
    yard.aws.clock.run(500)
    assert len(yard.running()) == 2
    assert yard.quiet()


@pytest.mark.parametrize("mark", ["yes", 1, None])
def test_only_its_own_mark_makes_a_message_the_second(mark: object) -> None:
    notice = read(json.dumps({"detail": GOOD, "second": mark}), JOB.deployment)
    assert notice is not None
    assert not notice.second
    again = read(notice.again(), JOB.deployment)
    assert again is not None
    assert again.second


def test_a_batch_names_only_what_failed(yard: Yard) -> None:
    home(yard.aws).lag_s = 0.0
    yard.train()
    yard.end()
    records = [
        {"messageId": name, "receiptHandle": name, "body": body}
        for name, body in (("bad", "not JSON"), ("good", yard.event()))
    ]
    outcome = yard.functions.invoke("cleanup", {"Records": records})
    assert outcome.value == {"batchItemFailures": [{"itemIdentifier": "bad"}]}
    assert yard.running() == []


def test_still_running_is_what_terminate_and_cleanup_both_say(yard: Yard) -> None:
    yard.train()
    yard.running()[0].stuck = True
    assert yard.terminate().error == StillRunning.__name__
