"""Counts the machines of a cluster that no MPIJob needs, and says of an MPIJob what those need who end what is left over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contract.cluster_calls import PodJob
from contract.mpi_job import count_nodes, read_marks
from contract.mpi_job_facts import is_live, read_created

KEPT_S = 60 * 86_400.0
"""How long after its making the object of an MPIJob that has ended is kept: twice the longest training."""


def count_idle(machines: Sequence[Mapping[str, Any]], jobs: Sequence[Mapping[str, Any]]) -> int:
    """Returns how many machines there are beside one for each node of an MPIJob that runs, or waits for its machines."""
    return max(0, len(machines) - sum(count_nodes(one) for one in jobs if is_live(one)))


def list_expired(jobs: Sequence[Mapping[str, Any]], now: float) -> list[str]:
    """Returns the names of MPIJobs that ended long ago: no grid asks for their names any more. `now`: UTC epoch seconds."""
    return [
        str(one["metadata"]["name"])
        for one in jobs
        if not is_live(one) and (made := read_created(one)) is not None and now - made > KEPT_S
    ]


def describe_job(job: Mapping[str, Any]) -> PodJob:
    return PodJob(
        name=str(job["metadata"]["name"]),
        created_at=read_created(job),
        is_live=is_live(job),
        marks=read_marks(job),
    )
