"""Decides what a child does next: pure, from what it knows of its line, its training and the time."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from contract.grid import ENDED_STATUSES, ExitCode
from contract.timings import ChildTiming
from grid_child.pace import backoff_s, jittered

LONGEST_S = 13 * 86_400.0
"""Fargate may end a job after 14 days (Batch user guide, "Job timeouts"): a child goes by itself a day before."""


class Known(str, Enum):
    """What stands under the training's name in its region."""

    UNKNOWN = "unknown"
    """Nobody has looked since a submission of which the outcome is open."""
    ABSENT = "absent"
    OURS = "ours"
    STRANGER = "a stranger's"


class SubmitAnswer(str, Enum):
    """What CreateTrainingJob said."""

    ACCEPTED = "accepted"
    IN_USE = "the name is taken"
    THROTTLED = "throttled"
    QUOTA = "the quota is used up"
    REFUSED = "refused"
    OPEN = "no answer"
    """It may have been done, and it may not."""


class Action(str, Enum):
    LOOK = "look"
    CREATE = "create"
    STOP = "stop"
    RECORD = "record"
    """The training has ended: write down how."""
    REFUSE = "refuse"
    """There is no training and will be none: write down why."""
    LEAVE = "leave"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRules:
    """What does not change while a child runs. Seconds."""

    timing: ChildTiming
    earliest: float
    """Of the submission, UTC epoch seconds."""
    turn_s: float
    """How long all lines of the region take at the grid's pace: what everybody repeats within it keeps the pace."""
    leaves_at: float
    """When the child goes by itself, UTC epoch seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildFacts:
    """What a child knows."""

    known: Known
    status: str = ""
    """TrainingJobStatus of a training of ours."""
    holder: str = ""
    """Whose the name is, where it is a stranger's."""
    unwanted: str = ""
    """Why there is to be no training (the grid is to end, the line has its record); empty while there is to be one."""
    stopping: bool = False
    """StopTrainingJob was taken."""
    answer: SubmitAnswer | None = None
    """The last one to a submission."""
    said: str = ""
    """Its words."""
    tries: int = 0
    """Such answers in a row."""
    since: float = 0.0
    """The first answer that was none of ACCEPTED, UTC epoch seconds."""
    troubles: int = 0
    """Looks or stops in a row that failed."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Wait, then act."""

    action: Action
    reason: str
    wait_s: float = 0.0
    exit: ExitCode = ExitCode.AGAIN
    """Of LEAVE."""


def decide(facts: ChildFacts, rules: ChildRules, now: float, chance: random.Random) -> Verdict:
    """Whatever is not certain is looked up; a name is created again only where nothing stands under it."""
    if now >= rules.leaves_at:
        return Verdict(Action.LEAVE, "its container would soon be ended for its age; the next attempt watches on")
    match facts.known:
        case Known.OURS:
            return _watch(facts, rules, chance)
        case Known.STRANGER:
            return Verdict(Action.REFUSE, f"the name of its training is taken by {facts.holder}")
        case Known.UNKNOWN:
            return Verdict(
                Action.LOOK, "whether it was submitted is not known", _again_s(facts.troubles, rules, chance)
            )
    return _submit(facts, rules, now, chance)


def _watch(facts: ChildFacts, rules: ChildRules, chance: random.Random) -> Verdict:
    if facts.status in ENDED_STATUSES:
        return Verdict(Action.RECORD, f"the training is {facts.status}")
    if facts.unwanted and not facts.stopping and facts.status != "Stopping":
        return Verdict(Action.STOP, facts.unwanted, _again_s(facts.troubles, rules, chance))
    every = rules.timing.training_watch_s / (4.0 if facts.unwanted else 1.0)
    return Verdict(Action.LOOK, f"the training is {facts.status}", jittered(every, chance))


def _submit(facts: ChildFacts, rules: ChildRules, now: float, chance: random.Random) -> Verdict:
    patience, watch = rules.timing.training_patience_s, rules.timing.training_watch_s
    patient = not facts.since or now - facts.since < patience
    if facts.unwanted:
        return Verdict(Action.LEAVE, facts.unwanted, exit=ExitCode.FINAL)
    match facts.answer:
        case None:
            return Verdict(Action.CREATE, "its turn", max(0.0, rules.earliest - now))
        case SubmitAnswer.REFUSED:
            return Verdict(Action.REFUSE, f"SageMaker refused the request: {facts.said}")
        case SubmitAnswer.QUOTA if not patient:
            return Verdict(Action.REFUSE, out_of_quota(facts.said, patience))
        case SubmitAnswer.QUOTA:
            most = min(max(watch, rules.turn_s), 10 * watch)
            return Verdict(Action.CREATE, facts.said, watch / 4 + backoff_s(facts.tries, watch, most, chance))
    if not patient:
        return Verdict(
            Action.LEAVE, f"nobody took the submission for {patience:.0f} s; the next attempt goes on: {facts.said}"
        )
    most = min(max(watch / 2, rules.turn_s), 5 * watch)
    return Verdict(Action.CREATE, facts.said, backoff_s(facts.tries, watch / 30, most, chance))


def _again_s(troubles: int, rules: ChildRules, chance: random.Random) -> float:
    watch = rules.timing.training_watch_s
    return backoff_s(troubles, watch / 30, watch, chance) if troubles else 0.0


THROTTLES = frozenset(
    {
        "ThrottlingException",
        "Throttling",
        "ThrottledException",
        "TooManyRequestsException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "BandwidthLimitExceeded",
    }
)
PASSING = frozenset(
    {
        "ConflictException",
        "ExpiredToken",
        "ExpiredTokenException",
        "InternalFailure",
        "InternalError",
        "InternalServerError",
        "RequestExpired",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
    }
)
"""Errors that say nothing of the request: the child's own credentials are renewed, the service recovers."""


def answered(code: str, status: int) -> SubmitAnswer:
    """What an error of CreateTrainingJob means; status 0 where nobody answered."""
    if code in THROTTLES or status == 429:
        return SubmitAnswer.THROTTLED
    if code == "ResourceLimitExceeded":
        return SubmitAnswer.QUOTA
    if code == "ResourceInUse":
        return SubmitAnswer.IN_USE
    if code in PASSING or not 400 <= status < 500:
        return SubmitAnswer.OPEN
    return SubmitAnswer.REFUSED


def out_of_quota(said: str, patience_s: float) -> str:
    """A record's reason: which quota to raise, in the words in which Service Quotas lists it."""
    quota = re.search(r"'([^']+)'", said)
    which = f"'{quota[1]}'" if quota else "of its machine type for training jobs"
    return (
        f"The account's quota was used up for {patience_s / 3600:.1f} hours: ask for a higher quota {which} under Amazon SageMaker "
        f"in Service Quotas of this region, and start the line again. SageMaker: {said}"
    )


def is_ours(found: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether a training's tags are those of this very line: the deployment's, the grid's, the line's and the execution's."""
    return all(found.get(key) == value for key, value in wanted.items())
