"""Decides what an uploaded object starts, and what people are told of a start: facts in, a verdict with its reason out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from aws.facts import GONE, Status
from aws.pinned import Pinned
from contract.campaigns import (
    KEY_PATTERN,
    KEY_WORDS,
    Campaign,
    Started,
    Starts,
    fill_in,
    folder_of,
    name_start,
    read_starter,
)
from contract.errors import GridFailed, InvalidRequest, JobError, PatienceOver, SearchFailed
from messages.checks import CHECK, Check
from messages.policy import UnreadableMessage
from refusals.wording import plain

MOST_CHECKS = 120
"""Thirty hours of them: a build may wait for its git host for a day, and then for its turn and its end."""
TOLD_BY_ITSELF = frozenset(one.__name__ for one in (*JobError.__subclasses__(), GridFailed, SearchFailed)) - {
    InvalidRequest.__name__,
    PatienceOver.__name__,
}
"""Errors with which something ends that began. Admit's and Plan's patience may be over before."""
BADLY = frozenset({"FAILED", "TIMED_OUT"})
"""Ends that people are told. One that was aborted, a person aborted."""


class StartRefused(Exception):
    """Nothing will start, however often it is tried; the message says why and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded:
    """An object that S3 says was written; it may have changed since, or be gone."""

    bucket: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """An execution to start."""

    what: Started
    name: str
    given: dict[str, Any]


def read_message(body: str) -> Uploaded | Check:
    """Reads an event of S3, or a question about an execution. Raises UnreadableMessage."""
    try:
        message = json.loads(body)
        if CHECK in message:
            return Check(execution=str(message[CHECK]["execution"]), number=int(message[CHECK]["number"]))
        return Uploaded(bucket=str(message["detail"]["bucket"]["name"]), key=str(message["detail"]["object"]["key"]))
    except (ValueError, TypeError, KeyError, RecursionError) as problem:
        raise UnreadableMessage(f"the message names no object and no execution: {problem!r}") from None


def find_campaigns(uploaded: Uploaded, starts: Starts) -> dict[str, Campaign]:
    """Returns the campaigns that the object starts, by name."""
    return {name: one for name, one in starts.campaigns.items() if one.covers(uploaded.bucket, uploaded.key)}


def choose_start(name: str, campaign: Campaign, uploaded: Uploaded, found: Pinned | None) -> Start:
    """Returns what the newest version of the object starts: an event that is late, double or out of order says the same as any other.
    Raises StartRefused. `found` is the object now, None where there is none."""
    where = f"s3://{uploaded.bucket}/{plain(uploaded.key, 1024)}"
    if found is None:
        raise StartRefused(
            f"campaign {name}: {where} is gone again, so nothing was started; allowed: an object that stays, or a new upload of it"
        )
    if not KEY_PATTERN.fullmatch(uploaded.key):
        raise StartRefused(
            f"campaign {name}: the key of {where} has other characters than may stand in an input; allowed: {KEY_WORDS}"
        )
    # Without versions, when it was written and what it is: an upload of the same bytes is a new one.
    version = found.version or f"{found.modified:.0f} {found.etag}"
    given = fill_in(campaign.given, folder_of(uploaded.bucket, uploaded.key))
    return Start(
        what=Started.of_input(given), name=name_start(name, uploaded.bucket, uploaded.key, version), given=given
    )


def word_end(execution: str, status: Status, starts: Starts) -> str | None:
    """Returns what people are told of an execution that was started by itself; None where there is nothing to tell, or not yet.

    Grids, searches and jobs that began tell of their ends themselves, with one of TOLD_BY_ITSELF: here it is those that were refused, or
    that ended before they began anything. Builds tell nothing themselves."""
    name = execution.rpartition(":")[2]
    starter = read_starter(name)
    if status.name not in BADLY:
        return None
    if starter in starts.watches:
        return f"watch {starter}: build {name} ended with {status.error or status.name}.\n\n{status.cause}"
    if status.error in TOLD_BY_ITSELF:
        return None
    if status.error == InvalidRequest.__name__:
        return f"campaign {starter}: {name} was refused.\n\n{status.cause}"
    return (
        f"campaign {starter}: {name} ended with {status.error or status.name}, perhaps before it began anything. A new upload of the "
        f"object starts it again.\n\n{status.cause}"
    )


def is_watched(execution: str, starts: Starts) -> bool:
    """Whether the settings still have the campaign or the watch that gave the execution its name. No other may be seen."""
    return read_starter(execution.rpartition(":")[2]) in {*starts.campaigns, *starts.watches}


def goes_on(status: Status) -> bool:
    """Whether the execution may still be refused. One that there is not was never started: a later event or tick does that."""
    return status.runs and status.name != GONE
