"""Reads the name of a container's image: whose it is, whether jobs may pull it, and where it lies in each region."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from contract import names
from contract.containers import repository_arn
from contract.environments import JobChecksEnvironment
from contract.images import ContainerImage, parsed
from contract.registries import Registries
from refusals.wording import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedImage:
    """An image as a request names it."""

    name: str
    """Empty for a request without an image, against which nothing stands."""
    image: ContainerImage | None
    registries: Registries
    copy_accounts: Collection[str]
    """Accounts of others from whose registries jobs may pull."""
    training: Collection[str]
    """Regions in which the deployment trains."""
    partition: str

    @property
    def repositories(self) -> list[str]:
        """ARNs of the repositories that a job's credentials have to name, in every region in which it might run."""
        images = self.in_regions(self.training).values()
        arns = [repository_arn(f"{one.registry}/{one.repository}", self.partition) for one in images]
        return list(dict.fromkeys(arns))

    @property
    def problems(self) -> list[str]:
        """Why jobs of the deployment may not pull the image, whatever its registry says."""
        image, known, where = self.image, self.registries, f"image: {plain(self.name)}"
        if image is None or known.is_ours(image):
            return []
        ours = ", ".join(known.repositories)
        if not image.registry:
            return [] if known.awss else [f"{where} is not in a repository of {known.deployment}; allowed: {ours}"]
        if not image.account:
            order = {"copy": plain(str(image), 300), "repository": known.repositories[0], "tag": image.tag or "v1"}
            return [
                f"{where} is in a registry that nodes do not log in to; allowed: private ECR registries (the machine "
                f"{names.build_machine(known.deployment)} copies an image from elsewhere into the deployment's own: "
                f"{json.dumps(order)}, docs/guides/images.md)"
            ]
        if image.account == known.account:
            return [f"{where} is not in a repository of {known.deployment}; allowed: {ours}"]
        accounts = {known.account, *known.awss, *self.copy_accounts}
        if image.account not in accounts:
            return [
                f"{where} is in a registry of account {image.account}; allowed: registries of {', '.join(sorted(accounts))} "
                "(copy_accounts in cdk.json)"
            ]
        return []

    def in_regions(self, regions: Iterable[str]) -> dict[str, ContainerImage]:
        """Returns the image's address in each region's registry; empty for an image that jobs may not pull."""
        if self.image is None or self.problems:
            return {}
        return {region: found for region in regions if (found := self.registries.in_region(self.image, region))}


def read_image(name: str | None, env: JobChecksEnvironment) -> NamedImage:
    """Reads the name that a request gives; None for a request without an image."""
    return NamedImage(
        name=name or "",
        image=parsed(name) if name is not None else None,
        registries=list_registries(env),
        copy_accounts=env.copy_accounts,
        training=env.regions,
        partition=env.instance_profile.split(":")[1],
    )


def list_registries(env: JobChecksEnvironment) -> Registries:
    """Returns the registries of the deployment, and those of AWS's containers."""
    partition, account = env.instance_profile.split(":")[1], env.instance_profile.split(":")[4]
    return Registries(
        deployment=env.deployment,
        account=account,
        suffix="amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com",
        repositories=env.repositories,
        base_accounts=env.base_accounts,
    )
