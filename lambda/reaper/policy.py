"""Decides what may end: facts, owner and time in, a verdict with its reason out. What is unknown is kept, and a person is asked to check
it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from aws.facts import Belonging, Sort
from contract.environments import ReaperEnvironment
from ending.policy import is_alive

TIMED_BY_AWS = frozenset({Sort.TRAINING, Sort.JOB, Sort.LINE, Sort.ROUND, Sort.MPI_JOB})
"""Sorts that have no deadline tag: SageMaker itself limits each training's time, a Batch job ends with its children, and the job of a line
has a deadline of its own, as the trainings of a round and an MPIJob have."""
REDRIVE_S = 14 * 86_400.0
"""An execution can be redriven for 14 days and launches with its old deadline; a deadline older than that is not believed."""


class Action(str, Enum):
    """What the reaper does with a thing."""

    KEEP = "keep"
    MARK = "mark"
    """Remember it as suspicious: a later look may end it."""
    TERMINATE = "terminate"


class Rule(str, Enum):
    """The rule behind a verdict, as logs and marks name it."""

    ENDING = "has-begun-to-end"
    FOREIGN = "not-ours"
    PROTECTED = "protected"
    UNKNOWN_AGE = "age-unknown"
    YOUNG = "young"
    DEADLINE = "deadline-passed"
    RUNNING = "execution-runs"
    RUNNING_UNREADABLE = "execution-runs-deadline-unreadable"
    ENDED_LATELY = "execution-over-lately"
    OVER = "execution-over"
    UNKNOWN_OWNER = "execution-unknown"
    LOST = "nothing-known-too-old"
    OTHER_PROFILE = "not-our-profile"
    OTHER_DEPLOYMENT = "other-deployment"
    UNTAGGED = "untagged"
    UNTAGGED_RUNNING = "untagged-execution-runs"
    UNTAGGED_OLD = "untagged-too-old"


ASKS_OWNER = frozenset({Rule.UNKNOWN_OWNER, Rule.LOST, Rule.ENDED_LATELY, Rule.OVER, Rule.UNTAGGED_OLD})
"""Rules whose verdict depends on the execution's status, which is therefore asked for again before an end."""


class Life(str, Enum):
    """Whether an execution runs."""

    RUNS = "runs"
    OVER = "over"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwningExecution:
    """The execution that a thing's tags name."""

    life: Life
    ended_at: float | None = None
    """UTC epoch seconds; None where it ended so long ago that Step Functions has forgotten it."""
    why: str = ""
    """How it ended, or why its status is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A mark of an earlier look: the rule, and when it was first found."""

    rule: Rule
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A decision about one thing, with its reason in words."""

    action: Action
    rule: Rule
    reason: str
    tell: bool = False
    """It is kept only because too little is known: a person should look."""
    first: bool = False
    """This is the first look that found it suspicious for this reason."""

    @property
    def quiet(self) -> bool:
        return self.action is Action.KEEP and not self.tell

    @property
    def at_once(self) -> bool:
        """Ends without a second look."""
        return self.action is Action.TERMINATE and self.rule is Rule.DEADLINE


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """A deployment's limits, from its settings; times in seconds."""

    deployment: str
    profile: str
    longest_s: float
    """The time of the longest allowed job, and a margin."""
    grace_s: float
    second_look_s: float
    after_deadline_s: float
    max_share: float
    max_least: int

    @classmethod
    def of(cls, env: ReaperEnvironment) -> Rules:
        return cls(
            deployment=env.deployment,
            profile=env.instance_profile,
            longest_s=env.max_hours * 3600 + env.timing.reaper_longest_margin_s,
            grace_s=env.timing.reaper_grace_s,
            second_look_s=env.timing.reaper_second_look_s,
            after_deadline_s=env.timing.reaper_after_deadline_s,
            max_share=env.max_share,
            max_least=env.max_least,
        )

    def most(self, seen: int) -> int:
        """How many things a pass may end before their deadline; `seen` is the number of ours that it saw."""
        return max(self.max_least, math.floor(self.max_share * seen))


def is_ours(thing: Belonging, rules: Rules) -> bool:
    """Whether it carries our tag and, if it is an instance, has our profile. Whoever may tag instances can put our tag on those of
    others."""
    return thing.deployment == rules.deployment and (thing.sort is not Sort.INSTANCE or thing.profile == rules.profile)


def judge(thing: Belonging, owner: OwningExecution, suspect: Suspect | None, now: float, rules: Rules) -> Verdict:
    """Keeps a thing unless there is a positive reason to end it.

    `now` must not run ahead of AWS's clock; a clock that lags only delays an end.
    """
    ours = thing.deployment == rules.deployment
    if not is_alive(thing):
        return _keep(Rule.ENDING, "it has begun to end")
    if not ours and thing.profile != rules.profile:
        return _keep(Rule.FOREIGN, "it has neither our tag nor our instance profile")
    if thing.protected:
        return _keep(Rule.PROTECTED, "a person protects it by a tag")
    if thing.born_at is None and thing.sort is not Sort.INTERFACE:
        return _tell(Rule.UNKNOWN_AGE, "its age is unknown")
    born = thing.born_at or 0.0  # an interface's age is never known: two looks have to prove that it is left over
    tagged_only = ours and not is_ours(thing, rules)
    deadline = read_deadline(thing, rules) if ours and not tagged_only else None
    if deadline is not None and now >= max(deadline, born) + rules.after_deadline_s:
        return _past_deadline(thing, now - deadline, suspect, now, rules)
    if now - born < rules.grace_s:
        return _keep(Rule.YOUNG, f"it is younger than {span(rules.grace_s)}")
    if tagged_only:
        return _tell(Rule.OTHER_PROFILE, f"it has our tag and {_profile(thing)}, so it may belong to others")
    if ours:
        return _by_owner(thing, owner, deadline, suspect, now, rules)
    return _by_profile(thing, owner, suspect, now, rules)


def read_deadline(thing: Belonging, rules: Rules) -> float | None:
    """Returns the deadline in the tag; None where the tag holds no time that can be the deadline of this thing."""
    text = thing.deadline
    if not (text.isascii() and text.isdecimal() and len(text) <= 12):
        return None
    deadline = float(text)
    if thing.born_at is None:
        return deadline
    return deadline if thing.born_at - REDRIVE_S <= deadline <= thing.born_at + rules.longest_s else None


def _past_deadline(thing: Belonging, late: float, suspect: Suspect | None, now: float, rules: Rules) -> Verdict:
    """Ends it even within the grace period: what is launched at its deadline has to be gone ten minutes later."""
    reason = f"its deadline passed {span(late)} ago"
    if thing.sort is Sort.INSTANCE:
        return Verdict(action=Action.TERMINATE, rule=Rule.DEADLINE, reason=reason)
    return _two_looks(Rule.DEADLINE, reason, suspect, now, rules)


def _by_owner(
    thing: Belonging, owner: OwningExecution, deadline: float | None, suspect: Suspect | None, now: float, rules: Rules
) -> Verdict:
    if owner.life is Life.RUNS:
        if deadline is None and thing.sort not in TIMED_BY_AWS:
            return _tell(
                Rule.RUNNING_UNREADABLE, f"its execution runs, and its deadline cannot be read: {thing.deadline!r}"
            )
        return _keep(Rule.RUNNING, "its execution runs")
    if owner.life is Life.OVER:
        if owner.ended_at is None:
            return _two_looks(Rule.OVER, f"its execution is over: {owner.why}", suspect, now, rules)
        over = now - owner.ended_at
        if over < rules.grace_s:
            return _keep(
                Rule.ENDED_LATELY, f"its execution ended {span(over)} ago, and its own steps and the cleanup come first"
            )
        if suspect is not None and suspect.since < owner.ended_at:
            suspect = None  # the mark was made before the execution was redriven
        return _two_looks(Rule.OVER, f"its execution ended {span(over)} ago ({owner.why})", suspect, now, rules)
    old = thing.born_at is not None and now >= thing.born_at + rules.longest_s
    if deadline is None and old and thing.born_at is not None and thing.sort not in TIMED_BY_AWS:
        reason = f"its execution and its deadline are unknown, and it is {span(now - thing.born_at)} old"
        return _two_looks(Rule.LOST, reason, suspect, now, rules)
    return _tell(Rule.UNKNOWN_OWNER, f"the state of its execution is unknown: {owner.why}")


def _profile(thing: Belonging) -> str:
    return f"the instance profile {thing.profile}, which is not ours" if thing.profile else "no instance profile"


def _by_profile(thing: Belonging, owner: OwningExecution, suspect: Suspect | None, now: float, rules: Rules) -> Verdict:
    """Judges an instance with our profile and without our tag: a person removed the tag, or launched the instance by hand."""
    if thing.deployment is not None:
        reason = f"it has our instance profile and the tag of deployment {thing.deployment!r}"
        return _tell(Rule.OTHER_DEPLOYMENT, reason)
    age = now - (thing.born_at or now)
    if owner.life is Life.RUNS:
        return _tell(Rule.UNTAGGED_RUNNING, "it has no deployment tag, and its execution runs")
    if age < rules.longest_s:
        return _tell(Rule.UNTAGGED, "it has our instance profile and no deployment tag")
    reason = f"it has no deployment tag, and its age of {span(age)} is more than any job of ours can have"
    return _two_looks(Rule.UNTAGGED_OLD, reason, suspect, now, rules)


def _two_looks(rule: Rule, reason: str, suspect: Suspect | None, now: float, rules: Rules) -> Verdict:
    """Ends only what an earlier look, long enough ago, marked for the same reason; marks everything else."""
    if suspect is None or suspect.rule is not rule:
        return Verdict(action=Action.MARK, rule=rule, reason=reason, first=True)
    late_enough = now - suspect.since >= rules.second_look_s
    return Verdict(action=Action.TERMINATE if late_enough else Action.MARK, rule=rule, reason=reason)


def _keep(rule: Rule, reason: str) -> Verdict:
    return Verdict(action=Action.KEEP, rule=rule, reason=reason)


def _tell(rule: Rule, reason: str) -> Verdict:
    return Verdict(action=Action.KEEP, rule=rule, reason=reason, tell=True)


def span(seconds: float) -> str:
    """Returns a duration in words for a person."""
    minutes = max(0, round(seconds / 60))
    if minutes < 100:
        return f"{minutes} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} days"
