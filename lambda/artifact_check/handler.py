"""Sync's function: reads the last reports, looks for every committed file, writes the list of artifacts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger

from artifact_check.policy import join_lines, misplaced, missing
from aws.facts import Heard
from aws.heard import heard
from aws.patience import patient
from aws.s3 import Bucket, ObjectTooLarge, as_json
from aws.state import State
from contract import keys
from contract.codec import Garbled, decode
from contract.commits import MOST_DOCUMENT, Commit
from contract.environments import ArtifactCheckEnvironment
from contract.errors import SyncIncomplete
from contract.intents import Step
from contract.jobs import Job
from contract.keys import CommitKind
from contract.roles import RoleEnd, list_ranks, name_rank, name_ranks

logger = Logger(service="artifact_check")


@patient
def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    env = ArtifactCheckEnvironment.read()
    state, home = State(env.table), Bucket(env.bucket)
    job, attempt = state.job(event["job"]), int(event["attempt"])
    if job is None:
        raise SyncIncomplete(f"job {event['job']} is not in the table {env.table}")
    step = _launch(state, job, attempt)
    place = job.places[step.rung.region]
    bucket = Bucket(place.bucket, place.region)
    ids = step.answer.instances if step.answer else ()
    reports = heard(state.reports(env.node_role, ids)[0], job=job.id, attempt=attempt, ids=ids)
    checkpoints, artifacts = _commits(reports, bucket, job)
    sizes = {key: size for key, size, _ in bucket.listed(keys.BytesPrefix(job.id).root)}
    if lines := missing([*checkpoints, *artifacts], sizes, job.roles):
        raise SyncIncomplete(f"{len(lines)} committed files are not whole in {bucket.name}:\n{join_lines(lines)}")
    files = [
        {
            "rank": commit.rank,
            "path": file.path,
            "size": file.size,
            "sha256": file.sha256,
            "crc32": file.crc32,
            "at": f"s3://{bucket.name}/{file.key}",
        }
        for commit in artifacts
        for file in commit.files
    ]
    key = keys.JobPrefix(job.id).artifacts(attempt)
    home.put(key, as_json({"job": job.id, "attempt": attempt, "artifacts": files}))
    logger.info("synced", job=job.id, attempt=attempt, artifacts=len(files))
    return {
        "artifacts": len(files),
        "bytes": sum(int(str(file["size"])) for file in files),
        "list": f"s3://{home.name}/{key}",
    }


def _launch(state: State, job: Job, attempt: int) -> Step:
    step = state.launch(job.id, attempt)
    if step is None:
        raise SyncIncomplete(f"attempt {attempt} has no launch on record")
    return step


def _commit(bucket: Bucket, key: str, node: str) -> Commit:
    try:
        body = bucket.get(key, most=MOST_DOCUMENT)
        if body is None:
            raise SyncIncomplete(f"{node}: its commit {key} is not in {bucket.name}")
        return decode(Commit, body)
    except (ObjectTooLarge, Garbled) as problem:
        raise SyncIncomplete(f"{node}: its commit {key} cannot be read: {problem}") from None


def _commits(reports: Mapping[int, Heard], bucket: Bucket, job: Job) -> tuple[list[Commit], list[Commit]]:
    """Checkpoints and artifacts that the nodes' last reports name."""
    deciding = list_ranks(job.roles, RoleEnd.JOB) if job.roles else range(job.nodes)
    if absent := sorted(set(deciding) - reports.keys()):
        raise SyncIncomplete(f"there is no report of {name_ranks(job.roles, absent)}")
    checkpoints: list[Commit] = []
    artifacts: list[Commit] = []
    for rank, node in sorted(reports.items()):
        for kind, key, into in (
            (CommitKind.CHECKPOINTS, node.report.checkpoint, checkpoints),
            (CommitKind.ARTIFACTS, node.report.artifacts, artifacts),
        ):
            if not key:
                continue
            if problem := misplaced(key, job.id, kind):
                raise SyncIncomplete(f"{name_rank(job.roles, rank)}: {problem}")
            into.append(_commit(bucket, key, name_rank(job.roles, rank)))
    return checkpoints, artifacts
