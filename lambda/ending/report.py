"""Makes the report of a job's end, and words why an execution ended that did not end by its own steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from aws.facts import Instance, Status
from contract.execution_facts import explain_end, is_of_end
from contract.health import UnhealthyNode
from contract.intents import Intent


def cause_of_end(status: Status) -> dict[str, str]:
    """Error and cause, in words for a person, of an execution that did not end by its own steps."""
    error, cause = explain_end(status.name, status.error, status.cause)
    return {"error": error, "cause": cause}


def build_report(
    job: str,
    attempts: int,
    problem: Mapping[str, Any] | None,
    intents: Iterable[Intent],
    kept: Iterable[Instance] = (),
    before: object = None,
    unhealthy: Iterable[UnhealthyNode] | None = None,
    *,
    at: float | None = None,
) -> dict[str, Any]:
    """Returns the report: error and cause of the newest attempt, and in `recovered` those of the attempts before it.

    `problem` is {error, cause}; `before` is the report that is in the bucket already. `unhealthy` are the nodes because
    of whose machines attempts ended; None where the caller does not know, and then those of `before`. `at`: when it was known that none of
    its instances runs (UTC epoch seconds).
    """
    return {
        "job": job,
        "attempts": attempts,
        "error": problem["error"] if problem else None,
        "cause": problem["cause"] if problem else None,
        "recovered": list_recovered(before, attempts),
        "ended_at": at,
        "unhealthy": _unhealthy_before(before) if unhealthy is None else [asdict(one) for one in unhealthy],
        "protected": [_identify(one) for one in kept if one.protected],
        "without_our_profile": [_identify(one) for one in kept if not one.protected],
        "launches": [
            {
                "attempt": intent.attempt,
                "walk": intent.walk,
                "region": step.rung.region,
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


def _unhealthy_before(before: object) -> list[Any]:
    known = before.get("unhealthy") if isinstance(before, dict) else None
    return known if isinstance(known, list) else []


def _identify(instance: Instance) -> dict[str, str]:
    return {"instance": instance.id, "region": instance.region}


def list_recovered(before: object, attempts: int) -> list[dict[str, Any]]:
    """Attempt, error and cause of every attempt before number `attempts`, taken from the report before."""
    if not isinstance(before, dict):
        return []
    known_before = before.get("recovered")
    entries = [*(known_before if isinstance(known_before, list) else []), {**before, "attempt": before.get("attempts")}]
    known: dict[int, dict[str, Any]] = {}
    for one in entries:
        number = one.get("attempt") if isinstance(one, dict) else None
        if isinstance(number, int) and number < attempts and one.get("error"):
            known[number] = {"attempt": number, "error": one["error"], "cause": one.get("cause")}
    return [known[number] for number in sorted(known)]


def covers_end(written: object, ours: Mapping[str, Any], over: float | None = None) -> bool:
    """Whether the report in the bucket already covers this end: the same error, of this attempt or a later one, written when the execution
    was about to end (`over`, UTC epoch seconds) or later."""
    return (
        isinstance(written, dict)
        and written.get("error") == ours["error"]
        and isinstance(attempts := written.get("attempts"), int)
        and attempts >= ours["attempts"]
        and is_of_end(written, over)
    )
