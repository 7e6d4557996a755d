"""Makes the environments of Admit and Plan from settings, as a deploy would, with names in place of what only a deploy knows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from contract import names
from contract.environments import AdmissionEnvironment, GridEnvironment, LineCluster
from contract.kubernetes_objects import NEW
from contract.mounts import FileSystem
from trainyard.settings import NO_ACCOUNT

if TYPE_CHECKING:
    from stacks.settings import Settings

NOT_KNOWN = ""
"""Stands for what no check without AWS looks at."""
SHOWN_ACCOUNT = "<number of the account>"
"""Stands in words for a person for an account that is not known. No bucket's name can have it, so it is not what a person gave."""
HIDDEN = re.compile(rf"(?<!\d){NO_ACCOUNT}(?!\d)")
"""Zeros inside of a longer number are a person's own."""


def find_account(text: str, deployment: str, region: str) -> str:
    """Returns the account that a request means, by the names of the deployment's buckets, a secret, a group or a registry; NO_ACCOUNT where
    it names none of these."""
    home = re.escape(names.home_bucket(deployment, "ACCOUNT", region)).replace("ACCOUNT", "([0-9]{12})")
    bytes_ = names.bytes_bucket(re.escape(deployment), "([0-9]{12})", names.REGION_PATTERN.pattern)
    for pattern in (
        home,
        bytes_,
        r":secretsmanager:[a-z0-9-]+:([0-9]{12}):",
        r":resource-groups:[a-z0-9-]+:([0-9]{12}):",
    ):
        if found := re.search(pattern, text):
            return found[1]
    registry = re.search(rf"\b([0-9]{{12}})\.dkr\.ecr\.[a-z0-9-]+\.[a-z.]+/{re.escape(deployment)}/", text)
    return registry[1] if registry else NO_ACCOUNT


def hide_account(words: str) -> str:
    """Returns words for a person without the digits that stand for an account."""
    return HIDDEN.sub(SHOWN_ACCOUNT, words)


def describe_admission(settings: Settings, account: str) -> AdmissionEnvironment:
    """Returns what a deploy of the settings would tell Admit."""
    from stacks.forms import partition
    from stacks.parts.container_rights import base_accounts

    name, home = settings.deployment, settings.home_region
    return AdmissionEnvironment(
        deployment=name,
        bucket=names.home_bucket(name, account, home),
        table=names.state_table(name),
        log_group=names.log_group(name),
        home_region=home,
        regions=settings.training,
        images={str(family): image for family, image in settings.images.items()},
        machine_images=settings.machine_images,
        image_owners=settings.image_owners,
        repositories=settings.repositories,
        base_accounts=base_accounts(settings.training),
        copy_accounts=settings.copy_accounts,
        git_hosts=settings.git_hosts,
        data_buckets=settings.data_buckets,
        job_roles=tuple(settings.job_roles),
        attendant=NOT_KNOWN,
        instance_profile=f"arn:{partition(home)}:iam::{account}:instance-profile/{name}",
        master_port=settings.master_port,
        agent=NOT_KNOWN,
        agent_bucket=NOT_KNOWN,
        agent_key=NOT_KNOWN,
        limits=settings.limits,
        timing=settings.timing,
    )


def describe_grids(settings: Settings, account: str) -> GridEnvironment:
    """Returns what a deploy of the settings would tell Plan."""
    from stacks.forms import partition
    from stacks.parts.container_rights import base_accounts
    from stacks.parts.own_images import child_tag

    name, home = settings.deployment, settings.home_region
    machine = f"arn:{partition(home)}:states:{home}:{account}:stateMachine:"
    return GridEnvironment(
        deployment=name,
        bucket=names.home_bucket(name, account, home),
        table=names.state_table(name),
        account=account,
        suffix="amazonaws.com.cn" if partition(home) == "aws-cn" else "amazonaws.com",
        home_region=home,
        regions=settings.everywhere,
        repositories=settings.repositories,
        base_accounts=base_accounts(settings.everywhere),
        data_buckets=settings.data_buckets,
        training_role=NOT_KNOWN,
        machine=f"{machine}{names.grid_machine(name)}",
        queue=names.grid_queue(name),
        child_image=child_tag(settings.grid.child_base),
        limits=settings.grid.limits,
        job_limits=settings.limits,
        train_machine=f"{machine}{names.machine(name)}",
        defaults=settings.grid.defaults,
        tags=settings.tags,
        kubernetes=_describe_cluster(settings),
    )


def _describe_cluster(settings: Settings) -> LineCluster | None:
    given = settings.kubernetes
    if not given.cluster:
        return None
    name = names.eks_cluster(settings.deployment) if given.cluster == NEW else given.cluster
    return LineCluster(name=name, most_nodes=given.max_nodes, port=settings.master_port)


def list_file_systems(settings: Settings) -> dict[str, tuple[FileSystem, ...]]:
    """Returns what jobs may mount, by region."""
    return {
        region: tuple(one.described(NOT_KNOWN) for one in settings.file_systems if one.region == region)
        for region in settings.training
    }
