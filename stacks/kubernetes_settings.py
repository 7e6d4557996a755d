"""Settings of the cluster of EKS on which lines with the backend kubernetes run."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from contract.kubernetes_objects import NEW, OPERATOR_DIGEST, OPERATOR_SOURCE
from stacks.blocks import Block
from stacks.forms import ClusterName, Digest, ManifestFile


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


def list_kubernetes_problems(settings: KubernetesSettings) -> Iterator[str]:
    """Yields a line for everything that does not fit together."""
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
