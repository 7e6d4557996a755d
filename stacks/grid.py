"""The Grid stack (home region): the Grid machine, its functions, the children on Batch, and the role of trainings everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from contract import names
from contract.catalogue import CatalogueAccess
from contract.environments import (
    ChildEnvironment,
    Environment,
    GridCleanupEnvironment,
    GridCollectEnvironment,
    GridEnvironment,
)
from contract.job_settings import SETTINGS_FILE
from contract.kubernetes_objects import CHILDREN
from contract.limits import Limits
from contract.timings import ChildTiming, CollectTiming
from stacks.foundation import FoundationExports
from stacks.grid_settings import GridSettings
from stacks.kubernetes import KubernetesExports
from stacks.parts.admission_rights import judge_lines
from stacks.parts.alarms import AlarmEvidence
from stacks.parts.bad_ends import clear_up_after
from stacks.parts.batch import TASKS, Children
from stacks.parts.catalogue_rights import query_as_reader
from stacks.parts.common import Common
from stacks.parts.drain import drain_first
from stacks.parts.existing_network import ExistingNetwork
from stacks.parts.function import WHOLE_CPU_MB, Function, Layer
from stacks.parts.grid_machine import OF_AN_ARRAY, ChildSubmission, GridMachine
from stacks.parts.grid_rights import SAGEMAKER, GridRights
from stacks.parts.logs import log_group
from stacks.parts.network import Network
from stacks.parts.outputs import started_here
from stacks.parts.queue import DeadLetters, Queue
from stacks.parts.right import Right, grant_apart, role
from stacks.parts.rights import arn_of

FUNCTION_TIMEOUT = cdk.Duration.minutes(15)
"""Lambda's maximum: a plan, or a collection, of 10,000 lines takes about a minute, and SageMaker may throttle."""
MORE_RECEIVES = 1.5
"""Factor for receives beyond those of the patience: for looks that end early, and for throttles."""


class GridStack(cdk.Stack):
    """Starts and ends every training of the deployment."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        common: Common,
        foundation: FoundationExports,
        drain: lambda_.IFunction,
        network: Network | ExistingNetwork,
        grid: GridRights,
        settings: GridSettings,
        job_limits: Limits,
        child_image: str,
        output_key: str = "",
        catalogue: CatalogueAccess | None = None,
        kubernetes: KubernetesExports | None = None,
    ) -> None:
        """`job_limits` are those of lines that run on clusters of our own; `drain` ends what runs before a destroy deletes anything;
        `network` is the home region's; `child_image` is a tag in its repository names.PLATFORM; `output_key` is the alias of a key in
        every region; `catalogue` is the database of queries, as its reader."""
        rights, timing, deployment = common.rights, common.timing, common.deployment
        super().__init__(
            scope,
            name,
            env=common.env,
            description=f"Trainyard {deployment}: the Grid machine, its functions and its children",
        )
        self._foundation, self._rights, self._timing, self._grid = foundation, rights, timing, grid
        self._layer, self._common = Layer(self, "Libraries"), common
        training = self._training_role()
        planning = GridEnvironment(
            deployment=deployment,
            bucket=foundation.home.bucket_name,
            table=foundation.table.table_name,
            account=cdk.Aws.ACCOUNT_ID,
            suffix=cdk.Aws.URL_SUFFIX,
            home_region=rights.home_region,
            regions=grid.regions,
            repositories=grid.repositories,
            base_accounts=grid.base_accounts,
            data_buckets=grid.data_buckets,
            training_role=training.role_arn,
            machine=self._grid.machine_arn,
            queue=names.grid_queue(deployment),
            child_image=child_image,
            limits=settings.limits,
            job_limits=job_limits,
            train_machine=rights.train_machine,
            defaults=settings.defaults,
            output_key=output_key,
            tags=dict(common.tags),
            catalogue=catalogue,
            kubernetes=kubernetes.line_cluster if kubernetes else None,
        )
        collecting = self._collecting_environment = self._extend(planning)
        children = self._children(training, network, settings, child_image, kubernetes)
        machine = GridMachine(
            self,
            "Grid",
            physical_name=names.grid_machine(deployment),
            plan=self._plan(planning),
            collect=self._collect(collecting),
            jobs=ChildSubmission(
                queue=children.queue.attr_job_queue_arn,
                definition=names.child_definition(deployment),
                deployment=deployment,
                tags=common.tags,
            ),
            limits=settings.limits,
            timing=timing,
            rights=grid.machine(),
            with_catalogue=catalogue is not None,
        ).machine
        # Named explicitly, because nothing else in the definition makes CloudFormation wait for it.
        machine.node.add_dependency(children.definition)
        letters = DeadLetters(self, "GridLetters")
        cleanup = self._clean_up_after(machine, collecting, letters)
        self._alarms(cleanup, letters)
        drain_first(self, drain)
        self._outputs(machine.state_machine_arn, letters, training)

    def _extend(self, planning: GridEnvironment) -> GridCollectEnvironment:
        topic, timing = self._foundation.topic.topic_arn, self._timing.of(CollectTiming)
        return GridCollectEnvironment(**_fields(planning), topic=topic, timing=timing)

    def check_with(self) -> GridCollectEnvironment:
        """Returns what a search checks its trials with. The role is named, so that a stack that reads this needs nothing of this one."""
        role_name = f"role/{names.training_role(self._rights.deployment, self._rights.home_region)}"
        named = arn_of("iam", "", cdk.Aws.ACCOUNT_ID, role_name)
        files = {"rules": self._common.rules.file, "jobs": SETTINGS_FILE}
        return replace(self._collecting_environment, training_role=named, catalogue=None, **files)

    def _training_role(self) -> iam.Role:
        made = role(
            self,
            "TrainingRole",
            SAGEMAKER,
            "Trainings of grids, in every region: their data, their images, their own folders",
            *self._grid.training(),
            role_name=names.training_role(self._rights.deployment, self._rights.home_region),
        )
        grant_apart(made, "Logs", *self._grid.training_logs())
        return made

    def _children(
        self,
        training: iam.Role,
        network: Network | ExistingNetwork,
        settings: GridSettings,
        child_image: str,
        kubernetes: KubernetesExports | None,
    ) -> Children:
        rights, deployment = self._rights, self._rights.deployment
        log = log_group(
            self, "ChildLog", days=self._common.log_retention_days, physical_name=names.child_log_group(deployment)
        )
        does = "Children of grids: create, watch and stop trainings of this deployment"
        child = role(self, "ChildRole", TASKS, does, *self._grid.child(training.role_arn))
        environment = ChildEnvironment(
            deployment=deployment,
            bucket=self._foundation.home.bucket_name,
            home_region=rights.home_region,
            timing=self._timing.of(ChildTiming),
            grid="",
            first=0,
            round=1,
        ).write()
        registry = f"{cdk.Aws.ACCOUNT_ID}.dkr.ecr.{rights.home_region}.{cdk.Aws.URL_SUFFIX}"
        children = Children(
            self,
            "Children",
            vpc=network.vpc,
            subnets=network.node_subnets,
            at_once=settings.limits.max_concurrent,
            spot=settings.spot_children,
            queue=names.grid_queue(deployment),
            definition=names.child_definition(deployment),
            image=f"{registry}/{names.repository(deployment, names.PLATFORM)}:{child_image}",
            environment={name: value for name, value in environment.items() if name not in OF_AN_ARRAY},
            log=log,
            job_role=child,
            start=self._grid.start_child(log.log_group_arn),
        )
        if kubernetes:
            kubernetes.rights.admit(self, "ChildAccess", child, CHILDREN)
        if kubernetes and kubernetes.security_group:
            # In this stack: the cluster's does not know the children's group.
            ec2.CfnSecurityGroupIngress(
                self,
                "ChildrenToCluster",
                ip_protocol="tcp",
                from_port=443,
                to_port=443,
                group_id=kubernetes.security_group.security_group_id,
                source_security_group_id=children.group.security_group_id,
                description="From children of grids",
            )
        return children

    def _plan(self, environment: GridEnvironment) -> Function:
        environment = replace(environment, rules=self._common.rules.file, jobs=SETTINGS_FILE)
        what = "Checks every line of a manifest and writes the plan"
        rights = [*self._grid.plan(), *judge_lines(self._common, self._grid.repositories)]
        if environment.catalogue:
            rights += [*query_as_reader(environment.catalogue), self._grid.write_manifests()]
        return self._function("GridPlan", "planner", what, environment, rights, self._common.job_files)

    def _collect(self, environment: GridCollectEnvironment) -> Function:
        what = "Collects the records of a grid, ends it, and tells people"
        return self._function("GridCollect", "grid_collect", what, environment, self._collecting())

    def _clean_up_after(
        self, machine: sfn.StateMachine, environment: GridCollectEnvironment, letters: DeadLetters
    ) -> Function:
        """Sends grids whose execution ends without Done to a queue; a message that its function cannot finish becomes a letter."""
        timing = self._timing
        looks = MORE_RECEIVES * timing.grid_stop_patience_s / timing.grid_collect_again_s
        queue = Queue(
            self,
            "GridQueue",
            function_timeout=FUNCTION_TIMEOUT,
            receives=looks,
            letters=letters,
        )
        function = self._function(
            "GridCleanup",
            "grid_cleanup",
            "Ends the trainings of a grid that no step of it has ended",
            GridCleanupEnvironment(**_fields(environment), messages=queue.queue_url),
            [
                *self._collecting(),
                self._grid.grid_executions("DescribeExecutions", "states:DescribeExecution"),
                self._rights.work_through(queue.queue_arn),
            ],
        )
        clear_up_after(
            self,
            machine,
            function,
            queue=queue,
            letters=letters,
            description="An execution of the Grid machine ended without success",
        )
        return function

    def _collecting(self) -> list[Right]:
        topic = self._foundation.topic
        return self._grid.collect(topic.topic_arn, topic.key.key_arn)

    def _function(
        self,
        name: str,
        package: str,
        description: str,
        environment: Environment,
        rights: Sequence[Right],
        files: Mapping[str, bytes] | None = None,
    ) -> Function:
        return Function(
            self,
            name,
            package=package,
            description=description,
            environment=environment,
            layer=self._layer,
            timeout=FUNCTION_TIMEOUT,
            memory_mb=WHOLE_CPU_MB,
            log_retention_days=self._common.log_retention_days,
            rights=rights,
            files=files,
        )

    def _alarms(self, cleanup: Function, letters: DeadLetters) -> None:
        alarms = self._common.add_alarms(self, self._foundation.topic)
        alarms.on_any(
            "grid-letters",
            letters.metric_approximate_number_of_messages_visible(statistic="Maximum"),
            "A grid ended, and the cleanup could not prove in time that its trainings ended: they may still run. "
            "The letter names the execution; the reaper stops its trainings about ten minutes after it ended.",
            evidence=AlarmEvidence(function=cleanup, letters=letters),
        )
        alarms.on_any(
            "grid-errors",
            cleanup.metric_errors(statistic="Sum"),
            "The function that cleans up after grids failed or timed out; its message is tried again after an hour and a half. "
            "Its log says why; meanwhile the reaper stops the trainings.",
            evidence=AlarmEvidence(function=cleanup),
        )

    def _outputs(self, machine: str, letters: DeadLetters, training: iam.Role) -> None:
        for output, value, what in (
            ("GridMachine", machine, "The state machine that trains every line of a manifest"),
            ("TrainingRoleArn", training.role_arn, "KMS keys and buckets of other accounts must allow this role"),
            ("GridCleanupDeadLetters", letters.queue_url, "Grids whose end could not be cleared up"),
        ):
            cdk.CfnOutput(self, output, value=value, description=what)
        started_here(self, "GridConsole", machine, "Open this, press Start execution, paste where the manifest is")


def _fields(environment: GridEnvironment) -> dict[str, Any]:
    """Returns the fields of an environment, to make one that has more."""
    return {field.name: getattr(environment, field.name) for field in fields(environment)}
