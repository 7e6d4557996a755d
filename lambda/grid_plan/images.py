"""Translates images between the form in a line and the address in a region's registry."""

from __future__ import annotations

from dataclasses import replace

from contract import names
from contract.environments import GridEnvironment
from contract.images import DIGEST, REPOSITORY, TAG, ContainerImage, registry


def parsed(text: str) -> ContainerImage:
    """Parses `repository:tag` or `repository@digest` (without a registry), or a full address. Raises ValueError that says what is wrong."""
    first, slash, _ = text.partition("/")
    if slash and "." in first:
        return ContainerImage.parse(text)
    rest, at, digest = text.partition("@")
    repository, colon, tag = rest.partition(":")
    if not REPOSITORY.fullmatch(repository):
        raise ValueError("begins with no repository's name")
    if (colon and not TAG.fullmatch(tag)) or (at and not DIGEST.fullmatch(digest)):
        raise ValueError("has a tag or a digest that is none")
    if not tag and not digest:
        raise ValueError("has neither a tag nor a digest")
    return ContainerImage("", repository, tag, digest)


def is_ours(image: ContainerImage, env: GridEnvironment) -> bool:
    """Whether the image is in a repository of the deployment, in any region."""
    if not image.registry:
        return image.repository in env.repositories
    ours = {names.repository(env.deployment, one) for one in env.repositories}
    return image.account == env.account and image.repository in ours


def standing_in(image: ContainerImage, region: str, env: GridEnvironment) -> ContainerImage:
    """Returns the same image in the registry of a region; another owner's image keeps its address."""
    host = registry(env.account, region, env.suffix)
    if not image.registry:
        return replace(image, registry=host, repository=names.repository(env.deployment, image.repository))
    return replace(image, registry=host) if is_ours(image, env) else image
