"""Images: how repositories, tags and addresses look, what the Build machine orders, and what it answers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
"""ECR's own pattern of a repository's name; 2 to 256 characters."""
REPOSITORY_LENGTHS = range(2, 257)
TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
"""The pattern that Docker accepts; ECR's model says 300 characters, its limits say 128."""
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
REGISTRY = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z][a-z0-9-]*(?::[0-9]{1,5})?")
"""A host with a dot whose last part begins with a letter; excludes IP addresses and hosts of the local network."""
PRIVATE_REGISTRY = re.compile(
    r"(?P<account>[0-9]{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.(?P<suffix>amazonaws\.com(?:\.cn)?)"
)
"""A private ECR registry."""
ARGUMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The name of a Dockerfile's ARG."""
BASE = "BASE"
"""The build argument that `base` becomes: `ARG BASE`, then `FROM ${BASE}`."""
ORDER = "ORDER"
"""The environment variable of the build that holds a BuildOrder as JSON."""


@dataclass(frozen=True, slots=True)
class ContainerImage:
    """`registry/repository:tag`, `registry/repository@digest`, or both."""

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    @classmethod
    def parse(cls, text: str) -> ContainerImage:
        """Raises ValueError that says what is wrong."""
        registry, slash, rest = text.partition("/")
        if not slash or not REGISTRY.fullmatch(registry):
            raise ValueError("does not begin with a registry")
        rest, at, digest = rest.partition("@")
        repository, colon, tag = rest.partition(":")
        if not REPOSITORY.fullmatch(repository) or len(repository) not in REPOSITORY_LENGTHS:
            raise ValueError("has no repository's name after its registry")
        if (colon and not TAG.fullmatch(tag)) or (at and not DIGEST.fullmatch(digest)):
            raise ValueError("has a tag or a digest that is none")
        if not tag and not digest:
            raise ValueError("has neither a tag nor a digest")
        return cls(registry, repository, tag, digest)

    def __str__(self) -> str:
        """Uses the digest where it is known, because a tag may move."""
        return f"{self.registry}/{self.repository}" + (f"@{self.digest}" if self.digest else f":{self.tag}")

    @property
    def account(self) -> str:
        """Account of a private ECR registry; empty for any other registry."""
        found = PRIVATE_REGISTRY.fullmatch(self.registry)
        return found["account"] if found else ""

    @property
    def region(self) -> str:
        """Region of a private ECR registry; empty for any other registry."""
        found = PRIVATE_REGISTRY.fullmatch(self.registry)
        return found["region"] if found else ""


def registry(account: str, region: str, suffix: str) -> str:
    """Returns the private ECR registry of an account in a region; `suffix` is the partition's domain, usually `amazonaws.com`."""
    return f"{account}.dkr.ecr.{region}.{suffix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One version of an archive in S3: a build uses exactly the bytes that were checked."""

    bucket: str
    key: str
    version: str
    """Empty in a bucket without versioning; there the ETag identifies the object."""
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOrder:
    """What a build does, passed in one environment variable; CodeBuild takes 5,500 characters in it."""

    account: str
    suffix: str
    home_region: str
    repository: str
    """Full name of the repository."""
    tag: str
    regions: tuple[str, ...]
    """Regions in the order in which the build pushes to them."""
    source: str = ""
    """The image to copy; empty when the context is built."""
    context: Context | None = None
    base: str = ""
    """Full address of the base image, the build argument BASE."""
    arguments: dict[str, str] = field(default_factory=dict)
    cache: str = ""
    """Repository in the home region that stores the layers of earlier builds."""

    def target(self, region: str) -> ContainerImage:
        return ContainerImage(registry(self.account, region, self.suffix), self.repository, self.tag)

    @property
    def built(self) -> ContainerImage:
        """Where a build pushes its image first, and finds cached layers the next time; the cache has one tag per repository."""
        tag = self.repository.replace("/", "-")[:128].lstrip(".-")
        return ContainerImage(registry(self.account, self.home_region, self.suffix), self.cache, tag)

    @property
    def readable(self) -> tuple[str, ...]:
        """Private registries that the build reads from: those of its cache, its base and its source."""
        read = [ContainerImage.parse(one) for one in (self.base, self.source) if one] + (
            [] if self.source else [self.built]
        )
        return tuple(dict.fromkeys(image.registry for image in read if image.account))
