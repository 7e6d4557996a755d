"""Makes the environments of Admit and Plan from settings, as a deploy would, with names in place of what only a deploy knows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from contract import names
from contract.environments import AdmissionEnvironment, GridEnvironment
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

    name, home = settings.deployment, settings.home_region
    return AdmissionEnvironment(
        deployment=name,
        bucket=names.home_bucket(name, account, home),
        table=names.state_table(name),
        log_group=names.log_group(name),
        home_region=home,
        repositories=settings.repositories,
        data_buckets=settings.data_buckets,
        attendant=NOT_KNOWN,
        instance_profile=f"arn:{partition(home)}:iam::{account}:instance-profile/{name}",
        master_port=settings.master_port,
        agent=NOT_KNOWN,
        agent_bucket=NOT_KNOWN,
        agent_key=NOT_KNOWN,
        limits=settings.limits,
        **settings.jobs.write(),
    )


def describe_grids(settings: Settings, account: str) -> GridEnvironment:
    """Returns what a deploy of the settings would tell Plan."""
    return settings.describe_grids(account)


def list_file_systems(settings: Settings) -> dict[str, tuple[FileSystem, ...]]:
    """Returns what jobs may mount, by region."""
    return {
        region: tuple(one.described(NOT_KNOWN) for one in settings.file_systems if one.region == region)
        for region in settings.training
    }
