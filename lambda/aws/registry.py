"""Every ECR call of the functions: looks up the image under a tag in each region, and what an image says of itself."""

from __future__ import annotations

import hashlib
import json
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPException
from typing import Any

from botocore.exceptions import ClientError

from aws.clients import PATIENT, client
from aws.facts import Platform, StoredImage
from contract.aws_errors import code_of
from contract.errors import BuildFailed
from contract.images import ContainerImage
from contract.short_tags import ListedTag

MANIFESTS = (
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
)
INDEXES = frozenset(MANIFESTS[1::2])
"""Manifests of several images, one a processor."""
LINUX = "linux"
MOST_CONFIG = 8 * 1024**2
"""Bytes of an image's configuration that are read; those of images with a hundred layers have some 50 KB."""
CONFIG_S = 20.0
"""How long a configuration is waited for."""


class NoRepository(Exception):
    """The region has no repository of that name."""


def standing(repository: str, tag: str, region: str) -> str | None:
    """The digest of the image under a tag, None where there is none; raises NoRepository."""
    ecr: Any = client("ecr", region)
    try:
        found = ecr.describe_images(repositoryName=repository, imageIds=[{"imageTag": tag}])["imageDetails"]
    except ClientError as problem:
        if code_of(problem) == "ImageNotFoundException":
            return None
        if code_of(problem) == "RepositoryNotFoundException":
            raise NoRepository(repository) from None
        raise
    return str(found[0]["imageDigest"]) if found else None


def everywhere(repository: str, tag: str, regions: Sequence[str]) -> tuple[dict[str, str | None], list[str]]:
    """The image under the tag by region, and the regions without the repository."""
    found, without = dict[str, str | None](), list[str]()
    for region in regions:
        try:
            found[region] = standing(repository, tag, region)
        except NoRepository:
            without.append(region)
    return found, without


def same_everywhere(repository: str, tag: str, regions: Sequence[str]) -> str:
    """The digest under the tag; raises BuildFailed unless every region has the same image there."""
    found, without = everywhere(repository, tag, regions)
    digests = {digest for digest in found.values() if digest}
    if without or None in found.values() or len(digests) != 1:
        told = [f"{region} has {digest or 'no such image'}" for region, digest in found.items()]
        told += [f"{region} has no such repository" for region in without]
        raise BuildFailed(f"{repository}:{tag} is not the same image in every region: {', '.join(told)}.")
    return digests.pop()


def find_digest(account: str, repository: str, tag: str, digest: str, region: str) -> str:
    """The digest of an image in a registry, which may be another account's, asked the way a pull asks; empty where there is none. Raises
    ClientError where we may not look."""
    ecr: Any = client("ecr", region, PATIENT)
    wanted = {"imageDigest": digest} if digest else {"imageTag": tag}
    try:
        found = ecr.batch_get_image(
            registryId=account,
            repositoryName=repository,
            imageIds=[wanted],
            acceptedMediaTypes=list(MANIFESTS),
        )
    except ClientError as problem:
        if code_of(problem) == "RepositoryNotFoundException":
            return ""
        raise
    return next((str(one["imageId"]["imageDigest"]) for one in found.get("images", ())), "")


def tags(image: ContainerImage, config: Any = PATIENT) -> list[ListedTag]:
    """Every tag of the image's repository. Raises NoRepository, and ClientError where the registry does not let us list it."""
    ecr: Any = client("ecr", image.region, config)
    pages = ecr.get_paginator("describe_images").paginate(
        registryId=image.account,
        repositoryName=image.repository,
        filter={"tagStatus": "TAGGED"},
        PaginationConfig={"PageSize": 1000},
    )
    try:
        return [
            ListedTag(tag=tag, pushed_at=one["imagePushedAt"].timestamp(), digest=one["imageDigest"])
            for page in pages
            for one in page["imageDetails"]
            for tag in one.get("imageTags", ())
        ]
    except ClientError as problem:
        if code_of(problem) == "RepositoryNotFoundException":
            raise NoRepository(image.repository) from None
        raise


class Unreadable(Exception):
    """The registry has the image, and what it says of itself cannot be read; the message says why."""


def stored(image: ContainerImage, config: Any = PATIENT) -> StoredImage | None:
    """The image and what it says of itself, asked the way a pull asks; None where the registry lacks it. Raises NoRepository, Unreadable,
    and ClientError where the registry does not let us look."""
    ecr: Any = client("ecr", image.region, config)
    found = _manifest(ecr, image, image.digest, image.tag)
    if found is None:
        return None
    digest, kind, manifest = found
    if kind not in INDEXES:
        return StoredImage(digest=digest, platforms=(_platform(ecr, image, manifest),))
    platforms = [*_inner(ecr, image, manifest)]
    if not platforms:
        raise Unreadable("its index names no image for Linux that the registry has")
    return StoredImage(digest=digest, platforms=tuple(platforms))


def _inner(ecr: Any, image: ContainerImage, index: Mapping[str, Any]) -> Iterator[Platform]:
    """The images of an index from which a node would choose: those for Linux, and as docker does those that the index says nothing of."""
    for one in index.get("manifests", []):
        platform = dict(one.get("platform") or {})
        # Also what builders attest, for the platform "unknown", and what stands beside an image, such as an index for lazy loading.
        if platform.get("os", LINUX) != LINUX or "artifactType" in one:
            continue
        if (found := _manifest(ecr, image, str(one["digest"]), "")) is None:
            continue
        try:
            yield _platform(ecr, image, found[2])
        except Unreadable:
            if platform:
                raise


def _manifest(ecr: Any, image: ContainerImage, digest: str, tag: str) -> tuple[str, str, dict[str, Any]] | None:
    """Digest, media type and content."""
    try:
        answer = ecr.batch_get_image(
            registryId=image.account,
            repositoryName=image.repository,
            imageIds=[{"imageDigest": digest} if digest else {"imageTag": tag}],
            acceptedMediaTypes=list(MANIFESTS),
        )
    except ClientError as problem:
        if code_of(problem) == "RepositoryNotFoundException":
            raise NoRepository(image.repository) from None
        raise
    if not answer.get("images"):
        return None
    one = answer["images"][0]
    try:
        content = json.loads(one["imageManifest"])
        kind = str(one.get("imageManifestMediaType") or content.get("mediaType") or "")
    except (ValueError, AttributeError):
        raise Unreadable("its manifest is not JSON") from None
    if not (digest := one["imageId"].get("imageDigest")):
        raise Unreadable("the registry gives no digest for it")
    return str(digest), kind, content


def _platform(ecr: Any, image: ContainerImage, manifest: Mapping[str, Any]) -> Platform:
    try:
        digest = str(manifest["config"]["digest"])
        size = sum(int(one["size"]) for one in manifest["layers"])
    except (KeyError, TypeError, ValueError):
        raise Unreadable("its manifest names no configuration and no layers") from None
    link = ecr.get_download_url_for_layer(
        registryId=image.account, repositoryName=image.repository, layerDigest=digest
    )["downloadUrl"]
    body = _fetched(link)
    if f"sha256:{hashlib.sha256(body).hexdigest()}" != digest:
        raise Unreadable("its configuration is not the one that its manifest names")
    try:
        said = json.loads(body)
        if (system := str(said.get("os") or LINUX)) != LINUX:
            raise Unreadable(f"it is an image for {system}, and nodes run {LINUX}")
        runs = said.get("config") or {}
        return Platform(
            architecture=str(said["architecture"]),
            size=size,
            entry_point=tuple(map(str, runs.get("Entrypoint") or ())),
            command=tuple(map(str, runs.get("Cmd") or ())),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Unreadable("its configuration has no architecture") from None


def _fetched(link: str) -> bytes:
    """What lies behind a link of the registry's, which is S3's."""
    try:
        with urllib.request.urlopen(link, timeout=CONFIG_S) as answer:
            return bytes(answer.read(MOST_CONFIG))
    except (OSError, HTTPException) as problem:
        raise Unreadable(f"its configuration cannot be fetched ({problem})") from None
