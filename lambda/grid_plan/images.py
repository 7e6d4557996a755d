"""Says which images are the deployment's, and where one lies in a region."""

from __future__ import annotations

from dataclasses import replace

from contract import names
from contract.environments import GridEnvironment
from contract.images import ContainerImage, base_account, registry


def is_ours(image: ContainerImage, env: GridEnvironment) -> bool:
    """Whether the image is in a repository of the deployment, in any region."""
    if not image.registry:
        return image.repository in env.repositories
    ours = {names.repository(env.deployment, one) for one in env.repositories}
    return image.account == env.account and image.repository in ours


def is_awss(image: ContainerImage, env: GridEnvironment) -> bool:
    """Whether the image is named as one of AWS's Deep Learning Containers is, without a registry."""
    return not image.registry and image.repository not in env.repositories


def standing_in(image: ContainerImage, region: str, env: GridEnvironment) -> ContainerImage:
    """Returns the same image in the registry of a region; another owner's image keeps its address. One of AWS's keeps its short name in
    a region that has none of them."""
    host = registry(env.account, region, env.suffix)
    if is_awss(image, env):
        account = base_account(env.base_accounts, region)
        return replace(image, registry=registry(account, region, env.suffix)) if account else image
    if not image.registry:
        return replace(image, registry=host, repository=names.repository(env.deployment, image.repository))
    return replace(image, registry=host) if is_ours(image, env) else image
