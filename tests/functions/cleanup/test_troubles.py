"""The cleanup while a launcher walks, while AWS does not answer, and on messages that nobody can read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from contract import names, tags
from contract.errors import StillRunning
from messages.policy import UnreadableMessage, read
from tests.builders import JOB
from tests.fakes.executions import MACHINE
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.yard import admitted, home
from tests.functions.cleanup.cleaning import AGAIN_S, Yard, cleaning


@pytest.fixture
def yard() -> Iterator[Yard]:
    with cleaning() as made:
        yield made


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
        assert answer.cause == f"attempt {attempt} was terminated; nothing more is launched for it"
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
        "dynamodb:Query",
        "dynamodb:PutItem",
        "dynamodb:GetItem",
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
    assert yard.reported
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
    assert yard.reported
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
    assert yard.report()["protected"] == [{"instance": kept.id, "region": "eu-central-1"}]


def test_a_strangers_instance_that_somebody_gave_our_tags_is_kept_and_told(yard: Yard) -> None:
    yard.train()
    ours = yard.running()[0]
    stranger = home(yard.aws).put(ours.tags, launched_at=yard.aws.clock.now - 3600)
    yard.abort()
    yard.aws.clock.run(3600)
    assert yard.running() == [stranger]
    assert yard.quiet()
    assert yard.report()["without_our_profile"] == [{"instance": stranger.id, "region": "eu-central-1"}]


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
    with pytest.raises(UnreadableMessage):
        read(body, names.machine(JOB.deployment))
    yard.train()
    yard.aws.queue.put(body)
    yard.aws.clock.run(3600)
    assert [one.body for one in yard.aws.queue.dead] == [body]
    assert len(yard.running()) == 2


@pytest.mark.parametrize("machine", [ELSEWHERE, f"{MACHINE}-2", MACHINE.replace("yard", "YARD")])
def test_another_machines_event_is_dropped(yard: Yard, machine: str) -> None:
    execution = f"{machine.replace(':stateMachine:', ':execution:')}:{JOB.id}"
    body = json.dumps({"detail": GOOD | {"stateMachineArn": machine, "executionArn": execution}})
    assert read(body, names.machine(JOB.deployment)) is None
    yard.train()
    yard.aws.queue.put(body)
    yard.aws.clock.run(500)
    assert len(yard.running()) == 2
    assert yard.quiet()


@pytest.mark.parametrize("mark", ["yes", 1, None])
def test_only_its_own_mark_makes_a_message_the_second(mark: object) -> None:
    notice = read(json.dumps({"detail": GOOD, "second": mark}), names.machine(JOB.deployment))
    assert notice is not None
    assert not notice.second
    again = read(notice.again(), names.machine(JOB.deployment))
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
