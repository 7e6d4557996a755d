"""Says which instance types a deployment allows, and what a region offers of each: its machine image, its zones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws.facts import InstanceType
from contract import names
from contract.environments import JobChecksEnvironment
from contract.jobs import Ami
from job_checks.containers import ResolvedImage
from job_checks.facts import RegionFacts
from job_requests.request import JobRequest
from refusals.wording import plain


def family(kind: InstanceType) -> str:
    """Returns the family of images that a type needs: P3's GPUs need the proprietary driver, and Neuron devices AWS's own, both of which
    the common image lacks."""
    if kind.name.split(".")[0] in {"p3", "p3dn"}:
        return "p3"
    if kind.neuron:
        return "neuron"
    return "arm64" if "arm64" in kind.architectures else "x86_64"


def find_setting(request: JobRequest, kind: InstanceType, env: JobChecksEnvironment) -> str:
    """Returns what the settings say of the image for a type: an AMI id or the name of a parameter; empty where they say nothing."""
    return env.machine_images.get(request.machine_image or "") or env.images.get(family(kind), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What one region has of one instance type."""

    kind: InstanceType | None
    """None where the region lacks the type."""
    image: Ami | None
    """What nodes of the type start from; None where the region has no image for it."""
    zones: tuple[str, ...]
    """Our zones in which nodes of the type can run."""
    problems: list[str]
    """What stands against the type in the region; a disk that is too small for the image leaves the zones as they are."""


def list_offers(
    request: JobRequest,
    region: str,
    facts: RegionFacts,
    types: Sequence[str],
    env: JobChecksEnvironment,
    image: ResolvedImage,
    *,
    is_usable: bool,
) -> dict[str, Offer]:
    """Returns by instance type what the region offers of those `types`. `image` is the container's. `is_usable`: whether nothing stands
    against the region itself; otherwise no node can run there."""
    found = {}
    for name in types:
        kind = facts.types.get(name)
        if kind is None:
            lacks = f"instance_types: {name} does not exist in {region}; allowed: EC2 types that the region has"
            found[name] = Offer(kind=None, image=None, zones=(), problems=[lacks])
            continue
        ami = facts.images.get(family(kind))
        against = _list_image_problems(request, kind, ami, region, env) or _list_processor_problems(kind, image, region)
        can_run = is_usable and not against
        zones = tuple(zone for zone in facts.our_zones if can_run and zone in facts.zones.get(name, set()))
        problems = against or _list_size_problems(ami, request.volume_gb)
        if can_run and not zones:
            ours = ", ".join(facts.our_zones)
            problems.append(
                f"instance_types: no zone of the deployment offers {name}; allowed: types that {ours} offer"
            )
        found[name] = Offer(kind=kind, image=ami, zones=zones, problems=problems)
    return found


def _list_image_problems(
    request: JobRequest, kind: InstanceType, image: Ami | None, region: str, env: JobChecksEnvironment
) -> list[str]:
    """Rejects a type whose nodes would have no machine image, one for other processors, or one that the launcher may not use."""
    if image is None:
        return [_describe_missing_image(request, kind, region, env)]
    if image.architecture and image.architecture not in kind.architectures:
        field = "instance_types" if request.machine_image is None else "machine_image"
        return [
            f"{field}: {kind.name} would start from {image.id}, an image for {image.architecture}; allowed: images for "
            f"{' or '.join(kind.architectures)}"
        ]
    owners = (names.AWS_IMAGES, env.instance_profile.split(":")[4], *env.image_owners)
    if image.owner not in owners:
        return [
            f"instance_types: {kind.name} would start from {image.id}, an image of {image.owner or 'an unknown owner'}; allowed: "
            f"images of {', '.join(owners)} (image_owners in cdk.json names others than AWS and this account)"
        ]
    return []


def _describe_missing_image(request: JobRequest, kind: InstanceType, region: str, env: JobChecksEnvironment) -> str:
    if request.machine_image is not None:
        setting = env.machine_images.get(request.machine_image, "")
        return f"machine_image: {request.machine_image} ({setting}) names no image in {region}; allowed: an image that the region has"
    name = family(kind)
    setting = f"{env.images[name]} names none" if name in env.images else "the settings name none"
    return (
        f"instance_types: {kind.name} needs an image of family {name}, and {setting} in {region}; "
        f"allowed: types whose images.<family> in cdk.json names an image ({', '.join(sorted(env.images))} are set)"
    )


def _list_processor_problems(kind: InstanceType, image: ResolvedImage, region: str) -> list[str]:
    """Rejects a type for whose processors the container's image has nothing."""
    there = image.processors.get(region)
    if there is None or set(there) & set(kind.architectures):
        return []
    return [
        f"image: {plain(image.name)} is for {', '.join(sorted(there))}, and {kind.name} has {' or '.join(kind.architectures)}; "
        "allowed: an image for the processors of the type"
    ]


def _list_size_problems(image: Ami | None, volume_gb: int | None) -> list[str]:
    """Rejects a size below the image's snapshot, from which EC2 makes no smaller disk."""
    if image is None or volume_gb is None or volume_gb >= image.snapshot_gb:
        return []
    return [f"volume_gb: {volume_gb} is too small for the image {image.id}; allowed: at least {image.snapshot_gb}"]
