"""Decides about the image of a job's container: where nodes pull it, whether it fits them, and what it needs of the request."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from admission.request import JobRequest
from aws.facts import InstanceType, StoredImage
from contract import names
from contract.containers import ARCHITECTURES, UNPACKED, Container, repository_arn
from contract.environments import AdmissionEnvironment
from contract.health import HealthCheck
from contract.images import ContainerImage, parsed
from contract.registries import Registries
from refusals.wording import plain

TAGS_OF_CONTAINERS = "tags of AWS's containers begin with version and device, as in 2.9-gpu; copy public images in (docs/guides/images.md)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLook:
    """What the registry of one region says of the image."""

    image: ContainerImage
    """As nodes there would pull it."""
    stored: StoredImage | None = None
    """None where it lacks the image, or does not tell."""
    trouble: str = ""
    """Why it does not tell; empty where it does."""
    other: str = ""
    """The digest of another image that the tag names there; empty where the registry has the one that the job runs."""


def registries(env: AdmissionEnvironment) -> Registries:
    """Returns the registries of the deployment, and those of AWS's containers."""
    partition, account = env.instance_profile.split(":")[1], env.instance_profile.split(":")[4]
    return Registries(
        deployment=env.deployment,
        account=account,
        suffix="amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com",
        repositories=env.repositories,
        base_accounts=env.base_accounts,
    )


def pulled(request: JobRequest, regions: Iterable[str], env: AdmissionEnvironment) -> dict[str, ContainerImage]:
    """Returns the image's address in each region's registry; empty for a request without an image, and for one that jobs may not use."""
    if request.image is None or problems_of_name(request, env):
        return {}
    image, where = parsed(request.image), registries(env)
    return {region: found for region in regions if (found := where.in_region(image, region))}


def repositories(request: JobRequest, env: AdmissionEnvironment, partition: str) -> list[str]:
    """Returns the ARNs of the repositories of which a job's keys have to speak, of every region in which it might run."""
    images = pulled(request, env.regions, env).values()
    return list(dict.fromkeys(repository_arn(f"{one.registry}/{one.repository}", partition) for one in images))


def _copying(image: ContainerImage, env: AdmissionEnvironment) -> str:
    """The input with which that machine copies the image in."""
    given = {"copy": plain(str(image), 300), "repository": env.repositories[0], "tag": image.tag or "v1"}
    return json.dumps(given)


def words(request: JobRequest) -> list[str]:
    """Returns the words that run, in a container too; none where the image's entry point does, which only its registry knows."""
    return [*request.command, *request.arguments] if request.command else []


def problems_of_name(request: JobRequest, env: AdmissionEnvironment) -> list[str]:
    """Rejects an image that jobs of the deployment may not pull, whatever its registry says."""
    if request.image is None:
        return []
    image, where, known = parsed(request.image), f"image: {plain(request.image)}", registries(env)
    ours = ", ".join(env.repositories)
    if known.is_ours(image):
        return []
    if not image.registry:
        return [] if known.awss else [f"{where} is in no repository of {env.deployment}; allowed: {ours}"]
    if not image.account:
        return [
            f"{where} is in a registry that nodes do not log in to; allowed: private ECR registries (the machine "
            f"{names.build_machine(env.deployment)} copies an image from elsewhere into the deployment's own: "
            f"{_copying(image, env)}, docs/guides/images.md)"
        ]
    if image.account == known.account:
        return [f"{where} is not in a repository of {env.deployment}; allowed: {ours}"]
    accounts = {known.account, *known.awss, *env.copy_accounts}
    if image.account not in accounts:
        return [
            f"{where} is in a registry of account {image.account}; allowed: registries of {', '.join(sorted(accounts))} "
            "(copy_accounts in cdk.json)"
        ]
    return []


def problems(request: JobRequest, looks: Mapping[str, ImageLook], env: AdmissionEnvironment) -> list[str]:
    """Reasons against the request that are the same in every region. `looks`: by region, of those that were asked."""
    if request.image is None:
        return []
    found = problems_of_name(request, env)
    if request.health is HealthCheck.DEEP:
        found.append(
            "health: deep measures with the PyTorch of the machine, and the training has that of its image; allowed: quick, or off"
        )
    if found or request.command or (chosen := _chosen(looks)) is None:
        return found
    where = f"image: {plain(request.image)}"
    bare = [one.architecture for one in chosen.platforms if not one.entry_point]
    if bare and request.arguments:
        return [
            f"arguments: {plain(request.image)} has no entry point that would take them; allowed: command beside them"
        ]
    if any(not one.entry_point and not one.command for one in chosen.platforms):
        return [f"{where} has no entry point and no command of its own; allowed: command in the request"]
    return []


def region_problems(
    request: JobRequest, region: str, look: ImageLook | None, env: AdmissionEnvironment, *, field: str
) -> list[str]:
    """What stands against the region because of its registry; `field` is the request's field that names the region."""
    if request.image is None or problems_of_name(request, env):
        return []
    where = f"image: {plain(request.image)}"
    if look is None:
        return [
            f"{where} is one of AWS's Deep Learning Containers, of which no registry in {region} is known; allowed: regions of {field} "
            f"that have one, or a copy in a repository of {env.deployment} (docs/guides/images.md)"
        ]
    image = look.image
    if look.trouble:
        return [
            f"{where} cannot be looked at in {image.registry} ({plain(look.trouble, 200)}); allowed: an image that can be read there"
        ]
    if look.other:
        return [
            f"{where} is another image in {region} ({look.other}), whose registry lacks the job's, {image.digest}; allowed: a digest that "
            f"every region of {field} has"
        ]
    if look.stored is None:
        theirs = f"; {TAGS_OF_CONTAINERS}" if registries(env).is_awss(image) else ""
        return [
            f"{where} does not exist in {region} ({plain(str(image), 300)}); allowed: repository and tag of an image that stands there"
            f"{theirs}"
        ]
    return []


def architecture_problems(request: JobRequest, kind: InstanceType, look: ImageLook | None) -> list[str]:
    """Rejects an instance type for whose processors the image has nothing."""
    if request.image is None or look is None or look.stored is None or not look.stored.platforms:
        return []
    there = {ARCHITECTURES.get(one.architecture, one.architecture) for one in look.stored.platforms}
    if there & set(kind.architectures):
        return []
    return [
        f"image: {plain(request.image)} is for {', '.join(sorted(there))}, and {kind.name} has {' or '.join(kind.architectures)}; "
        "allowed: an image for the processors of the type"
    ]


def agreed(looks: Mapping[str, ImageLook]) -> StoredImage | None:
    """Returns the image that the job runs everywhere: that of the first region whose registry has it."""
    return _chosen(looks)


def _chosen(looks: Mapping[str, ImageLook]) -> StoredImage | None:
    return next((look.stored for look in looks.values() if look.stored is not None and not look.other), None)


def size(stored: StoredImage | None) -> int:
    """Returns the bytes that a node pulls at most: those of the largest of the image's platforms."""
    return max((one.size for one in stored.platforms), default=0) if stored else 0


def room(looks: Mapping[str, ImageLook]) -> int:
    """Returns the bytes of disk that the image takes."""
    return UNPACKED * size(_chosen(looks))


def chosen(request: JobRequest, looks: Mapping[str, ImageLook], regions: Collection[str]) -> Container | None:
    """The job's container, whose nodes run in these regions."""
    stored = _chosen(looks)
    if request.image is None or stored is None:
        return None
    return Container(
        source=request.image,
        digest=stored.digest,
        repositories={
            region: f"{look.image.registry}/{look.image.repository}"
            for region, look in looks.items()
            if region in regions
        },
        size=size(stored),
        arguments=tuple(request.arguments),
    )
