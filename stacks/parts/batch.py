"""The grid's children on Batch: Fargate in home's private subnets, a queue, and one job definition."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_batch as batch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from contract.grid import ExitCode
from stacks.parts.acknowledged import acknowledge
from stacks.parts.right import Right, role

VCPU, MEMORY_MB = 0.25, 512
"""The smallest size of a Fargate task, which is enough: a child asks SageMaker something once a minute."""
ATTEMPTS = 10
"""Batch's maximum. A child that starts again adopts the training of the child before it."""
TASKS = "ecs-tasks.amazonaws.com"
"""The service that a child's roles trust: Batch runs jobs on Fargate as tasks of ECS."""
PLATFORM_VERSION = "1.4.0"
ENVIRONMENTS = {"FARGATE": "Machines", "FARGATE_SPOT": "SpotMachines"}
"""Logical id by type of compute environment. Batch cannot change an environment's type, and deleting one while children run in it
makes it invalid. So both always exist, which costs nothing, and the queue names the one for new children."""
RULES: list[dict[str, str]] = [
    {"onExitCode": str(int(ExitCode.AGAIN)), "action": "RETRY"},
    # The child was killed (137, 143), as Fargate does with a task that does not leave in time when it is retired; or it broke (1).
    {"onExitCode": "1*", "action": "RETRY"},
    # "Task failed to start", "Timeout waiting for network interface provisioning to complete.": an image, or an address, was not
    # available at that moment.
    {"onStatusReason": "T*", "action": "RETRY"},
    {"onStatusReason": "Your Spot Task*", "action": "RETRY"},
    # Without this rule Batch would retry every exit, including ExitCode.FINAL.
    {"onReason": "*", "action": "EXIT"},
]
"""The first matching rule decides; Batch takes five at most. Too many attempts do no harm: a line is trained once."""


class Children(Construct):
    """A job is submitted with the names of `queue` and `definition`; Batch takes the newest revision of the definition."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        at_once: int,
        spot: bool,
        queue: str,
        definition: str,
        image: str,
        environment: Mapping[str, str],
        log: logs.ILogGroup,
        job_role: iam.Role,
        start: Sequence[Right],
    ) -> None:
        """`start` are the rights with which Fargate starts a child; `job_role` has those of the child itself."""
        super().__init__(scope, name)
        self.group = group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=vpc,
            description="Children of grids: TCP 443 out, no way in",
            allow_all_outbound=False,
        )
        group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "AWS services")
        environments = {
            kind: batch.CfnComputeEnvironment(
                self,
                environment,
                type="MANAGED",
                state="ENABLED",
                compute_resources=batch.CfnComputeEnvironment.ComputeResourcesProperty(
                    type=kind,
                    maxv_cpus=vcpus(at_once),
                    subnets=[subnet.subnet_id for subnet in subnets],
                    security_group_ids=[group.security_group_id],
                ),
                # Changed in place, because a queue refers to it and jobs run in it.
                replace_compute_environment=False,
            )
            for kind, environment in ENVIRONMENTS.items()
        }
        machines = environments["FARGATE_SPOT" if spot else "FARGATE"]
        self.queue = batch.CfnJobQueue(
            self,
            "Queue",
            job_queue_name=queue,
            priority=1,
            state="ENABLED",
            compute_environment_order=[
                batch.CfnJobQueue.ComputeEnvironmentOrderProperty(
                    order=1, compute_environment=machines.attr_compute_environment_arn
                )
            ],
        )
        starts = role(self, "StartRole", TASKS, "Starts children of grids", *start)
        self.definition = batch.CfnJobDefinition(
            self,
            "Child",
            job_definition_name=definition,
            type="container",
            platform_capabilities=["FARGATE"],
            propagate_tags=True,
            retry_strategy=batch.CfnJobDefinition.RetryStrategyProperty(
                attempts=ATTEMPTS, evaluate_on_exit=[_rule(one) for one in RULES]
            ),
            # Has no time-out: Batch would not retry a child that reaches it, and the child leaves by itself before Fargate ends it.
            container_properties=_container(image, environment, log, job_role, starts),
        )
        for used in (job_role, starts):
            self.definition.node.add_dependency(used)
        acknowledge(self.definition, "CDK writes a dependency that a reference makes already.", "W3005")


def _rule(one: Mapping[str, str]) -> batch.CfnJobDefinition.EvaluateOnExitProperty:
    return batch.CfnJobDefinition.EvaluateOnExitProperty(
        action=one["action"],
        on_exit_code=one.get("onExitCode"),
        on_status_reason=one.get("onStatusReason"),
        on_reason=one.get("onReason"),
    )


def _container(
    image: str, environment: Mapping[str, str], log: logs.ILogGroup, job_role: iam.Role, starts: iam.Role
) -> batch.CfnJobDefinition.ContainerPropertiesProperty:
    needed: list[Any] = [
        batch.CfnJobDefinition.ResourceRequirementProperty(type="VCPU", value=str(VCPU)),
        batch.CfnJobDefinition.ResourceRequirementProperty(type="MEMORY", value=str(MEMORY_MB)),
    ]
    return batch.CfnJobDefinition.ContainerPropertiesProperty(
        image=image,
        job_role_arn=job_role.role_arn,
        execution_role_arn=starts.role_arn,
        resource_requirements=needed,
        environment=[
            batch.CfnJobDefinition.EnvironmentProperty(name=name, value=value)
            for name, value in sorted(environment.items())
        ],
        readonly_root_filesystem=True,
        privileged=False,
        user=UNPRIVILEGED,
        network_configuration=batch.CfnJobDefinition.NetworkConfigurationProperty(assign_public_ip="DISABLED"),
        fargate_platform_configuration=batch.CfnJobDefinition.FargatePlatformConfigurationProperty(
            platform_version=PLATFORM_VERSION
        ),
        runtime_platform=batch.CfnJobDefinition.RuntimePlatformProperty(
            cpu_architecture="X86_64", operating_system_family="LINUX"
        ),
        log_configuration=batch.CfnJobDefinition.LogConfigurationProperty(
            log_driver="awslogs",
            options={
                "awslogs-group": log.log_group_name,
                "awslogs-region": cdk.Aws.REGION,
                "awslogs-stream-prefix": "child",
            },
        ),
    )


UNPRIVILEGED = "65532"
"""The user id that images call `nonroot`. The child's own image has a user of its own, which needs no more rights than this one."""


def vcpus(children: int) -> int:
    """Returns the whole vCPUs in which so many children run at once."""
    return math.ceil(children * VCPU)
