"""The metric of a job over its steps, as the attendant keeps it for the job's page."""

from __future__ import annotations

from dataclasses import dataclass

MOST_POINTS = 200
"""Points of a curve, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What rank 0 reported at one look."""

    attempt: int
    step: int
    at: float
    """UTC epoch seconds of the look, by the attendant's clock."""
    metric: float | None = None
    """None where the trainer writes none, or none that is a finite number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Points in the order of their looks, at most MOST_POINTS."""

    points: tuple[Point, ...] = ()
