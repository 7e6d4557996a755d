"""A place that had no capacity a moment ago: what one job's walk leaves in the table for those of others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyPlace:
    """The newest answer of a place to a launch that found no capacity."""

    region: str
    zone: str
    instance_type: str
    market: str
    nodes: int
    """How many the launch asked for: there may be room for fewer."""
    job: str
    at: float
    """UTC epoch seconds."""
