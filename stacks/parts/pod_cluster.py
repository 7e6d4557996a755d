"""A cluster of EKS in Auto Mode for lines of grids: its API in the network alone, the mpi-operator, and what lines need there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import aws_cdk as cdk
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
POLICY = "arn:<AWS::Partition>:iam::aws:policy/"
"""As cdk-nag writes the beginning of a policy's ARN."""
POLICIES = (
    "AmazonEC2ContainerRegistryReadOnly",
    "AmazonEKSBlockStoragePolicy",
    "AmazonEKSClusterPolicy",
    "AmazonEKSComputePolicy",
    "AmazonEKSLoadBalancingPolicy",
    "AmazonEKSNetworkingPolicy",
    "AmazonEKSWorkerNodePolicy",
    "service-role/AWSLambdaBasicExecutionRole",
    "service-role/AWSLambdaVPCAccessExecutionRole",
)
PUBLIC_IMAGES = "AmazonElasticContainerRegistryPublicReadOnly"
"""One that partitions without public registries lack."""
OF_FUNCTIONS = ("W3005", "CKV_AWS_115", "CKV_AWS_116", "CKV_AWS_173", "AwsSolutions-L1")
KEYS = "EKS encrypts every object of Kubernetes with a key of its own since version 1.28; what lies there are jobs, and no secrets of ours."
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
        self._acknowledge()

    def _acknowledge(self) -> None:
        stack = cdk.Stack.of(self)
        acknowledge(self, MANAGED, *(f"AwsSolutions-IAM4[Policy::{POLICY}{one}]" for one in POLICIES))
        provider = self.cluster.node.find_child("KubectlProvider")
        handler = provider.node.find_child("Handler")
        condition, public = handler.node.find_child("HasEcrPublic"), POLICY.replace("<AWS::Partition>", "|").split("|")
        assert isinstance(condition, cdk.CfnCondition)
        named = {"Fn::Join": ["", [public[0], {"Ref": "AWS::Partition"}, f"{public[1]}{PUBLIC_IMAGES}"]]}
        choice = {"Fn::If": [stack.get_logical_id(condition), named, {"Ref": "AWS::NoValue"}]}
        acknowledge(self, MANAGED, f"AwsSolutions-IAM4[Policy::{json.dumps(choice, separators=(',', ':'))}]")
        function = handler.node.default_child
        assert isinstance(function, cdk.CfnElement)
        acknowledge(self, OF_CDK, f"AwsSolutions-IAM5[Resource::<{stack.get_logical_id(function)}.Arn>:*]")
        for one in (handler, provider.node.find_child("Provider").node.find_child("framework-onEvent")):
            acknowledge(one, OF_CDK, *OF_FUNCTIONS)
            acknowledge(one.node.find_child("LogGroup"), OF_CDK, "CKV_AWS_158")
        acknowledge(self.cluster, KEYS, "CKV_AWS_58")


def _kubectl_layer(scope: Construct) -> Any:
    """Returns the layer with kubectl. Raises NotSetUp where this computer lacks its package."""
    try:
        from aws_cdk.lambda_layer_kubectl_v35 import KubectlV35Layer
    except ImportError:
        raise NotSetUp("kubernetes.cluster: a new cluster needs the package with kubectl: make setup") from None
    return KubectlV35Layer(scope, "Kubectl")
