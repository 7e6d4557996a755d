"""Looks up the job that a request resumes from, and its checkpoints in every region of its ladder."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from botocore.exceptions import BotoCoreError, ClientError

from aws import executions
from aws.checkpoints import ClosedSet, find_closed_sets
from aws.clients import IN_PASSING
from aws.errors import S3_DENIED
from aws.facts import Status
from aws.s3 import NO_BUCKET, Bucket
from contract.aws_errors import code_of
from contract.intents import Intent, ran_in
from contract.jobs import Job, SourceCheckpoint
from job_checks.facts import SourceFacts


def find_source(name: str, job: Callable[[str], Job | None], walks: Callable[[str], Iterable[Intent]]) -> SourceFacts:
    """Finds the job and its closed sets.

    Raises ClientError or BotoCoreError if AWS does not answer: what is not known refuses no request. A region in which the job never ran
    may fail to answer, and then stands in `unread`.
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
            closed = find_closed_sets(bucket, name).closed
        except (ClientError, BotoCoreError) as problem:
            code = code_of(problem) if isinstance(problem, ClientError) else type(problem).__name__
            if region in ran and code not in S3_DENIED | NO_BUCKET:
                raise
            unread[region] = code
        else:
            sets += [_describe_set(name, region, place.bucket, one) for one in closed]
    return SourceFacts(job=found, sets=tuple(sets), unread=unread)


def _describe_set(job: str, region: str, bucket: str, one: ClosedSet) -> SourceCheckpoint:
    return SourceCheckpoint(
        job=job, region=region, bucket=bucket, attempt=one.attempt, number=one.number, step=one.step
    )
