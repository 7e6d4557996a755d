"""What the local CloudWatch Logs takes of a batch, and how it says what it refuses."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws.log_batches import judge_batch
from localaws.model import Refused
from localaws.server import LocalAws
from localaws.testing.calm import CALM

NOW = 1_750_000_000.0
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


def batch(*ahead_s: float, message: str = "x") -> list[dict[str, Any]]:
    return [{"timestamp": int((NOW + one) * 1000), "message": message} for one in ahead_s]


def left(events: Sequence[Any]) -> list[float]:
    return [event["timestamp"] / 1000 - NOW for event in events]


def test_events_of_right_clocks_are_taken() -> None:
    times = [-14 * DAY + MINUTE, -13.5 * DAY]
    assert judge_batch(batch(*times), NOW) == (batch(*times), {})
    assert judge_batch(batch(0, 2 * HOUR), NOW) == (batch(0, 2 * HOUR), {})


def test_the_first_event_that_is_too_new_is_named_and_those_before_it_are_taken() -> None:
    taken, rejected = judge_batch(batch(0, HOUR, 2.5 * HOUR, 3 * HOUR), NOW)
    assert (left(taken), rejected) == ([0, HOUR], {"tooNewLogEventStartIndex": 2})


def test_the_end_of_those_that_are_too_old_is_named_and_those_after_it_are_taken() -> None:
    taken, rejected = judge_batch(batch(-20 * DAY, -15 * DAY, 0), NOW)
    assert (left(taken), rejected) == ([0], {"tooOldLogEventEndIndex": 2})


def test_events_before_the_retention_of_the_group_have_expired() -> None:
    taken, rejected = judge_batch(batch(-20 * DAY, -2 * DAY, 0), NOW, kept_days=1)
    assert (left(taken), rejected) == ([0], {"tooOldLogEventEndIndex": 1, "expiredLogEventEndIndex": 2})


def test_a_batch_of_which_every_event_is_refused_is_an_answer_and_no_error() -> None:
    assert judge_batch(batch(30 * HOUR, 31 * HOUR), NOW) == ([], {"tooNewLogEventStartIndex": 0})


@pytest.mark.parametrize(
    "events", [batch(1, 0), batch(-DAY, MINUTE), batch(0) * 10_001, batch(*range(5), message="x" * 262_000)]
)
def test_a_batch_that_breaks_a_limit_is_refused_as_a_whole(events: list[dict[str, Any]]) -> None:
    with pytest.raises(Refused, match="InvalidParameterException"):
        judge_batch(events, NOW)


@pytest.mark.rehearsal
def test_the_local_cloudwatch_refuses_events_of_wrong_clocks_in_an_answer_that_succeeds() -> None:
    with LocalAws(CALM) as aws:
        logs: Any = aws.client("logs", "eu-central-1")
        stream = {"logGroupName": "/g", "logStreamName": "s"}
        logs.create_log_group(logGroupName="/g")
        logs.put_retention_policy(logGroupName="/g", retentionInDays=7)
        logs.create_log_stream(**stream)
        now = time.time()
        times = [int((now + one) * 1000) for one in (-20 * DAY, -8 * DAY, 0, 3 * HOUR, 4 * HOUR)]
        answers = [
            logs.put_log_events(**stream, logEvents=[{"timestamp": at, "message": "x"} for at in some])
            for some in (times[:2], times[2:], times[2:3])
        ]
        assert [one.get("rejectedLogEventsInfo") for one in answers] == [
            {"tooOldLogEventEndIndex": 1, "expiredLogEventEndIndex": 2},
            {"tooNewLogEventStartIndex": 1},
            None,
        ]
        assert [one["timestamp"] for one in logs.get_log_events(**stream)["events"]] == [times[2]] * 2
        with pytest.raises(ClientError, match="InvalidParameterException"):
            logs.put_log_events(**stream, logEvents=batch(1, 0))
