"""The metric of a job over its steps, as the attendant keeps it for the job's page."""

from __future__ import annotations

import math
from dataclasses import dataclass

from contract.metric_values import DIVERGED
from contract.reports import Progress

MOST_POINTS = 200
"""Points of a curve, at most."""
NEWEST = 20
"""Points that are never left out, from the newest one backwards."""
MOST_STEP = 10**15
"""No training has more steps; the number is a node's word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What rank 0 reported at one look."""

    attempt: int
    step: int
    at: float
    """UTC epoch seconds of the look, by the attendant's clock."""
    metric: float | None = None
    """None where the trainer writes none, or none that is a finite number."""
    diverged: str = ""
    """What it writes in the place of such a number, one of metric_values.DIVERGED; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Points in the order of their looks, at most MOST_POINTS."""

    points: tuple[Point, ...] = ()


def point_of(progress: Progress | None, *, attempt: int, at: float) -> Point | None:
    """Returns the point of what a trainer wrote; None where it wrote no step that can be one."""
    if progress is None or not 0 <= progress.step <= MOST_STEP:
        return None
    metric = progress.metric
    known = metric if metric is not None and math.isfinite(metric) else None
    diverged = progress.diverged if progress.diverged in DIVERGED else ""
    return Point(attempt=attempt, step=progress.step, at=at, metric=known, diverged=diverged)


def extend(curve: Curve, point: Point) -> Curve:
    """Returns the curve with the point: the same curve where it says nothing new. Of too many points the one goes that leaves the smallest
    gap in time, so that the whole job stays visible; the first one and the newest ones stay."""
    points = curve.points
    if points and _says(points[-1]) == _says(point):
        return curve
    points = (*points, point)
    while len(points) > MOST_POINTS:
        least = min(range(1, len(points) - NEWEST), key=lambda place: points[place + 1].at - points[place - 1].at)
        points = (*points[:least], *points[least + 1 :])
    return Curve(points=points)


def _says(point: Point) -> tuple[int, int, float | None, str]:
    return point.attempt, point.step, point.metric, point.diverged
