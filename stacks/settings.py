"""The `trainyard` block of cdk.json as one frozen, typed object: closed, and loud about what does not fit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from contract.environments import GridEnvironment
from contract.job_settings import JobSettings
from contract.mounts import MOST_OF_A_DEPLOYMENT, Kind
from contract.names import BUILD_CACHE, PLATFORM, PLATFORM_CACHE, job_role
from contract.networks import NamedFileSystem, NamedNetwork
from contract.request_rules import RequestRules
from contract.tag_forms import MOST_OF_A_REQUEST, MOST_OF_SETTINGS
from stacks.blocks import Block
from stacks.campaign_settings import (
    CampaignSettings,
    WatchSettings,
    campaign_input_problems,
    campaign_problems,
    watch_problems,
)
from stacks.checkpoint_settings import CheckpointSettings
from stacks.durations import TimingSettings
from stacks.file_system_settings import FileSystemSettings
from stacks.file_system_settings import problems as file_system_problems
from stacks.forms import (
    Account,
    Bucket,
    Deployment,
    GitHost,
    ImageOwner,
    JobRoleName,
    MachineImage,
    MachineImageName,
    Organization,
    PageAddress,
    PresetName,
    Region,
    Repository,
    RoleArn,
    SecretName,
    StarterName,
    TagKey,
    TagValue,
    partition,
)
from stacks.grid_settings import GridSettings
from stacks.kubernetes_settings import KubernetesSettings, list_kubernetes_problems
from stacks.limit_settings import LimitSettings
from stacks.network_settings import MOST_REGIONS, NetworkSettings, RegionSettings, catalogue_problems, list_twice
from stacks.network_settings import problems as network_problems
from stacks.parts.container_rights import base_accounts
from stacks.planned import describe_grids
from stacks.refused import find_too_deep, lines
from stacks.request_reading import list_text_problems
from stacks.request_settings import Nameable, Preset, named_preset_problems, preset_problems, required_tag_problems
from stacks.tag_settings import problems as tag_problems

BLOCK = "trainyard"
"""The key in cdk.json's context that holds all settings."""


ANY_ACCOUNT = "0" * 12
"""Stands for the account, which only a deploy knows."""


class BadSettings(ValueError):
    """The settings do not describe a deployment; the message has one line per problem, each naming its key."""


LEAST_NAMES_BYTES, REGION_BYTES = 320, 13
"""Bytes that `machine_images` and `git_hosts` may have beside the most regions, and what each region takes of a function's 4 KB of
variables."""
Family = Literal["x86_64", "arm64", "p3", "neuron"]
DaysOfLogs = Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3653]


class ImageReaders(Block):
    """Who outside the account may pull the deployment's images; their own policies have to allow it too."""

    accounts: tuple[Account, ...] = Field(default=(), max_length=100)
    """Accounts that may pull."""
    organizations: tuple[Organization, ...] = Field(default=(), max_length=20)
    """Organizations, every account of which may pull."""


class ReaperSettings(Block):
    """What the reaper may do."""

    report_only: bool = False
    """Whether the reaper only reports what it would end, and ends nothing."""
    max_share: float = Field(default=0.2, ge=0, le=1)
    """The largest share of the deployment's instances that one pass may end before their deadline, or `max_least` if that is more."""
    max_least: int = Field(default=5, ge=1, le=1000)
    """How many instances one pass may end before their deadline in any case: a fifth of a small deployment is less than one instance."""


class Settings(Block):
    """Settings of the whole deployment."""

    deployment: Deployment = "trainyard"
    """Part of every name: several deployments can live in one account."""
    home_region: Region = "eu-central-1"
    """Where state machines, functions and decisions live; one of `regions`, with a network."""
    regions: tuple[RegionSettings, ...] = Field(
        default=(RegionSettings(region="eu-central-1", cidr="10.70.0.0/16"),), max_length=MOST_REGIONS
    )
    """Where jobs train and grids run, home among them."""
    network: NetworkSettings = NetworkSettings()
    """The network of every training region."""
    placement_groups_per_zone: int = Field(default=2, ge=1, le=10)
    """Cluster placement groups of a zone: so many jobs of several nodes each have their own. At most 10: an SSM parameter holds 4 KB."""
    images: dict[Family, MachineImage] = Field(
        default={
            "arm64": "/aws/service/deeplearning/ami/arm64/oss-nvidia-driver-gpu-pytorch-2.11-amazon-linux-2023/latest/ami-id",
            "neuron": "/aws/service/neuron/dlami/pytorch-2.9/ubuntu-24.04/latest/image_id",
            "x86_64": "/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch-2.13-amazon-linux-2023/latest/ami-id",
        },
        min_length=1,
    )
    """Family to an AMI id or the name of an SSM parameter that holds one. `neuron` is for Trainium and Inferentia, `p3` for P3."""
    machine_images: dict[MachineImageName, MachineImage] = Field(default={}, max_length=10)
    """Name to an AMI id or the name of an SSM parameter that holds one: what a request may name as `machine_image`, in place of the image
    of its instance types' family."""
    image_owners: tuple[ImageOwner, ...] = Field(default=(), max_length=20)
    """Whose images nodes may start from, beside AWS's and the account's own: other accounts, or `aws-marketplace`."""
    data_buckets: tuple[Bucket, ...] = ()
    """Buckets that jobs may read, beside the deployment's own."""
    file_systems: tuple[FileSystemSettings, ...] = Field(default=(), max_length=MOST_OF_A_DEPLOYMENT)
    """What jobs may mount (docs/guides/mounts.md)."""
    presets: dict[PresetName, Preset] = Field(default={}, max_length=50)
    """Name to fields of a request, which a request gets that names it as `preset`, where it has none of its own (docs/guides/jobs.md)."""
    required_tags: dict[TagKey, tuple[TagValue, ...]] = Field(default={}, max_length=MOST_OF_A_REQUEST)
    """Key of a tag that every job and every line of a grid must have, to the values that are allowed; an empty list allows any. `tags` may
    have it for all (docs/guides/cost.md)."""
    job_roles: dict[JobRoleName, RoleArn] = Field(default={}, max_length=20)
    """Name to the ARN of a role, of any account, whose rights a training gets that names it as `job_role` (docs/guides/job-roles.md).
    Whoever may start jobs may name each of them."""
    repositories: tuple[Repository, ...] = Field(default=("images",), min_length=1, max_length=10)
    """Repositories for images, the same in every region; `images` becomes `<deployment>/images`."""
    image_readers: ImageReaders = ImageReaders()
    """Who outside the account may pull the deployment's images."""
    copy_accounts: tuple[Account, ...] = Field(default=(), max_length=20)
    """Other accounts whose private images may be copied in."""
    git_hosts: dict[GitHost, SecretName] = Field(default={"github.com": "", "gitlab.com": ""}, max_length=5)
    """Host from which requests may take code, to the name of a secret of the home region with a token for it (`TOKEN` or `USER:TOKEN`),
    empty for none. Whoever may start jobs may read what the token may read."""
    master_port: int = Field(default=29500, ge=1024, le=65535)
    """The port on which rank 0 of a job, or of a line on Kubernetes, listens for the other ranks; the default is PyTorch's."""
    limits: LimitSettings = LimitSettings()
    """What a request for a job may ask for."""
    timing: TimingSettings = TimingSettings()
    """Every duration that the deployment waits for, in seconds."""
    checkpoints: CheckpointSettings = CheckpointSettings()
    """When the alarms about checkpoints begin, in intervals of the job."""
    reaper: ReaperSettings = ReaperSettings()
    """What the reaper may do: the function that ends forgotten instances and trainings."""
    grid: GridSettings = GridSettings()
    """Many SageMaker trainings from one manifest."""
    campaigns: dict[StarterName, CampaignSettings] = Field(default={}, max_length=20)
    """Name to what an uploaded object starts by itself, once: a grid, a search or a job (docs/guides/campaigns.md)."""
    watch: dict[StarterName, WatchSettings] = Field(default={}, max_length=10)
    """Name to a branch, at which a function looks every five minutes: it builds the newest commit into an image, once; of commits pushed
    between two looks the last one (docs/guides/campaigns.md)."""
    keep_data: bool = True
    """Whether the buckets and the table outlive a destroy. If false, `make destroy` deletes jobs, checkpoints and artifacts too."""
    reserved_concurrency: int = Field(default=0, ge=0, le=1000)
    """Concurrent invocations that Lambda reserves for each of terminator, cleanup and reaper, and that each may have at most: 0 for none,
    otherwise 2 or more. With it, Lambda reserves 20 or more for the attendant: set it when some hundred jobs run at once, or when the
    account has other functions that may take all invocations."""
    tags: dict[TagKey, TagValue] = Field(default={}, max_length=MOST_OF_SETTINGS)
    """Tags, as of cost centres, on all resources of the stacks and on everything that jobs and grids launch, beside Trainyard's own
    (docs/guides/landing-zones.md)."""
    workbench: bool = False
    """Whether jobs may be workbenches: JupyterLab on a machine that its owner opens through Session Manager (docs/guides/workbench.md)."""
    compliance: bool = False
    """Customer keys for what is stored, flow logs, access logs and closed default security groups (docs/guides/compliance.md)."""
    kubernetes: KubernetesSettings = KubernetesSettings()
    """Lines of grids on Kubernetes (docs/guides/kubernetes.md)."""
    catalogue: bool = False
    """Whether there is a database of campaigns, data sets, runs, prices and capacity, from which a grid's `query` makes its lines
    (docs/guides/catalogue.md)."""
    dashboard: bool = True
    """Whether there is a dashboard of the whole deployment in CloudWatch, and queries saved for its logs (docs/guides/dashboard.md)."""
    runbook_url: PageAddress = ""
    """Where people read docs/runbook.md: messages of alarms lead to `<runbook_url>#<alarm>`. Without it they name the file."""
    log_retention_days: DaysOfLogs = 30
    """How long the logs of nodes, builds and functions are kept."""

    @model_validator(mode="after")
    def _agrees(self) -> Settings:
        problems = list(self._contradictions())
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _contradictions(self) -> Iterator[str]:
        if self.deployment.endswith(f"-{PLATFORM}"):
            before = self.deployment.removesuffix(f"-{PLATFORM}")
            yield (
                f"deployment is {self.deployment}, and a deployment {before} would give its build machine the same name; allowed: a name "
                f"that does not end in -{PLATFORM}"
            )
        names = [one.region for one in self.regions]
        yield from list_twice("regions", names)
        if self.home_region not in names:
            yield f"regions lacks the home region {self.home_region}; allowed: a list with it"
        elif self.home_region not in self.training:
            yield f"regions has no network for the home region {self.home_region}; allowed: a cidr or a vpc, because home trains"
        partitions = {name: partition(name) for name in names}
        for name in dict.fromkeys(names):
            if partitions[name] != (home := partition(self.home_region)):
                yield (
                    f"regions names {name} of the partition {partitions[name]}, and home is in {home}; allowed: regions of one "
                    "partition, because an account belongs to one"
                )
        yield from self._role_problems()
        yield from file_system_problems(self.file_systems, self.training)
        yield from tag_problems(self.tags)
        yield from required_tag_problems(self.rules)
        yield from preset_problems(self.presets, self.limits, self.rules, self._nameable)
        yield from named_preset_problems(self.campaigns, self.presets)
        yield from campaign_problems(
            self.campaigns, self.home_region, self.everywhere, self.data_buckets, catalogue=self.catalogue
        )
        yield from campaign_input_problems(self.campaigns, self.limits, self.describe_grids(ANY_ACCOUNT), self.rules)
        yield from watch_problems(
            self.watch,
            self.campaigns,
            self.git_hosts,
            self.repositories,
            deployment=self.deployment,
            regions=self.everywhere,
        )
        yield from network_problems(self.regions, self.network, self.placement_groups_per_zone)
        home = next((one for one in self.regions if one.region == self.home_region), None)
        yield from list_kubernetes_problems(self.kubernetes, home)
        if self.catalogue:
            yield from catalogue_problems(home)
        room = LEAST_NAMES_BYTES + REGION_BYTES * (MOST_REGIONS - len(self.training))
        if (taken := len(json.dumps(self.machine_images)) + len(json.dumps(self.git_hosts))) > room:
            yield f"machine_images and git_hosts take {taken} characters; allowed: {room}, because a function's variables have 4 KB"
        if self.reserved_concurrency == 1:
            yield "reserved_concurrency is 1; allowed: 0 for none, or 2 and more, because a queue feeds two cleanups at once at least"
        for taken, what in (
            (BUILD_CACHE, "builds keep their layers"),
            (PLATFORM, "the platform's own images are"),
            (PLATFORM_CACHE, "builds of the platform's own images keep their layers"),
        ):
            if taken in self.repositories:
                yield f"repositories names {taken}, where {what}; allowed: any other name"
        for where, listed in (
            ("network.interface_endpoints", self.network.interface_endpoints),
            ("repositories", self.repositories),
            ("image_readers.accounts", self.image_readers.accounts),
            ("image_readers.organizations", self.image_readers.organizations),
            ("copy_accounts", self.copy_accounts),
            ("image_owners", self.image_owners),
        ):
            yield from list_twice(where, listed)

    def _role_problems(self) -> Iterator[str]:
        """The deployment's own job role trusts the attendant too; without a session policy it reads the secrets of every job."""
        home, own = partition(self.home_region), job_role(self.deployment, self.home_region)
        for name, arn in self.job_roles.items():
            if (of := arn.split(":")[1]) != home:
                yield f"job_roles.{name} is of the partition {of}, and home is in {home}; allowed: a role of the same partition"
            if arn.endswith(f"/{own}"):
                yield f"job_roles.{name} is called {own}, as the deployment's own; allowed: a role that was made for trainings"

    @property
    def rules(self) -> RequestRules:
        """Returns what the functions read that judge requests."""
        return RequestRules(
            presets=self.presets, tags=self.tags, required_tags=self.required_tags, workbench=self.workbench
        )

    @property
    def jobs(self) -> JobSettings:
        """Returns what the functions read that judge jobs before Admit does."""
        return JobSettings(
            regions=self.training,
            images={str(family): image for family, image in self.images.items()},
            machine_images=self.machine_images,
            image_owners=self.image_owners,
            base_accounts=base_accounts(self.training),
            copy_accounts=self.copy_accounts,
            git_hosts=self.git_hosts,
            job_roles=tuple(self.job_roles),
            timing=self.timing,
        )

    def describe_grids(self, account: str) -> GridEnvironment:
        """Returns what a deploy in this account would tell Plan."""
        return describe_grids(
            account,
            deployment=self.deployment,
            home=self.home_region,
            regions=self.everywhere,
            repositories=self.repositories,
            data_buckets=self.data_buckets,
            grid=self.grid,
            limits=self.limits,
            tags=self.tags,
            kubernetes=self.kubernetes,
            master_port=self.master_port,
        )

    @property
    def _nameable(self) -> Nameable:
        return Nameable(
            regions=self.training,
            machine_images=self.machine_images,
            job_roles=self.job_roles,
            file_systems=[f"{one.kind}:{one.name}" for one in self.file_systems],
        )

    @property
    def every_repository(self) -> tuple[str, ...]:
        """Short names of all repositories in a region: those of people, and the platform's own."""
        return (*self.repositories, PLATFORM)

    @property
    def training(self) -> tuple[str, ...]:
        """Regions in which jobs run, home first."""
        return tuple(name for name in self.everywhere if any(one.region == name and one.trains for one in self.regions))

    @property
    def named_networks(self) -> tuple[NamedNetwork, ...]:
        """Networks that the account has already, with what nodes need of them."""
        return tuple(
            NamedNetwork(
                region=one.region,
                vpc=one.vpc,
                subnets=one.subnets,
                most_nodes=self.limits.max_nodes,
                home=one.region == self.home_region,
                workbench=self.workbench,
            )
            for one in self.regions
            if one.vpc
        )

    @property
    def subnets(self) -> tuple[str, ...]:
        """ARNs of the subnets of the settings. With names in place of the CDK's tokens, which it takes for 120 characters each."""
        return tuple(
            f"arn:{partition(one.region)}:ec2:{one.region}:*:subnet/{subnet}"
            for one in self.regions
            for subnet in one.subnets.values()
        )

    @property
    def volume_keys(self) -> tuple[str, ...]:
        """ARNs of the keys of the settings under which nodes' disks are encrypted."""
        return tuple(one.volume_key for one in self.regions if one.volume_key)

    @property
    def named_file_systems(self) -> tuple[NamedFileSystem, ...]:
        """Those whose place a deploy looks up. Not those of S3 Files, of which the calls are not known well enough."""
        vpcs = {one.region: one.vpc for one in self.regions}
        return tuple(
            NamedFileSystem(
                region=one.region, name=f"{one.kind}:{one.name}", kind=Kind(one.kind), id=one.id, vpc=vpcs[one.region]
            )
            for one in self.file_systems
            if one.kind != Kind.S3FILES.value
        )

    @property
    def everywhere(self) -> tuple[str, ...]:
        """All regions, home first, otherwise as they are listed."""
        others = (one.region for one in self.regions if one.region != self.home_region)
        return (self.home_region, *others)

    @classmethod
    def parse(cls, raw: object) -> Settings:
        """Reads the block of cdk.json. Raises BadSettings with one line per problem."""
        if not isinstance(raw, dict):
            raise BadSettings(f"cdk.json has no block context.{BLOCK} (run through `cdk`, or set CDK_CONTEXT_JSON)")
        if too_deep := find_too_deep(BLOCK, raw):
            raise BadSettings(too_deep)
        if unwritable := list_text_problems(BLOCK, raw):
            raise BadSettings("\n".join(unwritable))
        try:
            # Strict validation accepts a list for a tuple only when it reads JSON.
            return cls.model_validate_json(json.dumps(raw))
        except ValidationError as problem:
            raise BadSettings("\n".join(lines(BLOCK, cls, raw, problem))) from None
