"""What CloudWatch Logs takes of a call of PutLogEvents, and what it refuses: the whole call with an error, single events in its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from localaws.model import Refused

BATCH_BYTES, BATCH_EVENTS, EVENT_OVERHEAD = 1_048_576, 10_000, 26
DAY_S = 24 * 3600
TOO_OLD_S, TOO_NEW_S = 14 * DAY_S, 2 * 3600


def judge_batch(
    events: Sequence[Mapping[str, Any]], now: float, kept_days: int | None = None
) -> tuple[list[Mapping[str, Any]], dict[str, int]]:
    """Returns the events that are taken, and `rejectedLogEventsInfo`, empty where all are. `kept_days` is the log group's retention.

    Raises Refused where the whole call is.
    """
    times = [event["timestamp"] for event in events]
    size = sum(len(event["message"].encode()) + EVENT_OVERHEAD for event in events)
    if size > BATCH_BYTES or len(events) > BATCH_EVENTS:
        raise _invalid(f"Upload too large: {size} bytes exceeds limit of {BATCH_BYTES}")
    if times != sorted(times):
        raise _invalid("Log events in a single PutLogEvents request must be in chronological order.")
    old = _before(times, now - TOO_OLD_S)
    expired = _before(times, now - kept_days * DAY_S) if kept_days else 0
    new = _before(times, now + TOO_NEW_S, inclusive=True)
    taken = list(events[max(old, expired) : new])
    if taken and taken[-1]["timestamp"] - taken[0]["timestamp"] > DAY_S * 1000:
        raise _invalid("The batch of log events in a single PutLogEvents request cannot span more than 24 hours.")
    rejected = {"tooOldLogEventEndIndex": old} if old else {}
    if expired > old:
        rejected["expiredLogEventEndIndex"] = expired
    if new < len(events):
        rejected["tooNewLogEventStartIndex"] = new
    return taken, rejected


def _before(times: Sequence[int], moment: float, *, inclusive: bool = False) -> int:
    """How many of the times are before the moment, in seconds."""
    return sum(time <= moment * 1000 if inclusive else time < moment * 1000 for time in times)


def _invalid(message: str) -> Refused:
    return Refused("InvalidParameterException", message)
