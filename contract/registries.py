"""Whose an image is, and where the same image lies in another region: one answer for jobs on EC2 and for lines of a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from contract import names
from contract.images import ContainerImage, registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Registries:
    """The registries of a deployment, and those of AWS's Deep Learning Containers."""

    deployment: str
    account: str
    suffix: str
    """The domain of the AWS partition, usually `amazonaws.com`."""
    repositories: Sequence[str]
    """Short names."""
    base_accounts: Mapping[str, str]
    """Region to the account of AWS's containers, as in JobChecksEnvironment."""

    @property
    def awss(self) -> frozenset[str]:
        """The accounts of AWS's containers, of whatever region."""
        return frozenset(filter(None, self.base_accounts.values()))

    def is_ours(self, image: ContainerImage) -> bool:
        """Whether the image is in a repository of the deployment, in any region."""
        if not image.registry:
            return image.repository in self.repositories
        ours = {names.repository(self.deployment, one) for one in self.repositories}
        return image.account == self.account and image.repository in ours

    def is_awss(self, image: ContainerImage) -> bool:
        """Whether the image is one of AWS's containers: in one of their accounts, or named without a registry and not ours."""
        return image.account in self.awss if image.registry else not self.is_ours(image)

    def in_region(self, image: ContainerImage, region: str) -> ContainerImage | None:
        """Returns the same image in the registry of a region. Another owner's image keeps its address, and one of AWS's is nowhere in a
        region that has none of them."""
        if self.is_awss(image):
            account = self.base_accounts.get(region, self.base_accounts.get("", ""))
            return replace(image, registry=registry(account, region, self.suffix)) if account else None
        if not self.is_ours(image):
            return image
        repository = image.repository if image.registry else names.repository(self.deployment, image.repository)
        return replace(image, registry=registry(self.account, region, self.suffix), repository=repository)
