"""Admit's function: looks up what the request names, lets the policy decide, writes job.json once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError

from admission.addresses import Address
from admission.policy import Execution, Facts, admit, before_facts, family, refusal
from admission.request import Request, read
from aws import secrets
from aws.ec2 import Ec2
from aws.facts import InstanceType, Object
from aws.s3 import Bucket, JobStore, Raced
from aws.ssm import parameter
from contract import names
from contract.codec import decode
from contract.environments import AdmissionEnvironment
from contract.errors import InvalidRequest
from contract.jobs import Image, Job
from contract.places import Place

logger = Logger(service="admission")
FORBIDDEN = frozenset({"403", "AccessDenied", "400", "NoSuchBucket", "301", "PermanentRedirect"})


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    env = AdmissionEnvironment.read()
    execution = Execution(
        arn=event["execution"]["arn"],
        name=event["execution"]["name"],
        started_at=datetime.fromisoformat(event["execution"]["started_at"].replace("Z", "+00:00")).timestamp(),
    )
    store = JobStore(env.bucket)
    job = _known(store, execution)
    if job is None:
        job = _decide(event["request"], execution, env)
        job = _write(store, job)
    _copy_code(store, job)
    logger.info("admitted", job=job.id, nodes=job.nodes, rungs=len(job.ladder), deadline=job.deadline)
    return {
        "job": job.id,
        "deadline": job.deadline,
        "recoveries": job.recoveries,
        "nodes": job.nodes,
        "ladder": [f"{rung.instance_type} in {rung.zone}, {rung.market.value}" for rung in job.ladder],
    }


def _known(store: JobStore, execution: Execution) -> Job | None:
    """The job that this execution has already; raises InvalidRequest where the name belongs to another one's."""
    if not names.JOB_PATTERN.fullmatch(execution.name):
        return None
    job = store.job(execution.name)
    if job is not None and job.execution != execution.arn:
        raise refusal(
            [f"name: {execution.name} is the name of a job of another execution ({job.execution}); choose another name"]
        )
    return job


def _decide(raw: object, execution: Execution, env: AdmissionEnvironment) -> Job:
    request = read(raw)
    if isinstance(request, list):
        raise refusal(request)
    if problems := before_facts(request, execution, env):
        raise refusal(problems)
    return admit(request, execution, _facts(request, env), env)


def _write(store: JobStore, job: Job) -> Job:
    """Claims the name; somebody else may have been first, another run of this very step for one."""
    try:
        store.create_job(job)
    except Raced:
        written = store.job(job.id)
        if written is None or written.execution != job.execution:
            raise refusal([f"name: {job.id} is the name of a job of another execution; choose another name"]) from None
        return written
    return job


def _copy_code(store: JobStore, job: Job) -> None:
    """Every attempt runs the bytes that were there at admission."""
    if store.head(job.code.key) is not None:
        return
    source = Address.parse(job.code.source)
    try:
        store.copy(
            Object(bucket=source.bucket, key=source.key, size=job.code.size, version=job.code.source_version),
            job.code.key,
        )
    except ClientError as problem:
        raise InvalidRequest(f"code: {job.code.source} could not be copied: {problem}") from None


def _facts(request: Request, env: AdmissionEnvironment) -> Facts:
    region, ec2 = env.home_region, Ec2(env.home_region)
    described = parameter(names.region_parameter(env.deployment, region), region)
    types = ec2.types(request.instance_types)
    return Facts(
        place=decode(Place, described) if described else None,
        types=types,
        zones=ec2.zones_offering(request.instance_types),
        images={one: _image(env.images.get(one, ""), ec2) for one in _families(types)},
        code=_head(request.code),
        unreadable=tuple(location for location in request.data if not _readable(location)),
        secrets_missing=tuple(
            name for name, arn in request.secrets.items() if not secrets.exists(arn, arn.split(":")[3])
        ),
    )


def _families(types: Mapping[str, InstanceType]) -> set[str]:
    return {family(kind) for kind in types.values()}


def _image(setting: str, ec2: Ec2) -> Image | None:
    """The image that a setting names: an AMI id as it is, anything else a parameter that holds one."""
    if not setting:
        return None
    found = setting if setting.startswith("ami-") else parameter(setting, ec2.region)
    return ec2.image(found) if found else None


def _head(location: str) -> Object | None:
    address = Address.parse(location)
    try:
        return Bucket(address.bucket).head(address.key)
    except ClientError as problem:
        if problem.response["Error"]["Code"] in FORBIDDEN:
            return None
        raise


def _readable(location: str) -> bool:
    address = Address.parse(location)
    try:
        return Bucket(address.bucket).holds_any(address.key)
    except ClientError as problem:
        if problem.response["Error"]["Code"] in FORBIDDEN:
            return False
        raise
