"""Counts the machines of a cluster that no MPIJob needs, and says of an MPIJob what those need who end what is left over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contract.cluster_calls import PodJob
from contract.mpi_job import ENDED_FOR, count_nodes, read_marks
from contract.mpi_job_facts import PULLS, READY, is_live, is_over, is_suspended, read_created

MOST_LISTED = 5000
"""MPIJobs of one answer: of each there are some 600 bytes, and an answer has 6 MB."""
MOST_LABELLED = 200
"""MPIJobs of one pass: a pass has a minute and a half."""


def count_idle(machines: Sequence[Mapping[str, Any]], jobs: Sequence[Mapping[str, Any]]) -> int:
    """Returns how many machines there are beside one for each node of an MPIJob that runs, or waits for its machines."""
    return max(0, len(machines) - sum(count_nodes(one) for one in jobs if is_live(one)))


def list_ended(jobs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns the names of MPIJobs that are over, or were ended by us. One that a person suspended may go on."""
    return [
        str(one["metadata"]["name"])
        for one in jobs
        if is_over(one) or (is_suspended(one) and ENDED_FOR in (one["metadata"].get("annotations") or {}))
    ][:MOST_LABELLED]


def order_jobs(jobs: Sequence[PodJob]) -> list[PodJob]:
    """Returns those that an answer has room for, those that live first: whoever deletes all asks again until none is there."""
    return sorted(jobs, key=lambda one: not one.is_live)[:MOST_LISTED]


def shrink_job(job: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an MPIJob without its pods' descriptions, which are most of it."""
    spec = job.get("spec") or {}
    replicas = {role: {"replicas": one.get("replicas")} for role, one in (spec.get("mpiReplicaSpecs") or {}).items()}
    return {
        "metadata": {name: job["metadata"].get(name) for name in ("name", "creationTimestamp", "annotations")},
        "spec": {"runPolicy": spec.get("runPolicy"), "mpiReplicaSpecs": replicas},
        "status": job.get("status"),
    }


def shrink_pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Returns of a pod what those need who say what became of it: the answer of a function has 6 MB."""
    status = pod.get("status") or {}
    kept = {name: status[name] for name in ("phase", "reason", "message") if name in status}
    for kind in ("initContainerStatuses", "containerStatuses"):
        kept[kind] = [{"name": one.get("name"), "state": one.get("state")} for one in status.get(kind) or ()]
    kept["conditions"] = [one for one in status.get("conditions") or () if one.get("type") in (READY, *PULLS)]
    return {
        "metadata": {name: pod["metadata"].get(name) for name in ("name", "labels", "creationTimestamp")},
        "spec": {"nodeName": (pod.get("spec") or {}).get("nodeName")},
        "status": kept,
    }


def describe_job(job: Mapping[str, Any]) -> PodJob:
    return PodJob(
        name=str(job["metadata"]["name"]),
        created_at=read_created(job),
        is_live=is_live(job),
        marks=read_marks(job),
    )
