"""Decides what an image needs: facts in, an order for CodeBuild or every reason against it out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from aws.pinned import Pinned
from contract import keys, names
from contract.errors import HostAway
from contract.image_environments import ImageBuildEnvironment
from contract.images import MOST_ORDER, BuildOrder, ContainerImage, Context, registry
from git_code.commit import PASSING, GitCommit, NotFetched, list_fetch_problems, list_host_problems
from image_build.request import ImageRequest
from refusals.addresses import Address
from refusals.places import is_offered
from refusals.wording import plain, refusal

MOST_CONTEXT = 1024**3
OF_DEPLOYS = (names.PLATFORM, names.PLATFORM_CACHE, names.BUILD_CACHE)
"""Repositories that no request may name, whatever the settings say: what people build must never become a part of the platform."""


class How(str, Enum):
    """How an image gets into every region."""

    BUILT = "built"
    COPIED = "copied"
    COMPLETED = "completed"
    """An earlier push reached some regions: their image is copied to the others, and nothing is built."""
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageQuestions:
    """The parts of a request that are worth looking up."""

    tag: bool
    context: str
    """Empty: nothing to look up; the same for the next fields."""
    commit: GitCommit | None
    """The commit that is the context."""
    images: tuple[ContainerImage, ...]
    """Images in private registries: the base, the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """AWS's answers to the questions."""

    standing: Mapping[str, str] = field(default_factory=dict)
    """Digest under the tag by region; regions without the tag are left out."""
    no_repository: tuple[str, ...] = ()
    """Regions without the repository."""
    context: Pinned | None = None
    denied: str = ""
    """The error code with which S3 refused to look at the context."""
    not_fetched: NotFetched | None = None
    """Why the commit that is the context was not fetched."""
    archive: tuple[str, ...] = ()
    """What is wrong inside the context, each as the second half of a line."""
    absent: frozenset[ContainerImage] = frozenset()
    """Images that their registry lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The work to do."""

    how: How
    repository: str
    """Full name of the repository."""
    tag: str
    order: BuildOrder | None
    """The build; None when there is nothing to do."""


def base_image(request: ImageRequest, env: ImageBuildEnvironment) -> ContainerImage | None:
    """Returns the full address of the container for which `base` is a short name."""
    if not request.base or not env.base_account:
        return None
    repository, _, tag = request.base.partition(":")
    return ContainerImage(registry(env.base_account, env.home_region, env.suffix), repository, tag)


def questions(request: ImageRequest, env: ImageBuildEnvironment) -> ImageQuestions:
    """Returns what to look up. Never asks about buckets, repositories and registries that the deployment may not use."""
    source = ContainerImage.parse(request.image) if request.image else None
    private = [one for one in (base_image(request, env), source) if one and one.account]
    commit = request.context if isinstance(request.context, GitCommit) else None
    address = "" if isinstance(request.context, GitCommit) else request.context or ""
    return ImageQuestions(
        tag=bool(request.tag) and request.repository in env.repositories and request.repository not in OF_DEPLOYS,
        context=address if address and not _foreign(Address.parse(address), env) else "",
        commit=commit if commit and not list_host_problems(commit, env.git_hosts) else None,
        images=tuple(one for one in private if one.account in _accounts(env)),
    )


def decide(request: ImageRequest, facts: ImageFacts, env: ImageBuildEnvironment, problems: Iterable[str] = ()) -> Plan:
    """Returns the plan. Raises InvalidRequest with every reason against the request, those in `problems` (found while reading) first, and
    HostAway where there is none but that a git host does not answer."""
    found = [
        *problems,
        *_repository_problems(request, facts, env),
        *_tag_problems(request, facts, env),
        *_context_problems(request, facts, env),
        *_base_problems(request, facts, env),
        *_copy_problems(request, facts, env),
    ]
    needed = facts.not_fetched and not facts.standing  # what stands somewhere is copied, and needs no context
    plan = None if found or needed else _plan(request, facts, env)
    if plan and plan.order and (size := len(plan.order.text())) > MOST_ORDER:
        found = [
            f"build_arguments: make an order of {size:,} characters; allowed: up to {MOST_ORDER:,} with everything else "
            "in it (long values belong in a file of the context)"
        ]
    if found:
        raise refusal(found)
    if plan is None:
        raise HostAway(_explain_away(request, facts, env))
    return plan


def _explain_away(request: ImageRequest, facts: ImageFacts, env: ImageBuildEnvironment) -> str:
    assert isinstance(request.context, GitCommit)
    assert facts.not_fetched is not None
    return "; ".join(list_fetch_problems(request.context, facts.not_fetched, env.git_hosts, "context"))


def _plan(request: ImageRequest, facts: ImageFacts, env: ImageBuildEnvironment) -> Plan:
    repository = names.repository(env.deployment, request.repository)
    missing = tuple(region for region in env.regions if region not in facts.standing)
    order = BuildOrder(
        account=env.account,
        suffix=env.suffix,
        home_region=env.home_region,
        repository=repository,
        tag=request.tag,
        regions=missing,
    )

    def plan(how: How, order: BuildOrder | None) -> Plan:
        return Plan(how=how, repository=repository, tag=request.tag, order=order)

    if not missing:
        return plan(How.UNCHANGED, None)
    if facts.standing:
        region = next(one for one in env.regions if one in facts.standing)
        there = replace(order.target(region), tag="", digest=facts.standing[region])
        return plan(How.COMPLETED, replace(order, source=str(there)))
    if request.image:
        return plan(How.COPIED, replace(order, source=str(ContainerImage.parse(request.image))))
    assert facts.context is not None
    pinned, base = facts.context, base_image(request, env)
    built = replace(
        order,
        context=Context(bucket=pinned.bucket, key=pinned.key, version=pinned.version, etag=pinned.etag),
        base=str(base) if base else "",
        arguments=dict(request.build_arguments),
        platform=request.platform,
        cache=names.build_cache(env.deployment),
    )
    return plan(How.BUILT, built)


def _repository_problems(request: ImageRequest, facts: ImageFacts, env: ImageBuildEnvironment) -> list[str]:
    if not request.repository:
        return []
    ours = ", ".join(env.repositories)
    if request.repository in OF_DEPLOYS:
        return [f"repository: {request.repository} takes the images of deploys only; allowed: {ours}"]
    if request.repository not in env.repositories:
        return [f"repository: {plain(request.repository)} is not a repository of {env.deployment}; allowed: {ours}"]
    return [
        f"repository: {region} has no {names.repository(env.deployment, request.repository)}; allowed: deploy the region first"
        for region in facts.no_repository
    ]


def _tag_problems(request: ImageRequest, facts: ImageFacts, env: ImageBuildEnvironment) -> list[str]:
    """Rejects a tag that exists anywhere, except one image that an earlier push could not bring to every region."""
    digests = sorted(set(facts.standing.values()))
    where = [region for region in env.regions if region in facts.standing]
    if len(digests) > 1:
        told = ", ".join(f"{region} has {facts.standing[region]}" for region in where)
        return [
            f"tag: {request.tag} is a different image in different regions: {told}; allowed: a tag that is not taken"
        ]
    if len(where) == len(env.regions) and where and not request.if_absent:
        return [
            f"tag: {request.tag} is taken in every region ({digests[0]}), and tags never move; "
            'allowed: a tag that is not taken, or "if_absent": true to use the image that is there'
        ]
    return []


def _foreign(address: Address, env: ImageBuildEnvironment) -> bool:
    return not is_offered(address, env.bucket, env.data_buckets)


def _context_problems(request: ImageRequest, facts: ImageFacts, env: ImageBuildEnvironment) -> list[str]:
    if not request.context:
        return []
    where = f"context: {plain(str(request.context))}"
    if isinstance(request.context, GitCommit):
        if against := list_host_problems(request.context, env.git_hosts, "context"):
            return against
        if facts.not_fetched and facts.not_fetched.trouble not in PASSING:
            return list_fetch_problems(request.context, facts.not_fetched, env.git_hosts, "context")
        return [f"{where} {problem}" for problem in facts.archive]
    if _foreign(Address.parse(request.context), env):
        ours = ", ".join(f"s3://{one}/..." for one in (f"{env.bucket}/{keys.UPLOADS.rstrip('/')}", *env.data_buckets))
        return [f"{where} is not in a place for contexts; allowed: {ours} (data_buckets in cdk.json)"]
    if facts.denied:
        return [
            f"{where} cannot be checked (S3 answers {facts.denied}); allowed: an object that the deployment may read"
        ]
    found = facts.context
    if found is None:
        return [f"{where} does not exist; allowed: an archive that was uploaded before the start"]
    if found.archived:
        return [f"{where} is in an archive class of S3 and not restored; allowed: an object that can be read at once"]
    if not 0 < found.size <= MOST_CONTEXT:
        size = f"has {found.size / 1024**3:.1f} GB" if found.size else "is empty"
        return [
            f"{where} {size}; allowed: up to 1 GB (data and weights belong in S3 and not in an image, which every node "
            "would have to pull: name them in the job's data)"
        ]
    return [f"{where} {problem}" for problem in facts.archive]


def _base_problems(request: ImageRequest, facts: ImageFacts, env: ImageBuildEnvironment) -> list[str]:
    if not request.base:
        return []
    base = base_image(request, env)
    if base is None:
        return [
            f"base: AWS's registry of Deep Learning Containers in {env.home_region} is unknown; "
            "allowed: leave it out, and name the whole image in the Dockerfile"
        ]
    if base in facts.absent:
        return [
            f"base: {plain(request.base)} does not exist in {base.registry}; "
            "allowed: name and tag of a container in the list of AWS Deep Learning Containers"
        ]
    return []


def _accounts(env: ImageBuildEnvironment) -> tuple[str, ...]:
    """Accounts whose private registries may be read."""
    return tuple(one for one in (env.account, env.base_account, *env.copy_accounts) if one)


def _copy_problems(request: ImageRequest, facts: ImageFacts, env: ImageBuildEnvironment) -> list[str]:
    if not request.image:
        return []
    image = ContainerImage.parse(request.image)
    where = f"copy: {plain(request.image)}"
    if image.account and image.account not in _accounts(env):
        return [
            f"{where} lies in a private registry of account {image.account}; allowed: public registries, and private ones of "
            f"{', '.join(_accounts(env))}"
        ]
    ours = f"{env.deployment}/"
    if image.account == env.account and not image.repository.startswith(ours):
        return [f"{where} is not a repository of this deployment; allowed: {ours}..., or public registries"]
    if image in facts.absent:
        return [f"{where} does not exist; allowed: an image that can be pulled"]
    return []
