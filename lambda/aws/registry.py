"""Every ECR call of the functions: looks up the image under a tag in each region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from botocore.exceptions import ClientError

from aws.clients import client
from contract.aws_errors import code_of
from contract.errors import BuildFailed

MANIFESTS = (
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
)


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


def holds(account: str, repository: str, tag: str, digest: str, region: str) -> bool:
    """Whether a registry that may be somebody else's has an image, asked the way a pull asks; raises ClientError
    where we may not look."""
    ecr: Any = client("ecr", region)
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
            return False
        raise
    return bool(found.get("images"))
