"""Says in the output of Admit what the job is, for people and for the states that follow."""

from __future__ import annotations

from typing import Any

from admission.workbench import describe_bench
from contract import links
from contract.jobs import Job
from job_checks.efa import describe_network
from job_checks.ladder import describe_rung
from job_checks.money import estimate_cost
from job_checks.mounts import describe_mounts
from job_checks.resume import describe_source


def describe_roles(job: Job) -> list[str]:
    """Says for each role which ranks it has, what it runs, and what its end means."""
    lines, first = list[str](), 0
    for role in job.roles:
        last, image = first + role.count - 1, role.container.address(next(iter(job.places))) if role.container else ""
        ranks = f"rank {first}" if role.count == 1 else f"ranks {first} to {last}"
        lines.append(f"{role.name}: {ranks}, ends {role.ends.value}{f', {image}' if image else ''}")
        first = last + 1
    return lines


def describe_job(job: Job, *, dry_run: bool = False) -> dict[str, Any]:
    """Returns the output. The job of a dry run has no links, because nothing of it is written."""
    return {
        "job": job.id,
        "deadline": job.deadline,
        "recoveries": job.recoveries,
        "retries": job.retries.times,
        "wait_left_s": round(job.max_wait_hours * 3600),
        "nodes": job.nodes,
        "links": {} if dry_run else links.of_job(job),
        "network": describe_network(job),
        "image": job.container.address(next(iter(job.places))) if job.container else None,
        "mounts": describe_mounts(job.mounted),
        "ladder": [describe_rung(rung) for rung in job.ladder],
        "left_out": list(job.left_out),
        **({"workbench": describe_bench(job)} if job.workbench else {}),
        **({"roles": describe_roles(job)} if job.roles else {}),
        "resumes": describe_source(job),
        "step": job.resume.step if job.resume else -1,
        "estimate": estimate_cost(job),
        "preset": {"name": job.preset, "gave": job.preset_gave} if job.preset else None,
        "dry_run": dry_run,
    }
