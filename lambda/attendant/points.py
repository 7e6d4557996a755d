"""Finds what a look adds to the metric of a job over its steps."""

from __future__ import annotations

from dataclasses import dataclass

from attendant.facts import AttemptFacts, MissingAttempt
from contract.curves import Point, point_of
from contract.jobs import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPoint:
    """What rank 0 of a job reported at one look."""

    job: Job
    point: Point


def read_point(facts: AttemptFacts | MissingAttempt, *, now: float) -> JobPoint | None:
    """Returns the newest progress of rank 0; None where it reports none."""
    if isinstance(facts, MissingAttempt) or (node := facts.nodes.get(0)) is None:
        return None
    point = point_of(node.report.progress, attempt=facts.attempt, at=now)
    return JobPoint(job=facts.job, point=point) if point else None
