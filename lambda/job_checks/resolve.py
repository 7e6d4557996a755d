"""Resolves what a request names into what there is: code, image, machines, file systems, the job to resume from, rights."""

from __future__ import annotations

from dataclasses import dataclass, replace

from contract.environments import JobChecksEnvironment
from contract.jobs import SourceCheckpoint
from contract.mounts import JobMount
from job_checks.accelerators import check_accelerators, choose_types
from job_checks.access import check_data, check_secrets, check_settings
from job_checks.code import ResolvedCode, resolve_code
from job_checks.containers import ResolvedImage, resolve_image
from job_checks.efa import ResolvedNetwork, resolve_network
from job_checks.facts import Execution, RequestFacts
from job_checks.image_names import read_image
from job_checks.mounts import resolve_mounts
from job_checks.regions import ResolvedRegion, resolve_regions
from job_checks.resume import resolve_source
from job_requests.launchers import list_process_problems
from job_requests.offered import list_forbidden
from job_requests.request import DEFAULT_HOURS, JobRequest
from job_requests.roles import join_parts, place_problems, split_request


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedRequest:
    """A request whose names stand for something: what every later step builds on."""

    request: JobRequest
    """With instance types in place of its accelerators."""
    execution: Execution
    facts: RequestFacts
    env: JobChecksEnvironment
    hours: float
    """For how long the job may run."""
    code: ResolvedCode
    image: ResolvedImage
    network: ResolvedNetwork
    forbidden: dict[str, str]
    """Instance type to why the deployment does not allow it, for each that it does not allow."""
    regions: tuple[ResolvedRegion, ...]
    """Those of the request, in its order."""
    mounted: tuple[JobMount, ...]
    checkpoint: SourceCheckpoint | None
    """What the job begins with; None for nothing."""
    accelerator_problems: list[str]
    process_problems: list[str]
    name_problems: list[str]
    """Of other names in the request: data, secrets, the job to resume from, a machine image, a role, mounts."""
    parts: tuple[ResolvedRequest, ...] = ()
    """Of a request with roles, each role's, as if it were that of all nodes."""


def resolve(
    request: JobRequest, execution: Execution, facts: RequestFacts, env: JobChecksEnvironment
) -> ResolvedRequest:
    """Finds everything that the request names among the facts, and notes what stands against it. With roles, its code and its image stand
    for those of all roles, whose problems they have."""
    if not request.roles:
        return _resolve_part(request, execution, facts, env)
    split = split_request(request)
    parts = tuple(_resolve_part(one, execution, facts.of_image(one.image), env) for one in split)
    whole = _resolve_part(join_parts(request, [one.request for one in parts]), execution, facts, env)
    largest = max((one.image for one in parts), key=lambda one: one.room)
    return replace(
        whole,
        parts=parts,
        code=replace(whole.code, problems=place_problems(request, (one.code.problems for one in parts))),
        image=replace(largest, problems=place_problems(request, (one.image.problems for one in parts))),
    )


def _resolve_part(
    request: JobRequest, execution: Execution, facts: RequestFacts, env: JobChecksEnvironment
) -> ResolvedRequest:
    regions = request.list_regions(env.home_region, env.regions)
    trained = [region for region in regions if region in env.regions]
    accelerator_problems = check_accelerators(request, facts.accelerated, trained, env)
    request = choose_types(request, facts.accelerated, facts.offered, env.limits)
    named = read_image(request.image, env)
    image = resolve_image(request, named, regions, facts.answers)
    mounts = resolve_mounts(request.mounts, facts.file_systems)
    settings = check_settings(request, env)
    pulled = [arn for part in split_request(request) for arn in read_image(part.image, env).repositories]
    repositories = list(dict.fromkeys(pulled))
    secrets = check_secrets(request, execution, facts, env, repositories=repositories, mounted=mounts.mounted)
    data = check_data(request, facts, env)
    source = resolve_source(request, execution.name, facts.source)
    return ResolvedRequest(
        request=request,
        execution=execution,
        facts=facts,
        env=env,
        hours=request.max_hours if request.max_hours is not None else min(DEFAULT_HOURS, env.limits.max_hours),
        code=resolve_code(request, execution.name, facts, env),
        image=image,
        network=resolve_network(request.efa, request.nodes, request.instance_types, facts.types),
        regions=resolve_regions(request, regions, facts.regions, env, image, mounts.against),
        forbidden=list_forbidden(request.instance_types, env.limits),
        mounted=mounts.mounted,
        checkpoint=source.checkpoint,
        accelerator_problems=accelerator_problems,
        process_problems=list_process_problems(request, facts.types),
        name_problems=[*data, *secrets, *source.problems, *settings, *mounts.problems],
    )
