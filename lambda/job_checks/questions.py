"""Lists what to ask AWS about a request: well-formed names, and only places that the deployment may read."""

from __future__ import annotations

from dataclasses import dataclass

from contract import names
from contract.environments import JobChecksEnvironment
from contract.images import ContainerImage
from contract.jobs import Market
from git_code.commit import GitCommit, list_host_problems
from job_checks.access import is_foreign_code, is_foreign_data, is_foreign_secret
from job_checks.facts import Execution
from job_checks.image_names import read_image
from job_requests.offered import is_allowed
from job_requests.request import JobRequest
from job_requests.roles import list_wanted_files, split_request


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestQuestions:
    """What to ask AWS about one request; equal ones get equal answers."""

    regions: tuple[str, ...]
    """Those in which the deployment trains."""
    auto: bool
    """Whether a region that does not answer is left out."""
    markets: tuple[Market, ...]
    instance_types: tuple[str, ...]
    reservation: str
    """Id or ARN; empty for none."""
    accelerators: str
    """What the request names in place of types; empty for nothing."""
    machine_image: str
    """Name of the machine image, in the settings; empty for that of each type."""
    mounts: bool
    """Whether the request mounts file systems."""
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
    role_images: dict[str, dict[str, ContainerImage]]
    """The same by the name of an image, of each that a role runs."""


def list_questions(request: JobRequest, execution: Execution, env: JobChecksEnvironment) -> RequestQuestions:
    """Returns what to ask AWS. Never asks about buckets and secrets that the deployment may not use."""
    regions = tuple(region for region in request.list_regions(env.home_region, env.regions) if region in env.regions)
    code = request.code if isinstance(request.code, str) else ""
    parts = split_request(request)
    types = dict.fromkeys(name for part in parts for name in part.instance_types)
    return RequestQuestions(
        regions=regions,
        auto=request.anywhere,
        markets=tuple(dict.fromkeys(one for part in parts for one in part.market.markets))
        if request.reservation is None
        else (),
        reservation=_choose_reservation(request, execution),
        instance_types=tuple(name for name in types if is_allowed(name, env.limits)),
        accelerators=next((part.accelerators for part in parts if part.accelerators), ""),
        machine_image=request.machine_image or "",
        mounts=bool(request.mounts),
        code=code if code and not is_foreign_code(code, env) else "",
        commit=_choose_commit(request.code, execution.name, env),
        files=list_wanted_files(request),
        data=tuple(location for location in request.data if not is_foreign_data(location, env)),
        secrets={name: arn for name, arn in request.secrets.items() if not is_foreign_secret(arn, execution, env)},
        source=request.resume_from if request.resume_from and request.resume_from != execution.name else "",
        images={} if request.roles else read_image(request.image, env).in_regions(regions),
        role_images={
            part.image: read_image(part.image, env).in_regions(regions)
            for part in parts
            if request.roles and part.image
        },
    )


def _choose_reservation(request: JobRequest, execution: Execution) -> str:
    """Empty where the request names none, and for a group of another account, about which AWS does not answer this one."""
    named = request.reservation or ""
    return named if not named.startswith("arn:") or named.split(":")[4] == execution.account else ""


def _choose_commit(code: str | GitCommit, job: str, env: JobChecksEnvironment) -> GitCommit | None:
    """None where there is no commit, or its host is not to be asked, or the job cannot be called so."""
    if not isinstance(code, GitCommit) or list_host_problems(code, env.git_hosts):
        return None
    return code if names.JOB_PATTERN.fullmatch(job) else None
