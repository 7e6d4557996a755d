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
    """Whether it has not begun to end. A stopped instance is alive: it is not over, and its volume costs."""
    return thing.state not in ENDING


def alive(things: Iterable[T]) -> list[T]:
    """Those that have not begun to end."""
    return [one for one in things if is_alive(one)]


def protected(things: Iterable[T]) -> list[T]:
    """Those that are alive and that nothing of the control plane may end, because a person protects them."""
    return [one for one in alive(things) if one.protected]


def to_end(instances: Iterable[Instance], attempt: int) -> list[Instance]:
    """Instances of a job that have to end in this attempt: all that are alive and that nobody protects.

    A later attempt's are kept: a Terminate that comes late, or twice, must not end what was launched after it. An attempt
    that nobody can read counts as 0 and ends.
    """
    return [one for one in alive(instances) if one.attempt <= attempt and not one.protected]


def remembered(intents: Iterable[Intent]) -> set[str]:
    """Ids that launches wrote down; an instance whose tags were removed is found by them."""
    return {id_ for intent in intents for step in intent.steps if step.answer for id_ in step.answer.instances}


def may_appear(intents: Iterable[Intent], shown: Collection[str], *, now: float, visibility_s: float) -> list[str]:
    """Why instances may still appear that no look has shown (`shown`: the ids that EC2 knows), a line for each reason.

    A walk that is held may launch until its function's time is over, and an effect is visible `visibility_s` later at most.
    """
    reasons = []
    for intent in intents:
        if now < intent.held_until + visibility_s:
            reasons.append(
                f"- a launch of attempt {intent.attempt} may be on its way for {intent.held_until - now:.0f} s"
            )
        for step in intent.steps:
            if _unseen(step, shown) and step.answer and now < step.answer.at + visibility_s:
                reasons.append(
                    f"- a launch in {step.rung.zone} is {now - step.answer.at:.1f} s old and may be invisible yet"
                )
    return reasons


def _unseen(step: Step, shown: Collection[str]) -> bool:
    """The launch may have had an effect, or had one, that EC2 does not show."""
    if step.answer is None:
        return False
    return step.answer.outcome is LaunchOutcome.UNKNOWN or any(id_ not in shown for id_ in step.answer.instances)


def told(instances: Sequence[Instance], refused: Mapping[str, str]) -> list[str]:
    """One line an instance, for the error."""
    return [f"- {one.id} in {one.zone or one.region} is {one.state}{_why(refused.get(one.id))}" for one in instances]


def _why(problem: str | None) -> str:
    return f": {problem}" if problem else ""
