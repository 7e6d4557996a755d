"""Decides whether a request becomes a job: facts and limits in, a job or every reason against it out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fnmatch import fnmatchcase

from admission.addresses import Address
from admission.request import ARCHIVES, DEFAULT_HOURS, Request
from aws.facts import InstanceType, Object
from contract import keys, names
from contract.environments import AdmissionEnvironment
from contract.errors import InvalidRequest
from contract.jobs import Code, Image, Job, Market, Rung
from contract.places import Place

MOST_CODE = 5 * 1024**3
"""S3 copies at most 5 GB in one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The execution that asks."""

    arn: str
    name: str
    started_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What AWS said about the things that the request names."""

    place: Place | None
    types: dict[str, InstanceType]
    zones: dict[str, set[str]]
    images: dict[str, Image | None]
    """Family to image."""
    code: Object | None
    unreadable: tuple[str, ...] = ()
    """Data locations with nothing that we may read."""
    secrets_missing: tuple[str, ...] = ()
    """Environment names whose secret there is not."""


def family(kind: InstanceType) -> str:
    """The family of images that a type needs: P3's GPUs want the proprietary driver, which the common image lacks."""
    if kind.name.split(".")[0] in {"p3", "p3dn"}:
        return "p3"
    return "arm64" if "arm64" in kind.architectures else "x86_64"


def before_facts(request: Request, execution: Execution, env: AdmissionEnvironment) -> list[str]:
    """What is wrong whatever AWS says."""
    limits, problems = env.limits, []
    if not names.JOB_PATTERN.fullmatch(execution.name):
        problems.append(f"name: the execution is called {execution.name!r}; allowed: 1 to 80 letters, digits, _ and -")
    if request.market is Market.SPOT:
        problems.append(
            "market: spot is not supported yet, and on-demand is not taken in its place; allowed: on-demand"
        )
    if request.max_cost_usd is not None:
        problems.append(
            "max_cost_usd: the cap is not enforced yet, so it is not accepted; leave it out and limit max_hours"
        )
    if request.nodes > limits.max_nodes:
        problems.append(
            f"nodes: {request.nodes} asked for; allowed: 1 to {limits.max_nodes} (limits.max_nodes in cdk.json)"
        )
    if request.max_hours is not None and request.max_hours > limits.max_hours:
        problems.append(
            f"max_hours: {request.max_hours:g} asked for; allowed: up to {limits.max_hours:g} (limits.max_hours in cdk.json)"
        )
    if request.volume_gb is not None and request.volume_gb > limits.max_volume_gb:
        problems.append(
            f"volume_gb: {request.volume_gb} asked for; allowed: up to {limits.max_volume_gb} (limits.max_volume_gb in cdk.json)"
        )
    for kind in request.instance_types:
        if not any(fnmatchcase(kind, pattern) for pattern in limits.instance_types):
            problems.append(
                f"instance_types: {kind} is not allowed; allowed: {', '.join(limits.instance_types)} (limits.instance_types in cdk.json)"
            )
    for field, location in [("code", request.code), *(("data", location) for location in request.data)]:
        if problem := _foreign(Address.parse(location), env):
            problems.append(f"{field}: {location} {problem}")
    prefix = f":secret:{names.secret_prefix(env.deployment)}"
    problems += [
        f"secrets: {name}'s secret is not under the deployment's path; allowed: names beginning with {names.secret_prefix(env.deployment)}"
        for name, arn in request.secrets.items()
        if prefix not in arn
    ]
    return problems


def _foreign(address: Address, env: AdmissionEnvironment) -> str:
    if address.bucket in env.data_buckets or (address.bucket == env.bucket and address.key.startswith(keys.UPLOADS)):
        return ""
    allowed = [f"s3://{env.bucket}/{keys.UPLOADS}...", *(f"s3://{bucket}/..." for bucket in env.data_buckets)]
    return f"is in no bucket that jobs may read; allowed: {', '.join(allowed)} (data_buckets in cdk.json)"


def admit(request: Request, execution: Execution, facts: Facts, env: AdmissionEnvironment) -> Job:
    """The job; raises InvalidRequest with every reason against it."""
    problems, ladder = before_facts(request, execution, env), list[Rung]()
    if facts.place is None:
        parameter = names.region_parameter(env.deployment, env.home_region)
        problems.append(f"region: {env.home_region} has no Region stack ({parameter} is missing); deploy it first")
    else:
        ladder, against = _ladder(request, facts, facts.place, env)
        problems += against
    problems += _code_problems(request, facts.code)
    problems += [f"data: nothing readable at {location}" for location in facts.unreadable]
    problems += [f"secrets: {name}'s secret does not exist, or may not be described" for name in facts.secrets_missing]
    if problems:
        raise refusal(problems)
    assert facts.place is not None
    assert facts.code is not None
    hours = request.max_hours if request.max_hours is not None else min(DEFAULT_HOURS, env.limits.max_hours)
    return Job(
        id=execution.name,
        deployment=env.deployment,
        execution=execution.arn,
        owner=request.owner,
        admitted_at=execution.started_at,
        deadline=math.ceil(execution.started_at + hours * 3600),
        command=tuple(request.command),
        code=_code(request, execution.name, facts.code),
        nodes=request.nodes,
        volume_gb=request.volume_gb or max(env.limits.volume_gb, *(rung.image.snapshot_gb for rung in ladder)),
        checkpoint_minutes=request.checkpoint_minutes,
        max_hours=hours,
        recoveries=env.limits.recoveries,
        home_bucket=env.bucket,
        home_region=env.home_region,
        log_group=env.log_group,
        ladder=tuple(ladder),
        places={facts.place.region: facts.place},
        timing=env.timing,
        environment=dict(request.environment),
        secrets=dict(request.secrets),
        data=tuple(request.data),
    )


def refusal(problems: list[str]) -> InvalidRequest:
    """One error for all problems, a line each."""
    head = (
        "The request was refused; nothing was started."
        if len(problems) == 1
        else f"The request was refused for {len(problems)} reasons; nothing was started."
    )
    return InvalidRequest("\n".join([head, *(f"- {problem}" for problem in problems)]))


def _ladder(request: Request, facts: Facts, place: Place, env: AdmissionEnvironment) -> tuple[list[Rung], list[str]]:
    """Every type in the order of the request, in each zone of ours that offers it."""
    rungs, problems = [], []
    for name in dict.fromkeys(request.instance_types):
        kind = facts.types.get(name)
        if kind is None:
            problems.append(f"instance_types: {name} does not exist in {place.region}")
            continue
        image = facts.images.get(family(kind))
        if image is None:
            problems.append(
                f"instance_types: {name} needs an image of family {family(kind)}, and {place.region} has none "
                f"({env.images.get(family(kind), 'not set')}); set images.{family(kind)} in cdk.json"
            )
            continue
        if request.volume_gb is not None and request.volume_gb < image.snapshot_gb:
            problems.append(
                f"volume_gb: {request.volume_gb} asked for, the image {image.id} needs at least {image.snapshot_gb}"
            )
        zones = [zone for zone in place.zones if zone.name in facts.zones.get(name, set())]
        if not zones:
            ours = ", ".join(zone.name for zone in place.zones)
            problems.append(f"instance_types: no zone of the deployment ({ours}) offers {name}")
        rungs += [
            Rung(
                region=place.region,
                zone=zone.name,
                instance_type=name,
                market=request.market,
                image=image,
                cluster=kind.cluster and request.nodes > 1,
            )
            for zone in zones
        ]
    return rungs, problems


def _code_problems(request: Request, code: Object | None) -> list[str]:
    if code is None:
        return [f"code: there is no object {request.code}, or it may not be read"]
    if code.size == 0:
        return [f"code: {request.code} is empty"]
    if code.size > MOST_CODE:
        return [
            f"code: {request.code} has {code.size / 1024**3:.1f} GB; allowed: up to 5 GB (put data into data buckets)"
        ]
    return []


def _code(request: Request, job: str, found: Object) -> Code:
    ending = next(ending for ending in ARCHIVES if request.code.endswith(ending))
    return Code(
        key=keys.JobPrefix(job).code(f"code{ending}"),
        source=request.code,
        source_version=found.version,
        size=found.size,
    )
