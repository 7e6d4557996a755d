"""Images as lines name them, and as the registry of a region does."""

from __future__ import annotations

from dataclasses import replace

from contract import names
from contract.environments import GridEnvironment
from contract.images import DIGEST, REPOSITORY, TAG, ContainerImage, registry


def parsed(text: str) -> ContainerImage:
    """`repository:tag`, `repository@digest` (no registry then), or a whole address. Raises ValueError that says what is wrong."""
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
    """Whether it is named by a repository of the deployment, in whichever region."""
    if not image.registry:
        return image.repository in env.repositories
    ours = {names.repository(env.deployment, one) for one in env.repositories}
    return image.account == env.account and image.repository in ours


def standing_in(image: ContainerImage, region: str, env: GridEnvironment) -> ContainerImage:
    """The same image in the registry of a region; one that is not the deployment's stays where it is."""
    host = registry(env.account, region, env.suffix)
    if not image.registry:
        return replace(image, registry=host, repository=names.repository(env.deployment, image.repository))
    return replace(image, registry=host) if is_ours(image, env) else image
