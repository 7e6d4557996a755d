"""Admit's function: reads the request, looks up what it names, lets the policy decide, and writes job.json once."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError

from admission.agent_copy import CopyAction, choose_copy_action
from admission.fetching import keep_archive
from admission.lookups import look_up_facts
from admission.output import describe_job
from admission.policy import admit
from admission.trial import try_sessions
from aws.errors import Raced
from aws.facts import Object
from aws.functions import invoke
from aws.patience import patient
from aws.s3 import HomeBucket
from aws.state import State
from contract import keys, names
from contract.aws_errors import code_of
from contract.environments import AdmissionEnvironment
from contract.errors import InvalidRequest
from contract.events import ENDS
from contract.jobs import Job
from job_checks.facts import Execution
from job_checks.judge import describe_holder
from job_requests.presets import list_given, load_rules
from job_requests.reading import read
from refusals.addresses import SCHEME, Address
from refusals.wording import refusal, shut

logger = Logger(service="admission")
PASSING = frozenset(
    {"SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "Throttling", "ThrottlingException"}
)


@patient
def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Raises InvalidRequest with every reason, each of which has a line in the log too, before anything is written."""
    try:
        return _admit(event)
    except InvalidRequest as refused:
        for reason in str(refused).splitlines()[1:]:
            logger.warning("refused", execution=event["execution"]["arn"], reason=reason.removeprefix("- "))
        raise


def _admit(event: Mapping[str, Any]) -> dict[str, Any]:
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
            rules = load_rules(env.rules)
            request, problems = read(event["request"], env.limits, rules)
            facts = look_up_facts(request, execution, env, Path(folder), held_by=job)
            planned = admit(request, execution, facts, env, problems)
            planned = replace(planned, preset_gave=list_given(event["request"], rules))
            try_sessions(planned, execution, env, invoke, now=time.time(), waits=not request.dry_run)
            if request.dry_run:
                return describe_job(planned, dry_run=True)
            _keep_agent(home, env)
            keep_archive(home, planned.code, Path(folder))
        job = _write_job(home, planned, execution)
    if not ENDS.isdisjoint(job.notify):
        state.owe_end(job)  # first of all: whatever fails from here on, people get a message that the execution ended
    _copy_code(home, job)
    state.keep_job(job)
    logger.info("admitted", job=job.id, nodes=job.nodes, rungs=len(job.ladder), deadline=job.deadline)
    return describe_job(job)


def _write_job(home: HomeBucket, job: Job, execution: Execution) -> Job:
    """Claims the job's name; another writer, such as a second run of this step, may have been first."""
    try:
        home.create_job(job)
    except Raced:
        written = home.job(job.id)
        if written is None or not written.belongs_to(execution.arn, execution.started_at):
            raise refusal([describe_holder(execution, written)]) from None
        return written
    return job


def _keep_agent(home: HomeBucket, env: AdmissionEnvironment) -> None:
    """Keeps this deployment's agent in the home bucket for longer, from now on, than the longest job."""
    key = keys.agent(env.agent)
    age_s = next((age for found, _, age in home.listed(key) if found == key), None)
    match choose_copy_action(age_s):
        case CopyAction.COPY:
            home.copy(Object(bucket=env.agent_bucket, key=env.agent_key, size=0, version=""), key)
        case CopyAction.RENEW:
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
        if _is_passing(problem):
            raise
        raise refusal(
            [f"code: {job.code.source} could not be copied ({problem}); allowed: a readable object"]
        ) from None


def _is_passing(problem: ClientError) -> bool:
    """Whether the problem is S3's and says nothing about the object: then the machine tries again."""
    status = problem.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status >= 500 or code_of(problem) in PASSING
