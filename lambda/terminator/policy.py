"""Decides which instances still have to end, and when that is proven."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aws.facts import ENDING, Instance
from contract.intents import Intent, Outcome


def to_end(instances: Iterable[Instance]) -> list[Instance]:
    """All that run, begin to, or are stopped: a stopped instance is not over, and its volume costs."""
    return [one for one in instances if one.state not in ENDING]


def remembered(intents: Iterable[Intent]) -> set[str]:
    """Ids that launches wrote down; an instance whose tags were removed is found by them."""
    return {id_ for intent in intents for step in intent.steps if step.answer for id_ in step.answer.instances}


def may_appear(intents: Iterable[Intent]) -> bool:
    """A launch may have had an effect that nobody has seen: an answer was lost, or is still on its way."""
    return any(
        step.answer is not None and step.answer.outcome is Outcome.UNKNOWN
        for intent in intents
        for step in intent.steps
    ) or any(intent.held_until > 0 for intent in intents)


def told(instances: Sequence[Instance], refused: dict[str, str]) -> str:
    """One line an instance, for the error."""
    return "\n".join(
        f"- {one.id} in {one.zone or one.region} is {one.state}{_why(refused.get(one.id))}" for one in instances
    )


def _why(problem: str | None) -> str:
    return f": {problem}" if problem else ""
