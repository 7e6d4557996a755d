"""Decides how one of the platform's own images gets into every region, and what the status of its build means."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from aws.facts import GONE, Status
from aws.pinned import Pinned
from contract import names
from contract.errors import BuildFailed, StillBuilding
from contract.image_environments import OwnImagesEnvironment
from contract.images import Base, BuildOrder, Context

AGAIN = 'Deploy again once the reason is gone; until then no grid can start. docs/guides/images.md, "The platform\'s own images".'
SUCCEEDED = "SUCCEEDED"


class How(str, Enum):
    """How an image gets into every region."""

    BUILT = "built"
    COMPLETED = "completed"
    """An earlier push reached some regions: their image is copied to the others, and nothing is built."""
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedImage:
    """An image that a deploy asks for."""

    tag: str
    base: str
    """Address of the base image, from the settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of the image, its context and its base."""

    standing: Mapping[str, str] = field(default_factory=dict)
    """Digest under the tag by region; regions without the tag are left out."""
    no_repository: tuple[str, ...] = ()
    """Regions without the repository."""
    ours: Collection[str] = ()
    """Digests that a build of ours has recorded under the tag."""
    context: Pinned | None = None
    base: Base | None = None
    """The digest behind the base's address that the first build recorded."""


def execution(tag: str, request_id: str) -> str:
    """Returns the name of the build's execution for a CloudFormation request: a repeated request gives the same build."""
    return f"{tag}-{request_id.replace('-', '')}"


def missing(status: Status) -> bool:
    """Whether the build does not exist yet."""
    return status.name == GONE


def plan(image: WantedImage, facts: Facts, env: OwnImagesEnvironment) -> tuple[How, BuildOrder | None]:
    """Returns what to do, and the build for it. Raises BuildFailed rather than believe an image that no build of ours recorded."""
    repository = names.repository(env.deployment, names.PLATFORM)
    if facts.no_repository:
        raise BuildFailed(f"{', '.join(facts.no_repository)} has no repository {repository}: deploy the region first.")
    _believe(image, facts, repository)
    absent = tuple(region for region in env.regions if region not in facts.standing)
    if not absent:
        return How.UNCHANGED, None
    order = BuildOrder(
        account=env.account,
        suffix=env.suffix,
        home_region=env.home_region,
        repository=repository,
        tag=image.tag,
        regions=absent,
    )
    if facts.standing:
        region = next(one for one in env.regions if one in facts.standing)
        return How.COMPLETED, replace(
            order, source=str(replace(order.target(region), tag="", digest=facts.standing[region]))
        )
    if facts.context is None:
        raise BuildFailed(f"The context of {image.tag} is gone: deploy again, which uploads it.")
    return How.BUILT, replace(
        order,
        context=Context(
            bucket=facts.context.bucket,
            key=facts.context.key,
            version=facts.context.version,
            etag=facts.context.etag,
        ),
        base=image.base,
        base_digest=_base_digest(image, facts),
        cache=names.platform_cache(env.deployment),
        records=env.bucket,
    )


def _believe(image: WantedImage, facts: Facts, repository: str) -> None:
    """Raises BuildFailed unless what stands under the tag is one image, and a build of ours made it."""
    told = ", ".join(f"{region} has {digest}" for region, digest in sorted(facts.standing.items()))
    command = f"aws ecr batch-delete-image --repository-name {repository} --image-ids imageTag={image.tag}"
    delete = f"Delete the tag there ({command}), and deploy again."
    if strange := sorted(set(facts.standing.values()) - set(facts.ours)):
        raise BuildFailed(
            f"{repository}:{image.tag} exists already, and no build of the platform recorded {', '.join(strange)}: {told}. {delete}"
        )
    if len(set(facts.standing.values())) > 1:
        raise BuildFailed(f"{repository}:{image.tag} is a different image in different regions: {told}. {delete}")


def _base_digest(image: WantedImage, facts: Facts) -> str:
    """Returns the base image's digest; empty for the first build with this base, which records it."""
    if facts.base is None:
        return image.base.partition("@")[2]
    if facts.base.address != image.base:
        raise BuildFailed(f"The record of the base image {image.base} names another one, {facts.base.address}.")
    return facts.base.digest


def judge(tag: str, status: Status, *, now: float, since: float, patience_s: float) -> None:
    """Returns normally once every region has the image.

    Raises StillBuilding while waiting may help, and BuildFailed when it cannot: the build failed, or the patience is over.
    """
    if status.name == SUCCEEDED:
        return
    if status.name not in Status.RUNS and not missing(status):
        raise BuildFailed(f"The image {tag} was not built ({status.name}, {status.error}): {status.cause}\n{AGAIN}")
    if now >= since + patience_s:
        raise BuildFailed(
            f"The image {tag} is still being built after {(now - since) / 60:.0f} minutes; a new account runs one build at a "
            f"time, or none until AWS raises its quota. {AGAIN}"
        )
    raise StillBuilding(f"the image {tag} is being built")
