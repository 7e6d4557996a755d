"""Settings of the cluster of EKS on which lines with the backend kubernetes run."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from contract.kubernetes_objects import NEW, OPERATOR_DIGEST, OPERATOR_SOURCE
from stacks.blocks import Block
from stacks.forms import ClusterName, Digest, ManifestFile
from stacks.network_settings import RegionSettings

LEAST_ZONES = 2
"""Zones that EKS wants of a cluster's subnets."""
WITHOUT_CLUSTERS = {"us-east-1": "use1-az3", "us-west-1": "usw1-az2", "ca-central-1": "cac1-az3"}
"""Region to the id of its zone into which EKS puts no cluster. Which name that zone has differs from account to account."""


class KubernetesSettings(Block):
    """Lines of grids on Kubernetes (docs/guides/kubernetes.md)."""

    cluster: ClusterName = ""
    """`new` for a cluster of the deployment's own, or the name of one that the account has in the home region; empty for none, and then
    no line may have the backend kubernetes."""
    max_nodes: int = Field(default=8, ge=1, le=1000)
    """The most machines of all lines on Kubernetes together."""
    operator_manifest: ManifestFile = ""
    """The file, from the folder of cdk.json on, with the release manifest of the mpi-operator, which a new cluster gets."""
    operator_digest: Digest = OPERATOR_DIGEST
    """SHA-256 of that file; the default is that of the release for which Trainyard was tested."""


def list_kubernetes_problems(settings: KubernetesSettings, home: RegionSettings | None) -> Iterator[str]:
    """Yields a line for everything that does not fit together. `home` is the home region, in whose network a new cluster is."""
    if (
        settings.cluster == NEW and home is not None and home.trains
    ):  # otherwise the network is missing, which is said already
        yield from _list_zone_problems(home)
    if settings.cluster == NEW and not settings.operator_manifest:
        yield (
            f"kubernetes.cluster is {NEW}, and kubernetes.operator_manifest is missing; allowed: the name of the file "
            f"{OPERATOR_SOURCE}, which you download"
        )
    if settings.cluster != NEW and settings.operator_manifest:
        yield (
            f"kubernetes.operator_manifest is for a new cluster; allowed: nothing, or kubernetes.cluster {NEW}: on a cluster of your own "
            "its owner installs the operator"
        )


def _list_zone_problems(home: RegionSettings) -> Iterator[str]:
    if home.zone_count < LEAST_ZONES:
        yield (
            f"kubernetes.cluster is {NEW}, and nodes of {home.region} have {home.zone_count} zone; allowed: {LEAST_ZONES} zones or more, "
            "because EKS makes no cluster in fewer"
        )
    without = WITHOUT_CLUSTERS.get(home.region)
    if without and home.cidr and not home.zones:
        yield (
            f"kubernetes.cluster is {NEW}, and regions names no zones of {home.region}, where EKS takes no subnet in the zone with the id "
            f"{without}; allowed: {LEAST_ZONES} zones or more by name, without the one that has this id in your account "
            "(aws ec2 describe-availability-zones shows names and ids)"
        )
