"""Decides what may be ended, and when it is proven that a job's instances have ended."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from aws.facts import ENDING, Instance
from contract.intents import Intent, LaunchOutcome, Step


class Endable(Protocol):
    """An instance, or anything else of a deployment that can be ended."""

    @property
    def state(self) -> str:
        """As AWS calls it."""

    @property
    def protected(self) -> bool:
        """A person keeps it by a tag."""


T = TypeVar("T", bound=Endable)


def is_alive(thing: Endable) -> bool:
    """Whether it has not begun to end. A stopped instance counts as alive: it can be started again, and its volume costs money."""
    return thing.state not in ENDING


def find_alive(things: Iterable[T]) -> list[T]:
    """Returns those that have not begun to end."""
    return [one for one in things if is_alive(one)]


def find_protected(things: Iterable[T]) -> list[T]:
    """Returns those that are alive and protected by a person: nothing of the control plane may end them."""
    return [one for one in find_alive(things) if one.protected]


def find_kept(instances: Iterable[Instance], profile: str) -> list[Instance]:
    """Returns those that are alive and that nothing of the control plane may end: a person protects them, or they lack our instance
    profile.

    Whoever may tag instances can put our tags on a stranger's; the profile can only be given by who may pass our role.
    """
    return [one for one in find_alive(instances) if one.protected or one.profile != profile]


def find_to_end(instances: Iterable[Instance], attempt: int, profile: str) -> list[Instance]:
    """Returns the instances of a job that have to end with this attempt: all that are alive, not `kept`, and of this attempt or an earlier
    one.

    Those of a later attempt are kept: a Terminate that comes late, or twice, must not end what was launched after it. An instance whose
    attempt cannot be read counts as attempt 0 and ends.
    """
    ours = (one for one in find_alive(instances) if one.profile == profile and not one.protected)
    return [one for one in ours if one.attempt <= attempt]


def recorded_ids(intents: Iterable[Intent]) -> set[str]:
    """Returns the ids that launches wrote down, by which an instance is found whose tags were removed."""
    return {id_ for intent in intents for step in intent.steps if step.answer for id_ in step.answer.instances}


def explain_pending(intents: Iterable[Intent], shown: Collection[str], *, now: float, visibility_s: float) -> list[str]:
    """Returns a line for each reason why an instance may still appear that EC2 does not show yet; `shown` are the ids that it shows.

    A launcher may launch until its function's time is over, and EC2 shows a launch at most `visibility_s` later.
    """
    reasons = []
    for intent in intents:
        if now < intent.held_until + visibility_s:
            reasons.append(f"- a launch of attempt {intent.attempt} may come within {intent.held_until - now:.0f} s")
        for step in intent.steps:
            if _unseen(step, shown) and step.answer and now < step.answer.at + visibility_s:
                reasons.append(
                    f"- a launch in {step.rung.zone} is {now - step.answer.at:.1f} s old, and EC2 may not show it yet"
                )
    return reasons


def prepared_regions(intents: Iterable[Intent]) -> set[str]:
    """Returns the regions in which a walk prepared a launch. A walk of a job that waits replaces the one before it in the table, and so
    stands for all regions of its ladder."""
    return {step.rung.region for intent in intents for step in intent.steps if step.request or intent.waiting}


def _unseen(step: Step, shown: Collection[str]) -> bool:
    """Whether the launch made, or may have made, instances that EC2 does not show."""
    if step.answer is None:
        return False
    return step.answer.outcome is LaunchOutcome.UNKNOWN or any(id_ not in shown for id_ in step.answer.instances)


def find_unclear(instances: Iterable[Instance], *, now: float, visibility_s: float) -> list[str]:
    """Returns a line for each that shows no profile and is so young that EC2 may not show all of it yet."""
    young = (one for one in find_alive(instances) if not one.profile and now < one.launched_at + visibility_s)
    return [
        f"- {one.id} in {one.region} is {now - one.launched_at:.1f} s old and shows no profile yet" for one in young
    ]


def describe_left(instances: Sequence[Instance], refused: Mapping[str, str]) -> list[str]:
    """Returns a line of the error for each instance."""
    return [f"- {one.id} in {one.zone or one.region} is {one.state}{_why(refused.get(one.id))}" for one in instances]


def _why(problem: str | None) -> str:
    return f": {problem}" if problem else ""
