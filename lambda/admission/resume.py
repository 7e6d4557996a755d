"""Finds and judges the checkpoint of another job from which a job begins (`resume_from`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from botocore.exceptions import BotoCoreError, ClientError

from admission.request import JobRequest
from aws import executions
from aws.checkpoints import ClosedSet, closed_sets
from aws.clients import IN_PASSING
from aws.errors import S3_DENIED
from aws.facts import Status
from aws.s3 import NO_BUCKET, Bucket
from contract.aws_errors import code_of
from contract.intents import Intent, ran_in
from contract.jobs import Job, Selection, SourceCheckpoint
from refusals.wording import denial, plain

RESUME_MAY_BE = "the name of a job of this deployment that has ended and has committed a checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """What there is of the job that a request names."""

    job: Job | None = None
    runs: bool = False
    sets: tuple[SourceCheckpoint, ...] = ()
    """Its newest closed sets, over all its regions."""
    unread: Mapping[str, str] | None = None
    """Region to the error code, where its bucket could not be read."""


def looked_up(name: str, job: Callable[[str], Job | None], walks: Callable[[str], Iterable[Intent]]) -> SourceFacts:
    """Looks for the job and its closed sets, in every region of its ladder.

    Raises ClientError or BotoCoreError if AWS does not answer: what is not known refuses nobody. A region in which the job never ran may
    be away, and is then told as unread.
    """
    found = job(name)
    if found is None:
        return SourceFacts()
    if executions.status(found.execution).name in Status.RUNS:
        return SourceFacts(job=found, runs=True)
    sets, unread = list[SourceCheckpoint](), dict[str, str]()
    ran = ran_in(walks(name)) or found.places.keys()
    for region, place in found.places.items():
        bucket = Bucket(place.bucket, region) if region in ran else Bucket(place.bucket, region, IN_PASSING)
        try:
            closed = list(closed_sets(bucket, name))
        except (ClientError, BotoCoreError) as problem:
            code = code_of(problem) if isinstance(problem, ClientError) else type(problem).__name__
            if region in ran and code not in S3_DENIED | NO_BUCKET:
                raise
            unread[region] = code
        else:
            sets += [_source(name, region, place.bucket, one) for one in closed]
    return SourceFacts(job=found, sets=tuple(sets), unread=unread)


def _source(job: str, region: str, bucket: str, one: ClosedSet) -> SourceCheckpoint:
    return SourceCheckpoint(
        job=job, region=region, bucket=bucket, attempt=one.attempt, number=one.number, step=one.step
    )


def chosen(facts: SourceFacts | None) -> SourceCheckpoint | None:
    """The newest set: of the latest attempt, in whichever region."""
    if facts is None or not facts.sets:
        return None
    newest = max(facts.sets, key=lambda one: (one.attempt, one.number))
    denied = [region for region, code in (facts.unread or {}).items() if code not in NO_BUCKET]
    return replace(newest, unread=tuple(denied))


def told(job: Job) -> str | None:
    """Says in the execution's output what the job begins with."""
    if job.resume is None:
        return None
    step = f"step {job.resume.step}" if job.resume.step >= 0 else "a checkpoint without a step"
    found = f"{step} of job {job.resume.job} (attempt {job.resume.attempt}, {job.resume.region})"
    if not job.resume.unread:
        return found
    return f"{found}; the job may have a newer one in {', '.join(job.resume.unread)}, whose bucket Admit could not read"


def problems(request: JobRequest, name: str, facts: SourceFacts | None) -> list[str]:
    """`name` is the job's own."""
    if request.resume_from is None:
        return []
    where = f"resume_from: {plain(request.resume_from)}"
    if request.resume_from == name:
        return [f"{where} is this job's own name; allowed: {RESUME_MAY_BE}"]
    if facts is None or facts.job is None:
        return [f"{where} is no job of this deployment; allowed: {RESUME_MAY_BE}"]
    if facts.runs:
        return [f"{where} still runs, and replaces its checkpoints; allowed: {RESUME_MAY_BE}"]
    if not facts.sets:
        return [f"{where} has no committed checkpoint{_unread(facts)}; allowed: {RESUME_MAY_BE}"]
    if request.checkpoint_restore is Selection.OWN and facts.job.nodes != request.nodes:
        return [
            f"{where} had {facts.job.nodes} nodes, and checkpoint_restore is own: a node restores the files of its own rank; allowed: as "
            "many nodes, or checkpoint_restore all"
        ]
    return []


def _unread(facts: SourceFacts) -> str:
    regions = "; ".join(
        f"the bucket of {region} cannot be read: {denial(code)}" for region, code in (facts.unread or {}).items()
    )
    return f" ({regions})" if regions else f" in {', '.join(facts.job.places)}" if facts.job else ""
