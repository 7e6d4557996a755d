"""Decides how an attempt begins after one that could launch the nodes of some roles only."""

from __future__ import annotations

from dataclasses import replace

from contract.intents import Intent, LaunchAnswer, LaunchOutcome
from contract.jobs import Job, LaunchShape, Rung
from contract.shapes import list_shapes
from launcher.quotas import is_closed_with


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
