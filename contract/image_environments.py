"""Environments of the functions that build images; contract/environments.py says how they are written and read."""

from __future__ import annotations

from dataclasses import dataclass

from contract.environments import DeploymentEnvironment
from contract.timings import OwnImagesTiming


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageBuildEnvironment(DeploymentEnvironment):
    """Environment of the Build machine's function, which checks a request and collects the result."""

    account: str
    suffix: str
    """The domain of the AWS partition, usually `amazonaws.com`."""
    home_region: str
    regions: tuple[str, ...]
    """Regions that receive images: every region of the deployment, home first."""
    repositories: tuple[str, ...]
    """Short names, as in `images` for `<deployment>/images`."""
    data_buckets: tuple[str, ...]
    base_account: str
    """Account of AWS's Deep Learning Containers in the home region; empty where it is unknown."""
    copy_accounts: tuple[str, ...]
    """Further accounts whose private registries a build may copy from."""
    git_hosts: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnImagesEnvironment(DeploymentEnvironment):
    """Environment of the function through which a deploy waits for the platform's own images."""

    account: str
    suffix: str
    """The partition's domain, usually `amazonaws.com`."""
    home_region: str
    regions: tuple[str, ...]
    build_machine: str
    """ARN of the machine that builds the platform's own images."""
    timing: OwnImagesTiming
