"""Admit's function: looks up what the request names, lets the policy decide, and writes job.json once."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError

from admission import efa, fetching, money, mounts, resume
from admission.asking import regions_asked
from admission.care import Care, care
from admission.code import readable
from admission.containers import registries
from admission.ladder import RegionFacts, told
from admission.policy import (
    Execution,
    RequestFacts,
    RequestQuestions,
    admit,
    questions,
    taken,
)
from admission.reading import read
from admission.registries import looked
from admission.request import JobRequest
from aws import pinned, secrets
from aws.errors import CHANGED, S3_DENIED, Raced
from aws.facts import Object
from aws.patience import patient
from aws.s3 import Bucket, HomeBucket
from aws.state import State
from contract import keys, links, names
from contract.aws_errors import code_of
from contract.environments import AdmissionEnvironment
from contract.events import ENDS
from contract.jobs import Job
from refusals.addresses import SCHEME, Address
from refusals.archive import Listing, listing
from refusals.wording import refusal, shut

logger = Logger(service="admission")
PASSING = frozenset(
    {"SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "Throttling", "ThrottlingException"}
)
LOOK_S = 10.0
"""How long an archive is read, which is enough for hundreds of megabytes. Later entries are accepted without a look."""


@patient
def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    env = AdmissionEnvironment.read()
    execution = Execution(
        arn=event["execution"]["arn"],
        name=event["execution"]["name"],
        started_at=datetime.fromisoformat(event["execution"]["started_at"].replace("Z", "+00:00")).timestamp(),
    )
    home, state = HomeBucket(env.bucket), State(env.table)
    if (reason := state.admission_closed()) is not None:
        raise refusal([shut(reason, env.table)])
    job = home.job(execution.name) if names.JOB_PATTERN.fullmatch(execution.name) else None
    if job is None or not job.belongs_to(execution.arn, execution.started_at):
        with TemporaryDirectory() as folder:
            decided, dry = _decide(event["request"], execution, env, Path(folder), held_by=job)
            if dry:
                return _told(decided) | {"dry_run": True, "links": {}}
            _keep_agent(home, env)
            fetching.keep(home, decided.code, Path(folder))
        job = _write(home, decided, execution)
    if not ENDS.isdisjoint(job.notify):
        state.owe_end(job)  # first of all: whatever fails from here on, people are told that the execution ended
    _copy_code(home, job)
    state.keep_job(job)
    logger.info("admitted", job=job.id, nodes=job.nodes, rungs=len(job.ladder), deadline=job.deadline)
    return _told(job)


def _told(job: Job) -> dict[str, Any]:
    """The output of Admit."""
    return {
        "job": job.id,
        "deadline": job.deadline,
        "recoveries": job.recoveries,
        "retries": job.retries.times,
        "wait_left_s": round(job.max_wait_hours * 3600),
        "nodes": job.nodes,
        "links": links.of_job(job),
        "network": efa.told(job),
        "image": job.container.address(next(iter(job.places))) if job.container else None,
        "mounts": mounts.told(job.mounted),
        "ladder": [told(rung) for rung in job.ladder],
        "left_out": list(job.left_out),
        "resumes": resume.told(job),
        "step": job.resume.step if job.resume else -1,
        "estimate": money.estimate(job),
        "dry_run": False,
    }


def _decide(
    raw: object, execution: Execution, env: AdmissionEnvironment, folder: Path, *, held_by: Job | None
) -> tuple[Job, bool]:
    """Only reads; a commit lies in `folder` afterwards. A wrong field does not keep the other fields from being looked up. Returns the
    job, and whether it is only planned."""
    request, problems = read(raw, env.limits)
    asked = questions(request, execution, env)
    facts = _facts(request, asked, env, held_by)
    if asked.commit and not held_by:
        secret = env.git_hosts[asked.commit.host]
        got = fetching.fetched(
            asked.commit, execution.name, HomeBucket(env.bucket), secret, folder, asked.files, _listing
        )
        facts = replace(facts, code=got.code, archive=got.archive, not_fetched=got.problem)
    return admit(request, execution, facts, env, problems), request.dry_run


def _write(home: HomeBucket, job: Job, execution: Execution) -> Job:
    """Claims the job's name; another writer, such as a second run of this step, may have been first."""
    try:
        home.create_job(job)
    except Raced:
        written = home.job(job.id)
        if written is None or not written.belongs_to(execution.arn, execution.started_at):
            raise refusal([taken(execution, written)]) from None
        return written
    return job


def _keep_agent(home: HomeBucket, env: AdmissionEnvironment) -> None:
    """Keeps this deployment's agent in the home bucket for longer, from now on, than the longest job."""
    key = keys.agent(env.agent)
    age_s = next((age for found, _, age in home.listed(key) if found == key), None)
    match care(age_s):
        case Care.COPY:
            home.copy(Object(bucket=env.agent_bucket, key=env.agent_key, size=0, version=""), key)
        case Care.RENEW:
            home.renew(key)


def _copy_code(home: HomeBucket, job: Job) -> None:
    """Copies the code, so that every attempt runs the bytes that were there at admission. A commit is there already."""
    if job.code is None or not job.code.source.startswith(SCHEME):
        return
    if home.head(job.code.key) is not None:
        return
    source = Address.parse(job.code.source)
    try:
        home.copy(
            Object(bucket=source.bucket, key=source.key, size=job.code.size, version=job.code.source_version),
            job.code.key,
        )
    except ClientError as problem:
        if _passes(problem):
            raise
        raise refusal(
            [f"code: {job.code.source} could not be copied ({problem}); allowed: a readable object"]
        ) from None


def _passes(problem: ClientError) -> bool:
    """Whether the problem is S3's and says nothing about the object: then the machine tries again."""
    status = problem.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status >= 500 or code_of(problem) in PASSING


def _facts(
    request: JobRequest, asked: RequestQuestions, env: AdmissionEnvironment, held_by: Job | None
) -> RequestFacts:
    heads, denied = _looked([asked.code] if asked.code else [], lambda bucket, key: bucket.head(key))
    code = heads.get(asked.code)
    found, denied_too = _looked(asked.data, lambda bucket, key: bucket.holds_any(key))
    return RequestFacts(
        regions=_regions(request, asked, env),
        code=code,
        archive=_listing(code, asked.files) if code and readable(code) else None,
        denied=denied | denied_too,
        nothing_at=tuple(location for location, is_there in found.items() if not is_there),
        secrets_missing=tuple(
            name for name, arn in asked.secrets.items() if not secrets.exists(arn, arn.split(":")[3])
        ),
        source=resume.looked_up(asked.source, HomeBucket(env.bucket).job, State(env.table).walks)
        if asked.source
        else None,
        held_by=held_by,
    )


def _regions(request: JobRequest, asked: RequestQuestions, env: AdmissionEnvironment) -> dict[str, RegionFacts]:
    looks = looked(asked.images, auto=asked.auto, awss=registries(env).awss)
    return {
        region: replace(facts, look=looks.get(region)) for region, facts in regions_asked(request, asked, env).items()
    }


def _listing(code: Object, kept: Collection[str]) -> Listing | None:
    """Lists the archive, as far as a short look reaches; None where S3 denies the look, or the object has changed meanwhile. `kept`: files
    of which more than the name is needed."""
    until = time.monotonic() + LOOK_S
    try:
        with pinned.opened(pinned.pinned(code)) as file:
            return listing(file, code.key, lambda: time.monotonic() > until, kept)
    except ClientError as problem:
        if code_of(problem) not in S3_DENIED | CHANGED:
            raise
        return None


def _looked(locations: Iterable[str], look: Callable[[Bucket, str], Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the answer of `look` for each location, and S3's error code for each location where it denies the look."""
    found, denied = dict[str, Any](), dict[str, str]()
    for location in locations:
        address = Address.parse(location)
        try:
            found[location] = look(Bucket(address.bucket), address.key)
        except ClientError as problem:
            code = code_of(problem)
            if code not in S3_DENIED:
                raise
            denied[location] = code
    return found, denied
