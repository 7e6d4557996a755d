"""Rights on images: one named statement per right, for the repositories of one deployment and no others."""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk

from contract import names
from stacks.parts.right import Right

PULL = ("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")
LOG_IN = Right(
    "LogInToRegistries",
    ["ecr:GetAuthorizationToken"],
    ["*"],
    "A registry's password comes from the service as a whole; the other rights say what it opens.",
)
PUSH = ("ecr:InitiateLayerUpload", "ecr:UploadLayerPart", "ecr:CompleteLayerUpload", "ecr:PutImage")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRights:
    """Statements for one deployment's images."""

    deployment: str
    home_region: str
    regions: tuple[str, ...]
    repositories: tuple[str, ...]
    """Short names."""
    base_account: str
    """Account of AWS's Deep Learning Containers in the home region; empty where it is unknown."""
    copy_accounts: tuple[str, ...]
    cache: str = names.BUILD_CACHE
    """Short name of the repository that builds push to first."""

    def push(self) -> list[Right]:
        """Everything that a build may do in registries: log in, read the allowed images, write to the deployment's own repositories."""
        cache = _repository(self.home_region, cdk.Aws.ACCOUNT_ID, names.repository(self.deployment, self.cache))
        return [
            LOG_IN,
            self._ours("PushImages", *PULL, *PUSH, "ecr:DescribeImages"),
            Right("UseTheBuildCache", [*PULL, *PUSH], [cache]),
            *self.read_sources(),
        ]

    def find_images(self) -> list[Right]:
        """Allows to ask which image each region has."""
        return [
            self._ours("CheckImages", "ecr:DescribeImages", "ecr:BatchGetImage"),
            *self.read_sources(),
        ]

    def describe(self) -> Right:
        """Allows to ask which image each region has under a tag."""
        return self._ours("DescribeImages", "ecr:DescribeImages")

    def read_sources(self) -> list[Right]:
        """Allows to read AWS's containers of the home region, and the registries that the settings name."""
        found = []
        if self.base_account:
            reason = "AWS adds containers to its public account all the time; they may be read and nothing more."
            containers = [_repository(self.home_region, self.base_account, "*")]
            found.append(Right("PullBaseImages", PULL, containers, reason))
        if self.copy_accounts:
            reason = "The settings give these accounts' images to this deployment, in whatever region they lie."
            others = [_repository("*", account, "*") for account in self.copy_accounts]
            found.append(Right("PullImagesToCopy", PULL, others, reason))
        return found

    def _ours(self, right: str, *actions: str) -> Right:
        """Allows `actions` on the deployment's repositories. A list of them in every region would be too long for a role's policy."""
        wanted = [
            _repository("*", cdk.Aws.ACCOUNT_ID, names.repository(self.deployment, one)) for one in self.repositories
        ]
        reason = "Each region has repositories of these names; the condition keeps to the regions of the settings."
        return Right(right, actions, wanted, reason, {"StringEquals": {"aws:RequestedRegion": list(self.regions)}})


def _repository(region: str, account: str, name: str) -> str:
    return f"arn:{cdk.Aws.PARTITION}:ecr:{region}:{account}:repository/{name}"
