"""Decides what a child does next, from what it knows of its line, its training and the time."""

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
"""Fargate may end a job after 14 days (Batch user guide, "Job timeouts"): a child exits by itself a day before."""


SAGEMAKER = "SageMaker"


class Known(str, Enum):
    """Whose training has the line's name in its region."""

    UNKNOWN = "unknown"
    """It is not known whether the last submission created one."""
    ABSENT = "absent"
    OURS = "ours"
    STRANGER = "a stranger's"


class SubmitAnswer(str, Enum):
    """How the submission was answered."""

    ACCEPTED = "accepted"
    IN_USE = "the name is taken"
    THROTTLED = "throttled"
    QUOTA = "the quota is used up"
    REFUSED = "refused"
    OPEN = "no answer"
    """The training may have been created or not."""


class Action(str, Enum):
    LOOK = "look"
    CREATE = "create"
    STOP = "stop"
    RECORD = "record"
    """Record how the training ended."""
    REFUSE = "refuse"
    """Record why there is no training and will be none."""
    LEAVE = "leave"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRules:
    """The limits of one child, which do not change while it runs. Times in seconds."""

    timing: ChildTiming
    earliest: float
    """When it may submit its training, UTC epoch seconds."""
    turn_s: float
    """How long all lines of the region take at the grid's pace: if each line repeats a call once in this time, the pace is kept."""
    leaves_at: float
    """When the child exits by itself, UTC epoch seconds."""
    watch_s: float
    """How often it looks at a training that runs."""
    service: str = SAGEMAKER
    """Who takes the submission, for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildFacts:
    """What a child knows."""

    known: Known
    status: str = ""
    """Status of our training, as contract.records has it."""
    holder: str = ""
    """The training that has the name, where it is a stranger's."""
    unwanted: str = ""
    """Why there must be no training (the grid is ending, or the line has its record); empty otherwise."""
    stopping: bool = False
    """The backend has accepted that it is to end."""
    answer: SubmitAnswer | None = None
    """The answer to the last submission."""
    said: str = ""
    """The answer's message."""
    tries: int = 0
    """How many submissions in a row got this answer."""
    since: float = 0.0
    """When the first submission was not accepted, UTC epoch seconds."""
    troubles: int = 0
    """How many reads or stops in a row failed."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do after a wait."""

    action: Action
    reason: str
    wait_s: float = 0.0
    exit: ExitCode = ExitCode.AGAIN
    """The exit code, for LEAVE."""


def decide(facts: ChildFacts, rules: ChildRules, now: float, chance: random.Random) -> Verdict:
    """Looks up whatever is not certain, and creates a training only where none has its name."""
    if now >= rules.leaves_at:
        return Verdict(Action.LEAVE, "its container soon reaches its longest age; the next attempt goes on watching")
    match facts.known:
        case Known.OURS:
            return _watch(facts, rules, chance)
        case Known.STRANGER:
            return Verdict(Action.REFUSE, f"the name of its training is taken by {facts.holder}")
        case Known.UNKNOWN:
            return Verdict(
                Action.LOOK, "the child does not know whether it was submitted", _again_s(facts.troubles, rules, chance)
            )
    return _submit(facts, rules, now, chance)


def _watch(facts: ChildFacts, rules: ChildRules, chance: random.Random) -> Verdict:
    if facts.status in ENDED_STATUSES:
        return Verdict(Action.RECORD, f"the training is {facts.status}")
    if facts.unwanted and not facts.stopping and facts.status != "Stopping":
        return Verdict(Action.STOP, facts.unwanted, _again_s(facts.troubles, rules, chance))
    every = rules.watch_s / (4.0 if facts.unwanted else 1.0)
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
            return Verdict(Action.REFUSE, f"{rules.service} refused the request: {facts.said}")
        case SubmitAnswer.QUOTA if not patient:
            return Verdict(Action.REFUSE, out_of_quota(rules.service, facts.said, patience))
        case SubmitAnswer.QUOTA:
            most = min(max(watch, rules.turn_s), 10 * watch)
            return Verdict(Action.CREATE, facts.said, watch / 4 + backoff_s(facts.tries, watch, most, chance))
    if not patient:
        return Verdict(
            Action.LEAVE,
            f"{rules.service} did not take the submission for {patience:.0f} s; the next attempt goes on: {facts.said}",
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
        "ExecutionLimitExceeded",
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
    """What an error of CreateTrainingJob or StartExecution means; status 0 where there was no answer."""
    if code in THROTTLES or status == 429:
        return SubmitAnswer.THROTTLED
    if code == "ResourceLimitExceeded":
        return SubmitAnswer.QUOTA
    if code in {"ResourceInUse", "ExecutionAlreadyExists"}:
        return SubmitAnswer.IN_USE
    if code in PASSING or not 400 <= status < 500:
        return SubmitAnswer.OPEN
    return SubmitAnswer.REFUSED


def out_of_quota(service: str, said: str, patience_s: float) -> str:
    """A record's reason: which quota to raise, in the words in which Service Quotas lists it; of a cluster, which setting."""
    if service != SAGEMAKER:
        return (
            f"For {patience_s / 3600:.1f} hours {service} had no room for the line: raise kubernetes.max_nodes in cdk.json, and start the "
            f"line again. {said}"
        )
    quota = re.search(r"'([^']+)'", said)
    which = f"'{quota[1]}'" if quota else "of its machine type for training jobs"
    return (
        f"The account's quota was used up for {patience_s / 3600:.1f} hours: ask for a higher quota {which} under Amazon SageMaker "
        f"in Service Quotas of this region, and start the line again. SageMaker: {said}"
    )


def is_ours(found: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether a training's tags are those of this very line: the deployment's, the grid's, the line's and the execution's."""
    return all(found.get(key) == value for key, value in wanted.items())
