"""Rights on the images of jobs' containers: Admit reads what an image says of itself, a job's nodes pull it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import region_info

from contract import names
from contract.job_settings import JobSettings
from stacks.parts.image_rights import LOG_IN
from stacks.parts.right import Right
from stacks.parts.rights import Rights, arn_of, within

READ_IMAGES = ("ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")
"""What a pull needs beside the login. For a layer that the machine lacks, docker does not ask whether the registry has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRights:
    """Statements for the images that jobs of one deployment may name."""

    rights: Rights
    repositories: tuple[str, ...]
    """Short names."""
    base_accounts: dict[str, str]
    """As in `JobChecksEnvironment`."""
    copy_accounts: tuple[str, ...]

    @classmethod
    def of_jobs(cls, rights: Rights, jobs: JobSettings, repositories: tuple[str, ...]) -> ContainerRights:
        """Returns the statements for a deployment with these settings of jobs."""
        return cls(
            rights=rights,
            repositories=repositories,
            base_accounts=jobs.base_accounts,
            copy_accounts=jobs.copy_accounts,
        )

    def find_images(self) -> Right:
        """Allows to read which image a tag names, its size, processors and entry point: of the deployment's repositories by name; a
        list of them, and one of regions, would be too long for a role that has so many other rights."""
        ours = arn_of("ecr", "*", cdk.Aws.ACCOUNT_ID, f"repository/{names.repository(self.rights.deployment, '*')}")
        others = [
            *_repositories(self.base_accounts),
            *(arn_of("ecr", "*", one, "repository/*") for one in self.copy_accounts),
        ]
        reason = "Every region has the deployment's repositories; AWS and the accounts of the settings have others, wherever they lie."
        return Right("LookAtImages", READ_IMAGES, [ours, *others], reason, apart="Images")

    def pull(self) -> list[Right]:
        """Pulls images. A session's own policy keeps it to the repository of its job's image, and out of every registry without one."""
        return [LOG_IN, *self.read_images()]

    def read_images(self) -> list[Right]:
        """Allows to read the images that jobs may name, in the regions in which jobs run."""
        here = within(*sorted({self.rights.home_region, *self.rights.regions}))
        ours = [
            arn_of("ecr", "*", cdk.Aws.ACCOUNT_ID, f"repository/{names.repository(self.rights.deployment, one)}")
            for one in self.repositories
        ]
        wanted = [*ours, *_repositories(self.base_accounts)]
        reason = (
            "Each region has repositories of these names, and AWS adds containers to its public accounts all the time; the condition "
            "keeps to the regions in which jobs run."
        )
        found = [Right("PullImages", READ_IMAGES, wanted, reason, here, apart="Images")]
        if self.copy_accounts:
            others = [arn_of("ecr", "*", one, "repository/*") for one in self.copy_accounts]
            reason = "The settings give these accounts' images to this deployment, in whatever region they lie."
            found.append(Right("PullImagesOfOthers", READ_IMAGES, others, reason, apart="Images"))
        return found


def list_containers(accounts: Mapping[str, str], conditions: Mapping[str, object] | None = None) -> list[Right]:
    """Lists the tags of AWS's Deep Learning Containers, so that a short one can be told from them."""
    reason = "AWS adds containers to its public accounts all the time, in every region."
    wanted = _repositories(accounts)
    return (
        [Right("ListContainers", ["ecr:DescribeImages"], wanted, reason, conditions or {}, apart="Images")]
        if wanted
        else []
    )


def _repositories(accounts: Mapping[str, str]) -> list[str]:
    """ARNs of the repositories of AWS's containers; `accounts` as in `JobChecksEnvironment.base_accounts`."""
    return [arn_of("ecr", "*", one, "repository/*") for one in dict.fromkeys(filter(None, accounts.values()))]


def base_accounts(regions: Sequence[str]) -> dict[str, str]:
    """Region to the account of AWS's Deep Learning Containers there, as the CDK knows it. The account that most regions share stands under
    the empty name, so that a function's variables hold it once."""
    known = {one: region_info.Fact.find(one, region_info.FactName.DLC_REPOSITORY_ACCOUNT) or "" for one in regions}
    common, _ = Counter(known.values()).most_common(1)[0]
    return {"": common, **{region: account for region, account in known.items() if account != common}}
