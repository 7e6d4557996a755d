"""Images: how repositories, tags and addresses look, what the Build machine orders, and what it answers."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from contract.codec import decode, encode

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
AMD64, ARM64 = "linux/amd64", "linux/arm64"
PLATFORMS = (AMD64, ARM64)
"""What images are built for."""
ORDER = "ORDER"
"""The environment variable of the build that holds a BuildOrder as JSON."""
CHILD_BASE = "public.ecr.aws/docker/library/python:3.13-slim-bookworm"
"""The image on which the grid's child is built, unless the settings name another."""
BASE_DIGEST = "BASE_DIGEST"
"""The environment variable in which a build keeps the digest of its base image, once it has found it."""


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
            raise ValueError("has no repository name after its registry")
        if (colon and not TAG.fullmatch(tag)) or (at and not DIGEST.fullmatch(digest)):
            raise ValueError("has a tag or a digest that is not valid")
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


def parsed(text: str) -> ContainerImage:
    """Parses `repository:tag` or `repository@digest` (without a registry), or a full address. Raises ValueError that says what is wrong."""
    first, slash, _ = text.partition("/")
    if slash and "." in first:
        return ContainerImage.parse(text)
    rest, at, digest = text.partition("@")
    repository, colon, tag = rest.partition(":")
    if not REPOSITORY.fullmatch(repository) or len(repository) not in REPOSITORY_LENGTHS:
        raise ValueError("does not begin with a repository name")
    if (colon and not TAG.fullmatch(tag)) or (at and not DIGEST.fullmatch(digest)):
        raise ValueError("has a tag or a digest that is not valid")
    if not tag and not digest:
        raise ValueError("has neither a tag nor a digest")
    return ContainerImage("", repository, tag, digest)


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
class Base:
    """The digest behind a base image's tag when the first build used it; later builds use the same (`keys.own_base`)."""

    address: str
    digest: str


def content_digest(files: Mapping[str, str], base: str) -> str:
    """Returns the digest of a build context: `files` has the SHA-256 of each file by its path in the context. Another base image makes
    another digest."""
    digest = hashlib.sha256(f"{base}\n".encode())
    for path, content in sorted(files.items()):
        digest.update(f"{path}\n{content}\n".encode())
    return digest.hexdigest()


MOST_ORDER = 5000
"""The most characters of an order as JSON: CodeBuild takes 5,500 for all variables of a build together."""


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
    base_digest: str = ""
    """The base image's digest, where it is known; the build then uses no other image."""
    arguments: dict[str, str] = field(default_factory=dict)
    platform: str = AMD64
    cache: str = ""
    """Repository in the home region that stores the layers of earlier builds."""
    records: str = ""
    """Bucket to which a build of the platform's own image writes what it made (`keys.OWN_RECORDS`), before it sets the tag anywhere;
    empty for people's images."""

    @classmethod
    def given(cls, variables: Mapping[str, str] = os.environ) -> BuildOrder:
        """Returns the order of the build that this process is a part of, with the base image's digest if the build has found it."""
        order = decode(cls, variables[ORDER])
        return replace(order, base_digest=order.base_digest or variables.get(BASE_DIGEST, ""))

    def target(self, region: str) -> ContainerImage:
        return ContainerImage(registry(self.account, region, self.suffix), self.repository, self.tag)

    def text(self) -> str:
        """Returns the order as it is passed: one line of ASCII, so that no shell and no console can change it."""
        return "".join(letter if ord(letter) < 128 else _escaped(letter) for letter in encode(self).decode())

    @property
    def built(self) -> ContainerImage:
        """Where a build pushes its image first, and finds cached layers the next time; the cache has one tag per repository and
        platform."""
        platform = "" if self.platform == AMD64 else f"-{self.platform.replace('/', '-')}"
        tag = self.repository.replace("/", "-")[: 128 - len(platform)].lstrip(".-") + platform
        return ContainerImage(registry(self.account, self.home_region, self.suffix), self.cache, tag)

    @property
    def readable(self) -> tuple[str, ...]:
        """Private registries that the build reads from: those of its cache, its base and its source."""
        read = [ContainerImage.parse(one) for one in (self.base, self.source) if one] + (
            [] if self.source else [self.built]
        )
        return tuple(dict.fromkeys(image.registry for image in read if image.account))


def _escaped(letter: str) -> str:
    """Escapes a letter as JSON does: letters beyond the first plane become two surrogates."""
    code = letter.encode("utf-16-be")
    return "".join(f"\\u{code[place : place + 2].hex()}" for place in range(0, len(code), 2))
