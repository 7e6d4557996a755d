"""Judges the checkpoint of another job from which a job begins (`resume_from`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aws.s3 import NO_BUCKET
from contract.jobs import Job, Selection, SourceCheckpoint
from contract.roles import Role
from job_checks.facts import SourceFacts
from job_requests.request import JobRequest
from job_requests.role_field import RoleField
from job_requests.values import RESUME_MAY_BE
from refusals.wording import denial, plain


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSource:
    """What a job begins with, and what stands against it."""

    checkpoint: SourceCheckpoint | None
    """None for a job that begins with nothing."""
    problems: list[str]


def resolve_source(request: JobRequest, name: str, facts: SourceFacts | None) -> ResolvedSource:
    """Finds the newest checkpoint of the job that the request resumes from; `name` is the new job's own."""
    return ResolvedSource(checkpoint=_choose_checkpoint(facts), problems=_list_problems(request, name, facts))


def _choose_checkpoint(facts: SourceFacts | None) -> SourceCheckpoint | None:
    """Chooses the newest set: of the latest attempt, in whichever region."""
    if facts is None or not facts.sets:
        return None
    newest = max(facts.sets, key=lambda one: (one.attempt, one.number))
    denied = [region for region, code in (facts.unread or {}).items() if code not in NO_BUCKET]
    return replace(newest, unread=tuple(denied))


def _list_problems(request: JobRequest, name: str, facts: SourceFacts | None) -> list[str]:
    """Rejects a job that cannot be resumed from."""
    if request.resume_from is None:
        return []
    where = f"resume_from: {plain(request.resume_from)}"
    if request.resume_from == name:
        return [f"{where} is this job's own name; allowed: {RESUME_MAY_BE}"]
    if facts is None or facts.job is None:
        return [f"{where} is not a job of this deployment; allowed: {RESUME_MAY_BE}"]
    if facts.runs:
        return [f"{where} still runs, and replaces its checkpoints; allowed: {RESUME_MAY_BE}"]
    if not facts.sets:
        return [f"{where} has no committed checkpoint{_describe_unread(facts)}; allowed: {RESUME_MAY_BE}"]
    if request.checkpoint_restore is Selection.OWN and facts.job.nodes != request.nodes:
        return [
            f"{where} had {facts.job.nodes} nodes, and checkpoint_restore is own: a node restores the files of its own rank; allowed: as "
            "many nodes, or checkpoint_restore all"
        ]
    before, now = _describe_roles(facts.job.roles), _describe_roles(request.roles)
    if request.checkpoint_restore is Selection.OWN and before != now:
        return [
            f"{where} had {before}, and checkpoint_restore is own: a node restores the files of its own rank; allowed: the same roles in "
            "the same order, or checkpoint_restore all"
        ]
    return []


def _describe_roles(roles: Sequence[Role | RoleField]) -> str:
    return f"the roles {', '.join(f'{one.count} {one.name}' for one in roles)}" if roles else "no roles"


def _describe_unread(facts: SourceFacts) -> str:
    regions = "; ".join(
        f"the bucket of {region} cannot be read: {denial(code)}" for region, code in (facts.unread or {}).items()
    )
    return f" ({regions})" if regions else f" in {', '.join(facts.job.places)}" if facts.job else ""


def describe_source(job: Job) -> str | None:
    """Says in the execution's output what the job begins with."""
    if job.resume is None:
        return None
    step = f"step {job.resume.step}" if job.resume.step >= 0 else "a checkpoint without a step"
    found = f"{step} of job {job.resume.job} (attempt {job.resume.attempt}, {job.resume.region})"
    if not job.resume.unread:
        return found
    return f"{found}; the job may have a newer one in {', '.join(job.resume.unread)}, whose bucket Admit could not read"
