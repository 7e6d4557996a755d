"""Decides how an attempt begins after one that could launch the nodes of some roles only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from contract.intents import Intent, LaunchAnswer, LaunchOutcome
from contract.jobs import Job, LaunchShape, Rung
from contract.shapes import list_shapes
from launcher.quotas import is_closed_with

MOST_HALVES = 8
"""So many attempts back are looked at: the pauses of a wait are the longest by then."""


def list_halves(job: Job, attempt: int, read: Callable[[int], Sequence[Intent]]) -> list[Intent]:
    """Returns the last walks of the attempts right before this one, the newest first, as long as each launched nodes of some shapes and
    could not launch the others. `read` returns the walks of an attempt."""
    found = list[Intent]()
    for number in range(attempt - 1, max(0, attempt - 1 - MOST_HALVES), -1) if job.roles else ():
        walks = read(number)
        if not walks or walks[-1].half is None:
            break
        found.append(walks[-1])
    return found


def count_waited_s(before: Intent, now: float) -> float:
    """Returns how long a job has waited for capacity as the attempt after this walk begins: with the time since, where it waited as it
    launched a half, because it waits on."""
    return before.waited_s + (now - before.started_at if before.half and before.waiting else 0.0)


def begin_patience(job: Job, before: Intent | None, now: float) -> float:
    """Returns until when the walks of an attempt go on: as long as those of the attempt before, whose last one launched only some nodes.
    One that had waited for capacity soon waits again."""
    patience_s, again_s = job.timing.launch_patience_s, job.timing.launch_again_s
    if before is None:
        return now + patience_s
    return max(now + again_s, 0.0 if before.waiting else min(before.patience_until, now + patience_s))


def pass_over_half(job: Job, before: Intent) -> dict[Rung, LaunchAnswer]:
    """Returns the rungs that the first walk of an attempt does not ask, with their answers, because of the shape that the attempt before
    could not have: what EC2 said of it goes for all that need the same there."""
    assert before.half is not None
    assert before.half.answer is not None
    answer, whole = before.half.answer, before.half.rung
    failed = list_shapes(job, whole)[answer.shape]
    code = f"NotAsked: {answer.code} in attempt {before.attempt}"
    spared = replace(answer, code=code, instances=(), shape=0, doubted=False)

    def needs(shape: LaunchShape) -> bool:
        one, other = shape.rung, failed.rung
        if answer.refused or answer.outcome in {LaunchOutcome.QUOTA, LaunchOutcome.CLOSED}:
            return is_closed_with(one, other, answer)
        same = (one.zone, one.instance_type, one.market) == (other.zone, other.instance_type, other.market)
        return same and shape.nodes >= failed.nodes

    return {rung: spared for rung in job.ladder if any(map(needs, list_shapes(job, rung)))}
