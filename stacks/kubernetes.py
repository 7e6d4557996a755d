"""The Kubernetes stack (home region, optional): a cluster for lines of grids, or what one that is there needs, and the function that
speaks with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from contract import metrics, names
from contract.cluster_calls import ClusterApiEnvironment, PodVerb
from contract.environments import LineCluster
from contract.kubernetes_objects import FUNCTIONS, NEW, build_node_pool, build_objects
from contract.pod_network import build_policy_controller
from stacks.foundation import FoundationExports
from stacks.kubernetes_settings import KubernetesSettings
from stacks.parts import interfaces
from stacks.parts.acknowledged import acknowledge
from stacks.parts.alarms import STEP, AlarmEvidence
from stacks.parts.common import Common
from stacks.parts.existing_network import ExistingNetwork
from stacks.parts.function import Function, FunctionNetwork, Layer
from stacks.parts.grid_rights import GridRights
from stacks.parts.kubernetes_rights import KubernetesRights
from stacks.parts.network import Network
from stacks.parts.operator_manifest import read_operator_manifest
from stacks.parts.pod_cluster import PodCluster
from stacks.parts.queue import DeadLetters
from stacks.parts.schedules import Schedules

EVERY = "rate(5 minutes)"
SILENT_MINUTES = 20
IDLE_STEPS = 6
"""Steps of five minutes: a machine goes a minute after its last pod, and the next line may be about to come."""
INTERFACES = "Lambda makes the function's interfaces with these rights, and names none before it does."
TIMEOUT = cdk.Duration.seconds(90)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesExports:
    """What the stack of grids uses of the cluster."""

    rights: KubernetesRights
    security_group: ec2.ISecurityGroup | None
    """Of the API of the deployment's own cluster; the owner of another one lets children in."""
    master_port: int
    """At which rank 0 of a line listens."""

    @property
    def line_cluster(self) -> LineCluster:
        """What Plan knows of it."""
        return LineCluster(name=self.rights.name, most_nodes=self.rights.most_nodes, port=self.master_port)


class KubernetesStack(cdk.Stack):
    """Stands before the grid's stack, whose drain deletes all MPIJobs first. It starts nothing by itself."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        common: Common,
        foundation: FoundationExports,
        network: Network | ExistingNetwork,
        grid: GridRights,
        settings: KubernetesSettings,
        master_port: int,
        root: Path,
    ) -> None:
        """`network` is the home region's; `root` is the folder from which the settings name files."""
        deployment = common.deployment
        super().__init__(
            scope,
            name,
            env=common.env,
            description=f"Trainyard {deployment}: the cluster of Kubernetes for lines of grids, and its function",
        )
        assert grid.kubernetes is not None, "the settings name a cluster"
        self._rights, self._common, self._settings = grid.kubernetes, common, settings
        group = ec2.SecurityGroup(
            self,
            "FunctionGroup",
            vpc=network.vpc,
            description="The function that speaks with the cluster: TCP 443 out, no way in",
            allow_all_outbound=False,
        )
        group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "The cluster and AWS services")
        function = self._function(FunctionNetwork(network.vpc, tuple(network.node_subnets), group))
        pods = self._rights.make_pod_role(self, grid.training())
        made = [
            self._rights.admit(self, "FunctionAccess", function.own_role, FUNCTIONS),
            self._rights.give_role(self, pods),
        ]
        cluster = self._cluster(network, root) if settings.cluster == NEW else None
        if cluster is not None:
            for one in made:
                one.node.add_dependency(cluster)
            cluster.cluster.cluster_security_group.add_ingress_rule(group, ec2.Port.tcp(443), "From the function")
        self._watch(function, foundation)
        self.exports = KubernetesExports(
            rights=self._rights,
            security_group=cluster.cluster.cluster_security_group if cluster is not None else None,
            master_port=master_port,
        )
        for output, value, what in (
            ("Cluster", self._rights.name, "aws eks update-kubeconfig --name ..., from within its network"),
            ("PodNamespace", names.pod_namespace(deployment), "kubectl -n ... get mpijobs"),
            ("ClusterFunctionRole", function.own_role.role_arn, "A member of the group for functions of the cluster"),
        ):
            cdk.CfnOutput(self, output, value=value, description=what)

    def _function(self, network: FunctionNetwork) -> Function:
        rights = self._rights
        function = Function(
            self,
            "ClusterApi",
            package="cluster_api",
            description="Finds, lists and ends MPIJobs for functions that are in no network",
            environment=ClusterApiEnvironment(
                deployment=self._common.deployment,
                home_region=rights.rights.home_region,
                cluster=rights.name,
            ),
            layer=Layer(self, "Libraries"),
            timeout=TIMEOUT,
            log_retention_days=self._common.log_retention_days,
            rights=[rights.see_cluster(), rights.use_network()],
            network=network,
            physical_name=rights.function_name,
        )
        acknowledge(function.own_role.node.find_child("DefaultPolicy"), INTERFACES, "CKV_AWS_111")
        return function

    def _cluster(self, network: Network | ExistingNetwork, root: Path) -> PodCluster:
        deployment, settings = self._common.deployment, self._settings
        return PodCluster(
            self,
            "Pods",
            cluster_name=self._rights.name,
            vpc=network.vpc,
            subnets=network.node_subnets,
            operator=read_operator_manifest(root / settings.operator_manifest, settings.operator_digest),
            objects=[
                build_policy_controller(),
                *build_objects(deployment, settings.max_nodes),
                build_node_pool(deployment),
            ],
        )

    def _watch(self, function: Function, foundation: FoundationExports) -> None:
        # Lambda must not repeat a failed tick: the next tick counts anew.
        function.configure_async_invoke(retry_attempts=0)
        letters = DeadLetters(self, "Letters")
        schedules = Schedules(
            self, "Schedule", function=function, letters=letters, description="The schedule of the watch over machines"
        )
        schedules.add("Watch", EVERY, description="Machines that no MPIJob needs", given={"verb": PodVerb.WATCH.value})
        alarms = self._common.add_alarms(self, foundation.topic)
        alarms.on_any(
            "kubernetes-idle",
            cloudwatch.Metric(
                namespace=names.METRICS,
                metric_name=metrics.IDLE_MACHINES,
                dimensions_map={metrics.DEPLOYMENT: self._common.deployment},
                statistic="Maximum",
                unit=cloudwatch.Unit.COUNT,
                period=STEP,
            ),
            "For half an hour machines of the cluster have run that no MPIJob needs: they cost money. The function's log names them. "
            "Look what runs on them, and whether the pool's consolidation works.",
            steps=IDLE_STEPS,
            evidence=AlarmEvidence(function=function),
        )
        alarms.on_silence(
            "kubernetes-silent",
            interfaces.function(function),
            "For twenty minutes the function that speaks with the cluster has not answered: lines on Kubernetes go on, and nothing ends "
            "what is left of them. Its log says why.",
            minutes=SILENT_MINUTES,
            evidence=AlarmEvidence(function=function, letters=letters),
        )
