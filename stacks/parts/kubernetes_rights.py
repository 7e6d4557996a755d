"""Rights about the cluster of Kubernetes: who may see it, who may invoke the function that speaks with it, and what its pods may do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from contract import grid, names
from contract.kubernetes_objects import NEW, group_of
from contract.mpi_job import SERVICE_ACCOUNT
from stacks.parts import interfaces
from stacks.parts.right import Right, grant
from stacks.parts.rights import Rights, arn_of

APART = "Kubernetes"
"""Name of the further policy of a role with these rights."""
PODS = "pods.eks.amazonaws.com"
"""The service that gives pods their role's credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesRights:
    """Statements about one deployment's cluster."""

    rights: Rights
    cluster: str
    """The setting: NEW, or a name."""
    most_nodes: int

    @property
    def name(self) -> str:
        """Name of the cluster."""
        return names.eks_cluster(self.rights.deployment) if self.cluster == NEW else self.cluster

    @property
    def function_name(self) -> str:
        return names.cluster_function(self.rights.deployment)

    def see_cluster(self) -> Right:
        """Reads where the cluster's API is. What is allowed there, the cluster's own groups say."""
        return Right("SeeTheCluster", ["eks:DescribeCluster"], [self._arn("eks", f"cluster/{self.name}")], apart=APART)

    def ask_cluster(self) -> Right:
        """Invokes the function that speaks with the cluster."""
        function = self._arn("lambda", f"function:{self.function_name}")
        return Right("AskTheCluster", ["lambda:InvokeFunction"], [function], apart=APART)

    def read_notes(self) -> Right:
        """Reads what pods of lines note of themselves."""
        return replace(self.rights.bytes("ReadNotesOfPods", ["s3:GetObject"], grid.ANY_POD_NOTE), apart=APART)

    def list_notes(self) -> Right:
        """With this right S3 answers "no such key" for a note that is not there."""
        return replace(self.rights.list_bytes(), apart=APART)

    def note_submissions(self) -> Right:
        """Notes where pods cannot write that an MPIJob was made."""
        return replace(self.rights.home("NoteSubmissions", ["s3:PutObject"], grid.ANY_SUBMITTED), apart=APART)

    def see_types(self) -> Right:
        reason = "Describing types supports no resource-level permissions, and changes nothing."
        return Right("DescribeTypes", ["ec2:DescribeInstanceTypes"], ["*"], reason, apart=APART)

    def child(self) -> list[Right]:
        """Beside those of every child."""
        return [self.see_cluster(), self.note_submissions(), self.read_notes(), self.list_notes()]

    def collect(self) -> list[Right]:
        """Beside those of what collects a grid's records. It lists buckets of bytes by none of its other rights."""
        return [self.ask_cluster(), self.read_notes(), self.list_notes()]

    def use_network(self) -> Right:
        """For the function: Lambda makes its interfaces with the function's rights."""
        actions = [
            "ec2:CreateNetworkInterface",
            "ec2:DeleteNetworkInterface",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSubnets",
            "ec2:AssignPrivateIpAddresses",
            "ec2:UnassignPrivateIpAddresses",
        ]
        reason = "Lambda names no interface before it makes one, and checks these rights when it does."
        return Right("UseTheNetwork", actions, ["*"], reason)

    def make_pod_role(self, scope: Construct, rights: Sequence[Right]) -> iam.Role:
        """Makes the role of lines' pods, which the cluster's agent alone gets for them."""
        deployment, home = self.rights.deployment, self.rights.home_region
        trusted = iam.ServicePrincipal(
            PODS,
            conditions={
                "StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID},
                "ArnEquals": {"aws:SourceArn": self._arn("eks", f"cluster/{self.name}")},
            },
        )
        made = iam.Role(
            scope,
            "PodRole",
            role_name=names.pod_role(deployment, home),
            assumed_by=interfaces.principal(iam.SessionTagsPrincipal(interfaces.principal(trusted))),
            description="Pods of lines on Kubernetes: their data, their own folders",
        )
        grant(made, *rights)
        return made

    def admit(self, scope: Construct, name: str, role: iam.Role, who: str) -> eks.CfnAccessEntry:
        """Lets a role speak with the cluster as a member of a group of its own."""
        return eks.CfnAccessEntry(
            scope,
            name,
            cluster_name=self.name,
            principal_arn=role.role_arn,
            kubernetes_groups=[group_of(self.rights.deployment, who)],
            type="STANDARD",
        )

    def give_role(self, scope: Construct, role: iam.Role) -> eks.CfnPodIdentityAssociation:
        """Gives the pods of lines their role."""
        return eks.CfnPodIdentityAssociation(
            scope,
            "PodIdentity",
            cluster_name=self.name,
            namespace=names.pod_namespace(self.rights.deployment),
            service_account=SERVICE_ACCOUNT,
            role_arn=role.role_arn,
        )

    def _arn(self, service: str, resource: str) -> str:
        return arn_of(service, self.rights.home_region, cdk.Aws.ACCOUNT_ID, resource)
