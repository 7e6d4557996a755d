"""What a deploy tells Plan of the settings, for those who read lines before it."""

from __future__ import annotations

from collections.abc import Mapping

from contract import names
from contract.environments import GridEnvironment, LineCluster
from contract.kubernetes_objects import NEW
from contract.limits import Limits
from stacks.forms import partition
from stacks.grid_settings import GridSettings
from stacks.kubernetes_settings import KubernetesSettings
from stacks.parts.container_rights import base_accounts

NOT_KNOWN = ""
"""Stands for what no check without AWS looks at."""


def describe_grids(
    account: str,
    *,
    deployment: str,
    home: str,
    regions: tuple[str, ...],
    repositories: tuple[str, ...],
    data_buckets: tuple[str, ...],
    grid: GridSettings,
    limits: Limits,
    tags: Mapping[str, str],
    kubernetes: KubernetesSettings,
    master_port: int,
) -> GridEnvironment:
    """Returns what a deploy in this account would tell Plan."""
    machine = f"arn:{partition(home)}:states:{home}:{account}:stateMachine:"
    return GridEnvironment(
        deployment=deployment,
        bucket=names.home_bucket(deployment, account, home),
        table=names.state_table(deployment),
        account=account,
        suffix="amazonaws.com.cn" if partition(home) == "aws-cn" else "amazonaws.com",
        home_region=home,
        regions=regions,
        repositories=repositories,
        base_accounts=base_accounts(regions),
        data_buckets=data_buckets,
        training_role=NOT_KNOWN,
        machine=f"{machine}{names.grid_machine(deployment)}",
        queue=names.grid_queue(deployment),
        child_image=NOT_KNOWN,
        limits=grid.limits,
        job_limits=limits,
        train_machine=f"{machine}{names.machine(deployment)}",
        defaults=grid.defaults,
        tags=dict(tags),
        kubernetes=_describe_cluster(deployment, kubernetes, master_port),
    )


def _describe_cluster(deployment: str, given: KubernetesSettings, port: int) -> LineCluster | None:
    if not given.cluster:
        return None
    name = names.eks_cluster(deployment) if given.cluster == NEW else given.cluster
    return LineCluster(name=name, most_nodes=given.max_nodes, port=port)
