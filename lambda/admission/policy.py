"""Decides whether a request becomes a job: facts and limits in, a job or every reason against it out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from fnmatch import fnmatchcase

from admission import roles, volumes
from admission.archive import Listing
from admission.request import DEFAULT_HOURS, JobRequest, allowed
from admission.script import archive_problems
from aws.facts import InstanceType, Object
from contract import agents, keys, names, sessions
from contract.environments import AdmissionEnvironment
from contract.jobs import Ami, Code, Job, Market, Rung
from contract.places import Place
from refusals.addresses import Address
from refusals.fields import ARCHIVE_SUFFIXES
from refusals.places import is_offered
from refusals.wording import denial, plain, refusal

MOST_CODE = 5 * 1024**3
"""S3 copies at most 5 GB in one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The execution that asks for admission."""

    arn: str
    name: str
    started_at: float

    @property
    def partition(self) -> str:
        return self.arn.split(":")[1]

    @property
    def account(self) -> str:
        return self.arn.split(":")[4]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestQuestions:
    """The parts of a request that are worth looking up: well-formed names, and places that the deployment may read."""

    region: str
    """The region asked for; empty where the deployment does not train there."""
    instance_types: tuple[str, ...]
    code: str
    """The address of the code; empty where there is nothing to look up."""
    data: tuple[str, ...]
    secrets: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFacts:
    """AWS's answers to the questions."""

    place: Place | None
    """Description of the region asked for; None where no stack describes it."""
    types: dict[str, InstanceType] = field(default_factory=dict)
    zones: dict[str, set[str]] = field(default_factory=dict)
    images: dict[str, Ami | None] = field(default_factory=dict)
    """Image by family."""
    code: Object | None = None
    archive: Listing | None = None
    """Contents of the archive; None where nobody could read it."""
    denied: dict[str, str] = field(default_factory=dict)
    """S3 address to the error code with which S3 refused to look."""
    nothing_at: tuple[str, ...] = ()
    """Data locations that hold nothing."""
    secrets_missing: tuple[str, ...] = ()
    """Environment names whose secret does not exist."""
    volume_key: str = ""
    """Default key of EBS volumes in the region asked for; empty where EC2 does not say."""
    held_by: Job | None = None
    """The job of another execution that already has the name."""


def _region(request: JobRequest, env: AdmissionEnvironment) -> str:
    return request.region or env.home_region


def family(kind: InstanceType) -> str:
    """Returns the family of images that a type needs: P3's GPUs need the proprietary driver, which the common image lacks."""
    if kind.name.split(".")[0] in {"p3", "p3dn"}:
        return "p3"
    return "arm64" if "arm64" in kind.architectures else "x86_64"


def questions(request: JobRequest, execution: Execution, env: AdmissionEnvironment) -> RequestQuestions:
    """Returns what to ask AWS. Never asks about buckets and secrets that the deployment may not use."""
    region = _region(request, env)
    trains = region in env.regions
    return RequestQuestions(
        region=region if trains else "",
        instance_types=tuple(name for name in request.instance_types if trains and _is_allowed(name, env)),
        code=request.code if request.code and not _foreign(request.code, env) else "",
        data=tuple(location for location in request.data if not _foreign(location, env)),
        secrets={name: arn for name, arn in request.secrets.items() if not _foreign_secret(arn, execution, env)},
    )


def admit(
    request: JobRequest,
    execution: Execution,
    facts: RequestFacts,
    env: AdmissionEnvironment,
    problems: Iterable[str] = (),
) -> Job:
    """Returns the job. Raises InvalidRequest with every reason against it, those in `problems` (found while reading) first."""
    ladder, against = _ladder(request, facts, env)
    brought = volumes.brought(facts.code, facts.archive)
    found = [
        *_name_problems(execution, facts),
        *problems,
        *_limit_problems(request, env),
        *against,
        *volumes.problems(facts.volume_key, _region(request, env), facts.place.volume_key if facts.place else ""),
        *volumes.size_problems(request.volume_gb, env.limits, brought),
        *_code_problems(request, facts, env),
        *archive_problems(request.code, request.command, facts.archive),
        *_data_problems(request, facts, env),
        *_secret_problems(request, execution, facts, env),
        *roles.problems(request, env),
    ]
    if found:
        raise refusal(found)
    assert facts.place is not None
    assert facts.code is not None
    disk = volumes.disk(request.volume_gb, env.limits, [rung.image for rung in ladder], brought)
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
        volume_gb=disk.gb,
        volume_iops=disk.iops,
        volume_throughput=disk.throughput,
        checkpoint_minutes=request.checkpoint_minutes,
        checkpoint_scope=request.checkpoint_scope,
        checkpoint_restore=request.checkpoint_restore,
        max_hours=hours,
        max_wait_hours=request.max_wait_hours,
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
        master_port=env.master_port,
        agent=env.agent,
        job_role=request.job_role or "",
    )


class Care(Enum):
    """What the home bucket's copy of the node agent needs before a job may name it."""

    NOTHING = "nothing"
    RENEW = "renew"
    COPY = "copy"


def care(age_s: float | None) -> Care:
    """Decides by the copy's age on S3's clock; None means that there is no copy."""
    if age_s is None:
        return Care.COPY
    return Care.RENEW if age_s > agents.FRESH_DAYS * 86400 else Care.NOTHING


def _name_problems(execution: Execution, facts: RequestFacts) -> list[str]:
    if not names.JOB_PATTERN.fullmatch(execution.name):
        return [f"name: the execution is called {plain(execution.name)}; allowed: {names.JOB_WORDS}"]
    if facts.held_by:
        return [taken(execution, facts.held_by)]
    return []


def taken(execution: Execution, job: Job | None) -> str:
    """Says why the execution cannot have the name; `job` is the one that has it, None if it was written a moment ago."""
    held = f"({job.execution})" if job else "(just now)"
    if job and job.execution == execution.arn:
        began = datetime.fromtimestamp(job.admitted_at, UTC)
        held = f"of the same name, of {began:%Y-%m-%d %H:%M} UTC, whose files are kept"
    return f"name: {execution.name} is the name of a job of another execution {held}; allowed: a name that no job had"


def _limit_problems(request: JobRequest, env: AdmissionEnvironment) -> list[str]:
    limits, may_be = env.limits, allowed(env.limits)
    problems = []
    if request.nodes > limits.max_nodes:
        problems.append(f"nodes: {plain(str(request.nodes))} is too large; allowed: {may_be['nodes']}")
    if request.market is Market.SPOT:
        problems.append(
            f"market: spot is not supported yet, and on-demand is not taken in its place; allowed: {may_be['market']}"
        )
    if request.max_hours is not None and request.max_hours > limits.max_hours:
        problems.append(f"max_hours: {request.max_hours:g} is too large; allowed: {may_be['max_hours']}")
    if request.max_wait_hours > limits.max_wait_hours:
        problems.append(f"max_wait_hours: {request.max_wait_hours:g} is too large; allowed: {may_be['max_wait_hours']}")
    if request.max_cost_usd is not None:
        problems.append(f"max_cost_usd: the cap is not enforced yet; allowed: {may_be['max_cost_usd']}")
    return problems


def _is_allowed(instance_type: str, env: AdmissionEnvironment) -> bool:
    return any(fnmatchcase(instance_type, pattern) for pattern in env.limits.instance_types)


def _ladder(request: JobRequest, facts: RequestFacts, env: AdmissionEnvironment) -> tuple[list[Rung], list[str]]:
    """Lists every type in the order of the request, in each of our zones that offers it."""
    rungs, region = list[Rung](), _region(request, env)
    problems, place, patterns = _region_problems(region, facts, env), facts.place, ", ".join(env.limits.instance_types)
    for name in request.instance_types:
        if not _is_allowed(name, env):
            problems.append(
                f"instance_types: {name} is not for this deployment; allowed: {patterns} (limits.instance_types in cdk.json)"
            )
        elif region not in env.regions:
            continue  # nothing was looked up in that region
        elif (kind := facts.types.get(name)) is None:
            problems.append(
                f"instance_types: {name} does not exist in {region}; allowed: EC2 types that the region has"
            )
        elif (image := facts.images.get(family(kind))) is None:
            problems.append(_no_image(kind, region, env))
        elif image.owner not in (owners := _image_owners(env)):
            problems.append(
                f"instance_types: {name} would start from {image.id}, an image of {image.owner or 'an unknown owner'}; allowed: "
                f"images of {', '.join(owners)} (image_owners in cdk.json names others than AWS and this account)"
            )
        elif place is not None:
            rungs += (more := _rungs(request, kind, image, place, facts.zones.get(name, set())))
            problems += _place_problems(request, name, image, more, place)
    return rungs, problems


def _region_problems(region: str, facts: RequestFacts, env: AdmissionEnvironment) -> list[str]:
    if region not in env.regions:
        trains = ", ".join(env.regions)
        return [
            f"region: the deployment does not train in {region}; allowed: {trains} (regions with a cidr in cdk.json)"
        ]
    if facts.place is None or not facts.place.zones:
        parameter = names.region_parameter(env.deployment, region)
        what = "is missing" if facts.place is None else "has no zones"
        return [f"region: {region} has no Region stack that trains ({parameter} {what}); allowed: deploy it first"]
    return []


def _image_owners(env: AdmissionEnvironment) -> tuple[str, ...]:
    """Whose images the launcher may use."""
    account = env.instance_profile.split(":")[4]
    return (names.AWS_IMAGES, account, *env.image_owners)


def _rungs(request: JobRequest, kind: InstanceType, image: Ami, place: Place, zones: set[str]) -> list[Rung]:
    return [
        Rung(
            region=place.region,
            zone=zone.name,
            instance_type=kind.name,
            market=request.market,
            image=image,
            cluster=kind.cluster and request.nodes > 1,
        )
        for zone in place.zones
        if zone.name in zones
    ]


def _no_image(kind: InstanceType, region: str, env: AdmissionEnvironment) -> str:
    name = family(kind)
    setting = f"{env.images[name]} names none" if name in env.images else "none is set"
    return (
        f"instance_types: {kind.name} needs an image of family {name}, and in {region} {setting}; "
        f"allowed: types whose images.<family> in cdk.json names an image ({', '.join(sorted(env.images))} are set)"
    )


def _place_problems(request: JobRequest, name: str, image: Ami, rungs: list[Rung], place: Place) -> list[str]:
    problems = volumes.too_small_for(image, request.volume_gb)
    if not rungs:
        ours = ", ".join(zone.name for zone in place.zones)
        problems.append(f"instance_types: {name} is offered in no zone of ours; allowed: types that {ours} offer")
    return problems


def _foreign(location: str, env: AdmissionEnvironment) -> bool:
    return not is_offered(Address.parse(location), env.bucket, env.data_buckets)


def _s3_problem(field: str, location: str, facts: RequestFacts, env: AdmissionEnvironment) -> list[str]:
    if _foreign(location, env):
        ours = [f"s3://{env.bucket}/{keys.UPLOADS}...", *(f"s3://{bucket}/..." for bucket in env.data_buckets)]
        return [
            f"{field}: {plain(location)} is in no bucket that jobs may read; allowed: {', '.join(ours)} (data_buckets in cdk.json)"
        ]
    if code := facts.denied.get(location):
        return [f"{field}: {plain(location)} cannot be read: {denial(code)}; allowed: what the deployment may read"]
    return []


def _code_problems(request: JobRequest, facts: RequestFacts, env: AdmissionEnvironment) -> list[str]:
    if not request.code:
        return []
    if against := _s3_problem("code", request.code, facts, env):
        return against
    where, code = f"code: {plain(request.code)}", facts.code
    if code is None:
        return [f"{where} does not exist; allowed: an archive that was uploaded before the start"]
    if code.archived:
        return [f"{where} is in an archive class of S3 and not restored; allowed: an object that can be read at once"]
    if not 0 < code.size <= MOST_CODE:
        size = f"has {code.size / 1024**3:.1f} GB" if code.size else "is empty"
        return [f"{where} {size}; allowed: up to 5 GB (large data belongs into a data bucket)"]
    return []


def readable(code: Object) -> bool:
    """Whether an archive is worth a look."""
    return not code.archived and 0 < code.size <= MOST_CODE


def _data_problems(request: JobRequest, facts: RequestFacts, env: AdmissionEnvironment) -> list[str]:
    problems = []
    for number, location in enumerate(request.data):
        where = f"data.{number}"
        problems += _s3_problem(where, location, facts, env)
        if location in facts.nothing_at:
            problems.append(f"{where}: there is nothing at {plain(location)}; allowed: objects and folders that exist")
    return problems


def _foreign_secret(arn: str, execution: Execution, env: AdmissionEnvironment) -> bool:
    return not arn.startswith(tuple(_secret_paths(execution, env)))


def _secret_paths(execution: Execution, env: AdmissionEnvironment) -> list[str]:
    """Prefixes of the ARNs that nodes may read, by region."""
    prefix = names.secret_prefix(env.deployment)
    return [
        f"arn:{execution.partition}:secretsmanager:{region}:{execution.account}:secret:{prefix}"
        for region in dict.fromkeys((env.home_region, *env.regions))
    ]


def _secret_problems(
    request: JobRequest, execution: Execution, facts: RequestFacts, env: AdmissionEnvironment
) -> list[str]:
    paths = " or ".join(f"{path}..." for path in _secret_paths(execution, env))
    foreign = [
        f"secrets.{name}: {plain(arn)} is not a secret that jobs may read; allowed: {paths}"
        for name, arn in request.secrets.items()
        if _foreign_secret(arn, execution, env)
    ]
    together = len(sessions.policy(request.secrets.values()))
    too_long = [
        f"secrets: their ARNs are together {together - sessions.MOST_POLICY} characters too long for a job's keys; allowed: about fifteen "
        "secrets, of which one may hold several values as JSON"
    ]
    return (
        (too_long if together > sessions.MOST_POLICY else [])
        + foreign
        + [
            f"secrets.{name}: {plain(request.secrets[name])} does not exist or is being deleted; allowed: a secret that can be read"
            for name in facts.secrets_missing
        ]
    )


def _code(request: JobRequest, job: str, found: Object) -> Code:
    ending = next(ending for ending in ARCHIVE_SUFFIXES if request.code.endswith(ending))
    return Code(
        key=keys.JobPrefix(job).code(f"code{ending}"),
        source=request.code,
        source_version=found.version,
        size=found.size,
    )
