"""Decides which instances still have to end, when that is proven, and what the job's report says of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from aws.facts import ENDING, GONE, Instance, Status
from contract.intents import Intent, Outcome, Step

ENDS = {
    "ABORTED": ("Aborted", "The execution was stopped, and whoever stopped it gave no reason."),
    "TIMED_OUT": ("TimedOut", "The execution ran longer than its machine allows."),
    "FAILED": ("Failed", "The execution failed, and Step Functions gives no reason."),
    GONE: ("Gone", "Step Functions does not know the execution any more."),
}
"""Error and cause of an end that says neither."""


def to_end(instances: Iterable[Instance], attempt: int) -> list[Instance]:
    """All that run, begin to, or are stopped: a stopped instance is not over, and its volume costs.

    A later attempt's are kept: a Terminate that comes late, or twice, must not end what was launched after it. An attempt
    that nobody can read counts as 0 and ends. What a person protects is kept.
    """
    return [one for one in instances if one.state not in ENDING and one.attempt <= attempt and not one.protected]


def protected(instances: Iterable[Instance]) -> list[Instance]:
    """Those that run on because a person wants them to."""
    return [one for one in instances if one.state not in ENDING and one.protected]


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


def told(instances: Sequence[Instance], refused: Mapping[str, str]) -> list[str]:
    """One line an instance, for the error."""
    return [f"- {one.id} in {one.zone or one.region} is {one.state}{_why(refused.get(one.id))}" for one in instances]


def _why(problem: str | None) -> str:
    return f": {problem}" if problem else ""


def ending(status: Status) -> dict[str, str]:
    """Error and cause of an execution that ended by no step of its own, in words for a person."""
    error, cause = ENDS.get(status.name, ENDS["FAILED"])
    return {"error": status.error or error, "cause": status.cause or cause}


def report(
    job: str,
    attempts: int,
    problem: Mapping[str, Any] | None,
    intents: Iterable[Intent],
    kept: Iterable[Instance] = (),
    before: object = None,
) -> dict[str, Any]:
    """What the job came to so far; the newest attempt's word stands, and `recovered` says why there were others before it.

    `problem` is {error, cause}, `before` the report that is there, whoever wrote it.
    """
    return {
        "job": job,
        "attempts": attempts,
        "error": problem["error"] if problem else None,
        "cause": problem["cause"] if problem else None,
        "recovered": recovered(before, attempts),
        "protected": [{"instance": one.id, "region": one.region} for one in kept],
        "launches": [
            {
                "attempt": intent.attempt,
                "walk": intent.walk,
                "zone": step.rung.zone,
                "instance_type": step.rung.instance_type,
                "answer": step.answer.code or step.answer.outcome.value,
                "instances": list(step.answer.instances),
            }
            for intent in intents
            for step in intent.steps
            if step.answer
        ],
    }


def recovered(before: object, attempts: int) -> list[dict[str, Any]]:
    """Attempt, error and cause of every attempt before the one that `attempts` numbers, as the report before told them."""
    if not isinstance(before, dict):
        return []
    told = before.get("recovered")
    entries = [*(told if isinstance(told, list) else []), {**before, "attempt": before.get("attempts")}]
    known: dict[int, dict[str, Any]] = {}
    for one in entries:
        number = one.get("attempt") if isinstance(one, dict) else None
        if isinstance(number, int) and number < attempts and one.get("error"):
            known[number] = {"attempt": number, "error": one["error"], "cause": one.get("cause")}
    return [known[number] for number in sorted(known)]


def overtaken(written: object, attempts: int, *, meanwhile: bool) -> bool:
    """Whether the report that is there knows more than a Terminate of that attempt, which may be slow, or come twice.

    It tells of a later attempt, or was written of the same one while this Terminate went on: by another, or after the execution's end.
    """
    if not isinstance(written, dict) or not isinstance(known := written.get("attempts"), int):
        return False
    return known > attempts or (meanwhile and known == attempts)


def tells_of(written: object, ours: Mapping[str, Any]) -> bool:
    """Whether the report that is there tells of the same end: of this attempt or a later one, with the same error."""
    return (
        isinstance(written, dict)
        and written.get("error") == ours["error"]
        and isinstance(attempts := written.get("attempts"), int)
        and attempts >= ours["attempts"]
    )
