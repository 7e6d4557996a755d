"""Decides which instances still have to end, and when that is proven."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from aws.facts import ENDING, Instance
from contract.intents import Intent, Outcome, Step


def to_end(instances: Iterable[Instance], attempt: int) -> list[Instance]:
    """All that run, begin to, or are stopped: a stopped instance is not over, and its volume costs.

    A later attempt's are kept: a Terminate that comes late, or twice, must not end what was launched after it. An attempt
    that nobody can read counts as 0 and ends.
    """
    return [one for one in instances if one.state not in ENDING and one.attempt <= attempt]


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
    return step.answer.outcome is Outcome.UNKNOWN or any(id_ not in shown for id_ in step.answer.instances)


def told(instances: Sequence[Instance], refused: dict[str, str]) -> list[str]:
    """One line an instance, for the error."""
    return [f"- {one.id} in {one.zone or one.region} is {one.state}{_why(refused.get(one.id))}" for one in instances]


def _why(problem: str | None) -> str:
    return f": {problem}" if problem else ""
