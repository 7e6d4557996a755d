"""Resolves the image of a job's container: where nodes pull it, whether it fits them, and what it needs of the request."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from aws.facts import StoredImage
from contract.containers import ARCHITECTURES, UNPACKED, Container
from contract.health import HealthCheck
from job_checks.facts import RegistryAnswer
from job_checks.image_names import NamedImage
from job_requests.request import JobRequest
from refusals.wording import plain

TAGS_OF_CONTAINERS = "tags of AWS's containers begin with version and device, as in 2.9-gpu; copy public images in (docs/guides/images.md)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedImage:
    """The image of a request's container, as the registries of its regions know it; all is empty for a request without an image."""

    name: str = ""
    """As the request names it."""
    stored: StoredImage | None = None
    """The image that the job runs everywhere: that of the first region whose registry has it."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Region to registry and repository from which its nodes pull it."""
    processors: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Region to the architectures, in EC2's words, of the image there; a region of which they are not known is left out."""
    against: Mapping[str, list[str]] = field(default_factory=dict)
    """Region to what stands against it because of its registry."""
    problems: Sequence[str] = ()
    """Reasons against the request that are the same in every region."""

    @property
    def size(self) -> int:
        """The bytes that a node pulls at most: those of the largest of the image's platforms."""
        return max((one.size for one in self.stored.platforms), default=0) if self.stored else 0

    @property
    def room(self) -> int:
        """The bytes of disk that the image takes."""
        return UNPACKED * self.size

    def in_regions(self, regions: Collection[str], arguments: Sequence[str]) -> Container | None:
        """Returns the job's container, whose nodes run in these regions."""
        if self.stored is None:
            return None
        return Container(
            source=self.name,
            digest=self.stored.digest,
            repositories={region: address for region, address in self.addresses.items() if region in regions},
            size=self.size,
            arguments=tuple(arguments),
        )


def resolve_image(
    request: JobRequest, named: NamedImage, regions: Sequence[str], answers: Mapping[str, RegistryAnswer]
) -> ResolvedImage:
    """Finds the image in the registries of the `regions` that the request names; `answers`: by region, of those that were asked."""
    if request.image is None:
        return ResolvedImage()
    stored, problems = find_agreed_image(answers), named.problems
    if request.health is HealthCheck.DEEP:
        problems.append(
            "health: deep measures with the machine's PyTorch, and a training in an image uses the image's; allowed: quick, or off"
        )
    if not problems and stored is not None and not request.command:
        problems = _list_entry_problems(request, request.image, stored)
    against = {region: _list_region_problems(request, region, answers.get(region), named) for region in regions}
    return ResolvedImage(
        name=request.image,
        stored=stored,
        addresses={region: f"{one.image.registry}/{one.image.repository}" for region, one in answers.items()},
        processors={
            region: {ARCHITECTURES.get(one.architecture, one.architecture) for one in answer.stored.platforms}
            for region, answer in answers.items()
            if answer.stored and answer.stored.platforms
        },
        against={} if named.problems else against,
        problems=problems,
    )


def find_agreed_image(answers: Mapping[str, RegistryAnswer]) -> StoredImage | None:
    """Returns the image that the job runs everywhere: that of the first region whose registry has it."""
    return next((one.stored for one in answers.values() if one.stored is not None and not one.other), None)


def _list_entry_problems(request: JobRequest, name: str, stored: StoredImage) -> list[str]:
    """Rejects a request without a command whose image has nothing to run, or nothing that would take its arguments."""
    if request.arguments and any(not one.entry_point for one in stored.platforms):
        return [f"arguments: {plain(name)} has no entry point that would take them; allowed: command beside them"]
    if any(not one.entry_point and not one.command for one in stored.platforms):
        return [f"image: {plain(name)} has no entry point and no command of its own; allowed: command in the request"]
    return []


def _list_region_problems(
    request: JobRequest, region: str, answer: RegistryAnswer | None, named: NamedImage
) -> list[str]:
    """Lists what stands against the region because of its registry."""
    where, field = f"image: {plain(named.name)}", request.region_field
    if answer is None:
        return [
            f"{where} is one of AWS's Deep Learning Containers, and the settings have no registry of these in {region}; allowed: {field} "
            f"with such a registry, or a copy in a repository of {named.registries.deployment} (docs/guides/images.md)"
        ]
    image = answer.image
    if answer.trouble:
        return [
            f"{where} cannot be read in {image.registry} ({plain(answer.trouble, 200)}); allowed: an image that can be read there"
        ]
    if answer.other:
        return [
            f"{where} is another image in {region} ({answer.other}), and the registry there lacks {image.digest}; allowed: a digest "
            f"that every region of {field} has"
        ]
    if answer.stored is None:
        theirs = f"; {TAGS_OF_CONTAINERS}" if named.registries.is_awss(image) else ""
        return [
            f"{where} does not exist in {region} ({plain(str(image), 300)}); allowed: repository and tag of an image that exists there"
            f"{theirs}"
        ]
    return []
