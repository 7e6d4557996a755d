"""Decides whether a request becomes a job: facts and limits in, a job or every reason against it out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from admission import (
    accelerators,
    code,
    containers,
    efa,
    images,
    machines,
    money,
    mounts,
    reservations,
    resume,
    roles,
    volumes,
)
from admission.git import GitCommit, NotFetched
from admission.images import is_allowed
from admission.ladder import Ladder, RegionFacts, asked_regions, ladder
from admission.reading import allowed
from admission.request import DEFAULT_HOURS, JobRequest
from admission.resume import SourceFacts
from aws.facts import InstanceType, Object
from contract import names, sessions
from contract.environments import AdmissionEnvironment
from contract.images import ContainerImage
from contract.jobs import Job, Market, RetryPlan
from contract.mounts import FileSystem
from contract.places import Place
from refusals.archive import Listing
from refusals.requirements import requirements_problems
from refusals.script import archive_problems, wanted_files
from refusals.wording import plain, refusal


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

    regions: tuple[str, ...]
    """Those in which the deployment trains."""
    auto: bool
    """Whether a region that cannot be asked is left out."""
    markets: tuple[Market, ...]
    instance_types: tuple[str, ...]
    reservation: str
    """Id or ARN; empty for none."""
    accelerators: bool
    """Whether the request names accelerators, of a region where the deployment trains."""
    code: str
    """The address of the code; empty where there is nothing to look up."""
    commit: GitCommit | None
    """The commit that is the code; None where there is none to fetch."""
    files: tuple[str, ...]
    """Files of the code of which more than the name is needed."""
    data: tuple[str, ...]
    secrets: dict[str, str]
    source: str
    """The job from which this one begins; empty for none."""
    images: dict[str, ContainerImage]
    """Region to the image of the container, as nodes there would pull it; empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFacts:
    """AWS's answers to the questions."""

    regions: dict[str, RegionFacts] = field(default_factory=dict)
    """Those asked for, by name."""
    code: Object | None = None
    archive: Listing | None = None
    """Contents of the archive; None where nobody could read it."""
    not_fetched: NotFetched | None = None
    """Why the commit is not there."""
    denied: dict[str, str] = field(default_factory=dict)
    """S3 address to the error code with which S3 refused to look."""
    nothing_at: tuple[str, ...] = ()
    """Data locations that hold nothing."""
    secrets_missing: tuple[str, ...] = ()
    """Environment names whose secret does not exist."""
    source: SourceFacts | None = None
    """Of the job from which this one begins; None where it names none, or itself."""
    held_by: Job | None = None
    """The job of another execution that already has the name."""


def questions(request: JobRequest, execution: Execution, env: AdmissionEnvironment) -> RequestQuestions:
    """Returns what to ask AWS. Never asks about buckets and secrets that the deployment may not use."""
    regions = tuple(region for region in asked_regions(request, env) if region in env.regions)
    return RequestQuestions(
        regions=regions,
        auto=request.anywhere,
        markets=request.market.markets if request.reservation is None else (),
        reservation=_own_reservation(request, execution),
        instance_types=tuple(name for name in request.instance_types if is_allowed(name, env.limits)),
        accelerators=request.accelerators is not None,
        code=code.address(request.code, env),
        commit=code.commit(request.code, execution.name, env),
        files=tuple(wanted_files(containers.words(request))),
        data=tuple(location for location in request.data if not code.foreign(location, env)),
        secrets={name: arn for name, arn in request.secrets.items() if not _foreign_secret(arn, execution, env)},
        source=request.resume_from if request.resume_from and request.resume_from != execution.name else "",
        images=containers.pulled(request, regions, env),
    )


def _own_reservation(request: JobRequest, execution: Execution) -> str:
    """Empty where the request names none, and for a group of another account, about which AWS answers nobody here."""
    named = request.reservation or ""
    return named if not named.startswith("arn:") or named.split(":")[4] == execution.account else ""


def admit(
    request: JobRequest,
    execution: Execution,
    facts: RequestFacts,
    env: AdmissionEnvironment,
    problems: Iterable[str] = (),
) -> Job:
    """Returns the job. Raises InvalidRequest with every reason against it, those in `problems` (found while reading) first."""
    types = {name: kind for one in facts.regions.values() for name, kind in one.types.items()}
    trained = [region for region in asked_regions(request, env) if region in env.regions]
    accelerated = _accelerated(facts)
    request = accelerators.resolved(request, accelerated, _offered(facts), env.limits)
    hours = request.max_hours if request.max_hours is not None else min(DEFAULT_HOURS, env.limits.max_hours)
    wish = reservations.Wish(account=execution.account, hours=hours, now=execution.started_at)
    made = (
        ladder(request, facts.regions, env)
        if request.reservation is None
        else reservations.reserved(request, facts.regions, env, wish)
    )
    looks = {region: one.look for region, one in facts.regions.items() if one.look}
    brought, room = volumes.brought(facts.code, facts.archive), containers.room(looks)
    disk = volumes.disk(request.volume_gb, env.limits, [rung.image for rung in made.rungs], brought + room)
    made = _paid(replace(made, rungs=money.priced(made.rungs, facts.regions, disk)), request, hours, env)
    found = [
        *_name_problems(execution, facts),
        *problems,
        *_limit_problems(request, env),
        *accelerators.problems(request, accelerated, trained, env),
        *accelerators.named(request, made.problems),
        *reservations.problems(request),
        *money.problems(request, hours),
        *efa.problems(request.efa, request.instance_types, types),
        *volumes.size_problems(request.volume_gb, env.limits, brought),
        *volumes.image_problems(request.volume_gb, room),
        *code.problems(request.code, facts.code, facts.not_fetched, facts.denied, env),
        *_archive_problems(request, facts.archive),
        *containers.problems(request, looks, env),
        *_named_problems(request, execution, facts, env),
    ]
    if found:
        raise refusal(found)
    return Job(
        id=execution.name,
        deployment=env.deployment,
        execution=execution.arn,
        owner=request.owner,
        admitted_at=execution.started_at,
        deadline=math.ceil(execution.started_at + hours * 3600),
        nodes=request.nodes,
        volume_gb=disk.gb,
        volume_iops=disk.iops,
        volume_throughput=disk.throughput,
        checkpoint_minutes=request.checkpoint_minutes,
        checkpoint_scope=request.checkpoint_scope,
        checkpoint_restore=request.checkpoint_restore,
        max_hours=hours,
        max_wait_hours=request.max_wait_hours,
        max_cost_usd=request.max_cost_usd,
        recoveries=env.limits.recoveries,
        retries=request.retries or RetryPlan(),
        home_bucket=env.bucket,
        home_region=env.home_region,
        log_group=env.log_group,
        ladder=made.rungs,
        places=_places(made, facts),
        timing=env.timing,
        master_port=env.master_port,
        agent=env.agent,
        job_role=request.job_role or "",
        stall=request.stall.meant if request.stall else None,
        resume=resume.chosen(facts.source),
        leave_on_rebalance=env.limits.leave_on_rebalance,
        notify=tuple(request.notify),
        mounted=mounts.chosen(request.mounts, _offered_files(facts)),
        left_out=made.left_out,
        container=containers.chosen(request, looks, {rung.region for rung in made.rungs}),
        **_runs(request, execution.name, facts),
        **machines.chosen(request, [types[rung.instance_type] for rung in made.rungs], env.limits),
    )


def _paid(made: Ladder, request: JobRequest, hours: float, env: AdmissionEnvironment) -> Ladder:
    """The priced ladder without places that the cap does not pay for. A reservation is refused a cap, whatever it would pay for."""
    if request.reservation is not None:
        return made
    budget = money.Budget(nodes=request.nodes, hours=hours, cap_usd=request.max_cost_usd, timing=env.timing)
    return money.affordable(made, budget)


def _archive_problems(request: JobRequest, found: Listing | None) -> list[str]:
    """Of what is in the archive. Its requirements are installed where no image brings the libraries."""
    code, words = str(request.code), containers.words(request)
    return [
        *archive_problems(code, words, found),
        *(requirements_problems(code, found) if request.image is None else []),
    ]


def _named_problems(
    request: JobRequest, execution: Execution, facts: RequestFacts, env: AdmissionEnvironment
) -> list[str]:
    """Of what the request names: data, secrets, another job, an image, a role."""
    return [
        *_data_problems(request, facts, env),
        *_secret_problems(request, execution, facts, env),
        *resume.problems(request, execution.name, facts.source),
        *images.problems(request, env),
        *roles.problems(request, env),
        *mounts.problems(request.mounts),
    ]


def _runs(request: JobRequest, name: str, facts: RequestFacts) -> dict[str, Any]:
    """The job's fields about what it runs, and with what."""
    return {
        "command": tuple(request.command),
        "code": code.record(request.code, name, facts.code),
        "environment": dict(request.environment),
        "secrets": dict(request.secrets),
        "data": tuple(request.data),
    }


def _accelerated(facts: RequestFacts) -> list[InstanceType]:
    """All types with accelerators, of a request that names accelerators, each once."""
    return list({kind.name: kind for one in facts.regions.values() for kind in one.accelerated}.values())


def _offered(facts: RequestFacts) -> set[str]:
    """Types that some zone of ours offers."""
    return {
        name
        for one in facts.regions.values()
        for name, zones in one.zones.items()
        if one.place and zones & {zone.name for zone in one.place.zones}
    }


def _places(made: Ladder, facts: RequestFacts) -> dict[str, Place]:
    """Where the nodes may run: no other region has to answer for the job to end."""
    used = dict.fromkeys(rung.region for rung in made.rungs)
    return {region: place for region in used if (place := facts.regions[region].place) is not None}


def _offered_files(facts: RequestFacts) -> dict[str, tuple[FileSystem, ...]]:
    return {region: one.file_systems for region, one in facts.regions.items()}


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
    if request.max_hours is not None and request.max_hours > limits.max_hours:
        problems.append(f"max_hours: {request.max_hours:g} is too large; allowed: {may_be['max_hours']}")
    if request.max_wait_hours > limits.max_wait_hours:
        problems.append(f"max_wait_hours: {request.max_wait_hours:g} is too large; allowed: {may_be['max_wait_hours']}")
    return problems


def _data_problems(request: JobRequest, facts: RequestFacts, env: AdmissionEnvironment) -> list[str]:
    problems = []
    for number, location in enumerate(request.data):
        where = f"data.{number}"
        problems += code.s3_problem(where, location, facts.denied, env)
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
    pulled = containers.repositories(request, env, execution.partition)
    mounted = mounts.chosen(request.mounts, _offered_files(facts))
    whose = {"partition": execution.partition, "account": execution.account}
    together = len(sessions.policy(request.secrets.values(), pulled, mounted, **whose))
    too_long = [
        f"secrets: their ARNs are together {together - sessions.MOST_POLICY} characters too long for a job's keys; allowed: about fifteen "
        "secrets, eight beside an image and mounts, of which one may hold several values as JSON"
    ]
    return (
        (too_long if together > sessions.MOST_POLICY else [])
        + foreign
        + [
            f"secrets.{name}: {plain(request.secrets[name])} does not exist or is being deleted; allowed: a secret that can be read"
            for name in facts.secrets_missing
        ]
    )
