"""Trainings that stand still while their agents report, met by jobs that ran beside all others: what the request says follows."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from contract import errors, names
from localaws.testing.waiting import until
from rehearsal.yard import StartedJob
from tests.rehearsal.jobs import AGAIN, ended, failed, instances, left, path
from tests.rehearsal.mailbox import Mailbox

pytestmark = [pytest.mark.rehearsal, pytest.mark.turn("looks back")]
SENTENCE = "The training has made no progress for "


def log(job: StartedJob, attempt: int, rank: int) -> str:
    """What a node wrote to its log stream."""
    return "\n".join(job.log(names.log_stream(job.name, attempt, rank)))


@pytest.fixture(scope="module", autouse=True)
def messages(beside: dict[str, StartedJob], mailbox: Mailbox) -> Iterator[Mailbox]:
    """Stops the one job that nothing else ends."""
    job = beside["watched"]
    until(lambda: mailbox.about(job.name, "makes no progress"))
    yield mailbox
    if job.runs():
        job.yard.client("stepfunctions").stop_execution(executionArn=job.arn)


def test_a_training_that_hangs_is_dumped_and_restarted_from_its_checkpoint(beside: dict[str, StartedJob]) -> None:
    job, execution = beside["stuck"], ended(beside["stuck"])
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    assert (path(job), len(instances(job)), left(job)) == (AGAIN, 4, [])
    assert json.loads(execution["output"])["attempts"] == 2
    assert {one.restored_step for one in job.reports(2).values()} != {-1}
    failures = [event["taskFailedEventDetails"] for event in job.history() if "taskFailedEventDetails" in event]
    again = {error.__name__ for error in errors.NEW_ATTEMPT}
    (why,) = (one for one in failures if one["error"] in again)  # others are of functions, and of no attempt
    assert why["error"] == "Stalled"
    assert why["cause"].startswith(SENTENCE)


def test_every_node_of_it_wrote_where_its_trainer_stood(beside: dict[str, StartedJob]) -> None:
    """Rank 1 was stopped. Rank 0 waits for it in its step, or goes on as soon as rank 1 wakes to write its own."""
    ended(beside["stuck"])
    waits, stands = log(beside["stuck"], 1, 0), log(beside["stuck"], 1, 1)
    assert "; its stacks follow" in waits
    assert "train.py" in waits
    assert " in main" in waits
    assert " is stopped" in stands
    assert " in main" in stands
    assert "its stacks follow" not in log(beside["stuck"], 2, 0)


def test_a_job_that_asks_to_be_stopped_is_stalled_once_after_a_last_checkpoint(beside: dict[str, StartedJob]) -> None:
    job = beside["given-up"]
    assert failed(job, "Stalled").startswith(SENTENCE)
    ended(job)
    assert len(instances(job)) == 1
    assert job.reports(1)[0].checkpoint_step >= 15
    assert " in main" in log(job, 1, 0)


def test_a_job_that_asks_only_to_tell_is_told_of_once_and_trains_on(
    beside: dict[str, StartedJob], messages: Mailbox
) -> None:
    (mail,) = messages.about("watched", "makes no progress")
    assert SENTENCE in mail.text
    assert beside["watched"].runs()
    assert left(beside["watched"])


def test_nobody_is_mailed_about_the_others(messages: Mailbox) -> None:
    assert [one for name in ("stuck", "given-up") for one in messages.about(name, "makes no progress")] == []
