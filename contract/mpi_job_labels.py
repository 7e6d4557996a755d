"""Finds MPIJobs by labels, so that lists leave out those that have ended: they stay for months, 20 kB each."""

from __future__ import annotations

from contract.mpi_job import mark_deployment
from contract.tags import RESERVED

ENDED = f"{RESERVED.rstrip(':')}/ended"
"""Label of an MPIJob that has ended: the day on which the function saw it."""
KEPT_DAYS = 60
"""For so long the object of an MPIJob that has ended is kept: twice the longest training."""
DAY_S = 86_400


def write_day(now: float) -> str:
    """Returns the day as the label has it, counted from 1970. `now`: UTC epoch seconds."""
    return str(int(now // DAY_S))


def select(deployment: str) -> str:
    """Returns the selector of a deployment's objects."""
    return ",".join(f"{key}={value}" for key, value in mark_deployment(deployment).items())


def select_open(deployment: str) -> str:
    """Returns the selector of objects that are not labelled as ended."""
    return f"{select(deployment)},!{ENDED}"


def select_expired(deployment: str, now: float) -> str:
    """Returns the selector of objects that were labelled as ended before the days that they are kept."""
    kept = ",".join(write_day(now - days * DAY_S) for days in range(-1, KEPT_DAYS + 1))
    return f"{select(deployment)},{ENDED},{ENDED} notin ({kept})"
