"""The Workflow stack (home region): the Train machine, its functions, and what wakes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from contract import keys, names
from contract.environments import (
    AdmissionEnvironment,
    ArtifactCheckEnvironment,
    AttendantEnvironment,
    CheckpointLimits,
    CleanupEnvironment,
    Environment,
    LauncherEnvironment,
    Limits,
    TerminatorEnvironment,
)
from contract.timings import AttendantTiming, CleanupTiming, LauncherTiming, TerminatorTiming
from stacks.foundation import FoundationExports
from stacks.parts import admission_rights, ec2_rights, item_rights, job_rights, mount_rights
from stacks.parts.agent import Agent
from stacks.parts.assembled import NODE
from stacks.parts.bad_ends import clear_up_after, invoke_by_clock, watch_cleanup
from stacks.parts.capacity_clock import CapacityClock
from stacks.parts.checkpoint_alarms import watch_checkpoints
from stacks.parts.common import Common
from stacks.parts.container_rights import ContainerRights
from stacks.parts.cost_alarm import watch_costs
from stacks.parts.drain import drain_first
from stacks.parts.function import Function, Layer
from stacks.parts.git_rights import GitHosts
from stacks.parts.key_rights import encrypt_volumes
from stacks.parts.node_rights import read_consoles
from stacks.parts.outputs import shown, started_here
from stacks.parts.queue import FEWEST_RECEIVES, DeadLetters, Queue
from stacks.parts.region_check import Existing, check_regions
from stacks.parts.right import Right
from stacks.parts.train_machine import Steps, TrainMachine
from stacks.parts.wakes import AT_ONCE, Wakes

ATTENDANT_TIMEOUT = cdk.Duration.minutes(1)
CLEANUP_TIMEOUT = cdk.Duration.minutes(2)
WALK_AND_REFUSALS = 1.5
"""In patiences of Terminate: a launch may run for five minutes, half a patience, and then EC2 may refuse for a whole one."""
ADMIT_MB = 1024
"""Three quarters of it are for the child that fetches code from git."""


class WorkflowStack(cdk.Stack):
    """Starts and ends every instance of the deployment."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        common: Common,
        foundation: FoundationExports,
        drain: lambda_.IFunction,
        containers: ContainerRights,
        file_systems: Sequence[mount_rights.Mountable],
        git: GitHosts,
        data_buckets: tuple[str, ...],
        job_roles: Mapping[str, str],
        master_port: int,
        limits: Limits,
        checkpoints: CheckpointLimits,
        existing: Existing,
        subnets: Sequence[str],
    ) -> None:
        """`drain` ends everything before a destroy deletes anything; launches may use `subnets` (ARNs) and the keys of `existing` too."""
        rights, timing, deployment = common.rights, common.timing, common.deployment
        super().__init__(
            scope, name, env=common.env, description=f"Trainyard {deployment}: the Train machine and its functions"
        )
        self._foundation, self._rights, self._timing, self._containers = foundation, rights, timing, containers
        self._of_jobs = [*containers.pull(), *mount_rights.mount(file_systems)]
        self._layer, self._log_retention_days = Layer(self, "Libraries"), common.log_retention_days
        self._reserved, self._common = common.reserved_concurrency, common
        self._alarms = common.add_alarms(self, foundation.topic)
        missed = DeadLetters(self, "AttendantLetters")
        endings = Queue(self, "Endings", function_timeout=ATTENDANT_TIMEOUT, receives=FEWEST_RECEIVES, letters=missed)
        attendant = self._session_function = self._attendant(missed, endings, job_roles, checkpoints)
        launcher = self._launcher(common.jobs.image_owners, subnets, existing.volume_keys)
        train = TrainMachine(
            self,
            "Train",
            physical_name=names.machine(deployment),
            steps=Steps(
                admission=self._admission(git, data_buckets, master_port, limits),
                launcher=launcher,
                attendant=attendant,
                artifact_check=self._artifact_check(),
                terminator=self._terminator(),
            ),
            max_hours=limits.max_hours,
            max_wait_hours=limits.max_wait_hours,
            timing=timing,
        )
        CapacityClock(self, "CapacityClock", launcher=launcher)
        Wakes(
            self,
            "Wakes",
            attendant=attendant,
            stream_arn=foundation.table.stream_arn,
            endings=endings,
            letters=missed,
            alarms=self._alarms,
        )
        watch_checkpoints(self._alarms, deployment, checkpoints, attendant)
        watch_costs(self._alarms, deployment, attendant)
        self._check_regions(common.regions, existing)
        letters = self._clean_up_after(train.machine)
        drain_first(self, drain)

        arn = train.machine.state_machine_arn
        for output, value, what in (
            ("CleanupDeadLetters", letters.queue_url, "Executions whose end could not be cleaned up"),
            ("AttendantDeadLetters", missed.queue_url, "Urgent reports at which the attendant failed again and again"),
            ("TrainMachine", arn, "The state machine that trains a job"),
        ):
            shown(self, output, value, what)
        how = "Open this, press Start execution, name it like the job, paste the job's JSON"
        started_here(self, "Console", arn, how)

    def _admission(self, git: GitHosts, data_buckets: tuple[str, ...], master_port: int, limits: Limits) -> Function:
        rights, foundation, agent, jobs = self._rights, self._foundation, Agent(self, "Agent"), self._common.jobs
        return self._function(
            "Admission",
            "admission",
            "Checks a request and writes job.json",
            AdmissionEnvironment(
                deployment=rights.deployment,
                bucket=foundation.home.bucket_name,
                table=foundation.table.table_name,
                log_group=names.log_group(rights.deployment),
                home_region=rights.home_region,
                repositories=self._containers.repositories,
                data_buckets=data_buckets,
                attendant=self._session_function.function_name,
                instance_profile=foundation.instance_profile.instance_profile_arn,
                master_port=master_port,
                agent=agent.digest,
                agent_bucket=agent.bucket,
                agent_key=agent.key,
                limits=limits,
                rules=self._common.rules.file,
                **jobs.write(),
            ),
            files=self._common.rule_files,
            timeout=cdk.Duration.minutes(3),
            memory_mb=ADMIT_MB,
            rights=admission_rights.admit(
                rights, agent, self._containers, git, self._session_function, jobs=jobs, data_buckets=data_buckets
            ),
        )

    def _launcher(self, image_owners: tuple[str, ...], subnets: Sequence[str], volume_keys: Sequence[str]) -> Function:
        rights, foundation = self._rights, self._foundation
        profile = foundation.instance_profile.instance_profile_arn
        return self._function(
            "Launcher",
            "launcher",
            "Starts the nodes of an attempt",
            LauncherEnvironment(
                deployment=rights.deployment,
                bucket=foundation.home.bucket_name,
                table=foundation.table.table_name,
                node_role=foundation.node_role_id,
                home_region=rights.home_region,
                instance_profile=foundation.instance_profile.instance_profile_arn,
                timing=self._timing.of(LauncherTiming),
                tags=dict(self._common.tags),
            ),
            timeout=cdk.Duration.minutes(5),
            files={"launcher/user_data.sh": NODE / "user_data.sh"},
            rights=[
                *item_rights.launch(rights),
                rights.answer_train(),
                rights.home("TellOfWaits", ["s3:PutObject"], keys.ANY_WAIT),
                rights.look_at("DescribeInstances", "ec2:DescribeInstances", "ec2:DescribeSpotPriceHistory"),
                *ec2_rights.launch_spot(),
                *ec2_rights.launch(rights, instance_profile=profile, image_owners=image_owners, subnets=subnets),
                *encrypt_volumes(volume_keys),
                rights.pass_to_ec2(foundation.node_role.role_arn),
            ],
        )

    def _attendant(
        self, letters: DeadLetters, endings: Queue, job_roles: Mapping[str, str], checkpoints: CheckpointLimits
    ) -> Function:
        rights, foundation = self._rights, self._foundation
        function = self._function(
            "Attendant",
            "attendant",
            "Looks at the nodes of every running job and answers Train",
            AttendantEnvironment(
                deployment=rights.deployment,
                table=foundation.table.table_name,
                node_role=foundation.node_role_id,
                job_role=rights.job_role,
                training_roles=dict(job_roles),
                checkpoints=checkpoints,
                topic=foundation.topic.topic_arn,
                timing=self._timing.of(AttendantTiming),
            ),
            timeout=ATTENDANT_TIMEOUT,
            rights=[
                *item_rights.attend(rights, foundation.node_role_id),
                *item_rights.follow(rights, foundation.table.stream_arn),
                *rights.see_ends(),
                rights.look_at("DescribeInstances", "ec2:DescribeInstances"),
                read_consoles(rights),
                rights.answer_train(),
                rights.leave_letters(letters.queue_arn),
                *rights.publish(foundation.topic.topic_arn, foundation.topic.key.key_arn),
                *job_rights.begin_sessions(rights, job_roles.values()),
                rights.read_queue("ReadEndings", endings.queue_arn),
            ],
            reserved=max(self._reserved, AT_ONCE) if self._reserved else 0,
        )
        function.may_invoke_itself()
        assert function.role is not None
        trusted = "What the trust policy of a role of job_roles names (docs/guides/job-roles.md)"
        shown(self, names.ATTENDANT_ROLE, function.role.role_arn, trusted)
        job_rights.JobRole(self, "JobRole", rights=rights, begun_by=function.role, further=self._of_jobs)
        return function

    def _artifact_check(self) -> Function:
        rights, foundation = self._rights, self._foundation
        return self._function(
            "ArtifactCheck",
            "artifact_check",
            "Checks that what nodes committed is in S3",
            ArtifactCheckEnvironment(
                deployment=rights.deployment,
                bucket=foundation.home.bucket_name,
                table=foundation.table.table_name,
                node_role=foundation.node_role_id,
            ),
            timeout=cdk.Duration.minutes(5),
            rights=[
                *item_rights.read_attempts(rights),
                item_rights.read_reports(rights, foundation.node_role_id),
                rights.home("WriteArtifactLists", ["s3:PutObject"], keys.ANY_LIST),
                rights.bytes("ReadCommits", ["s3:GetObject"], keys.ANY_COMMIT),
                rights.list_bytes(),
            ],
        )

    def _terminator(self) -> Function:
        rights = self._rights
        return self._function(
            "Terminator",
            "terminator",
            "Ends the instances of a job",
            TerminatorEnvironment(
                deployment=rights.deployment,
                bucket=self._foundation.home.bucket_name,
                table=self._foundation.table.table_name,
                instance_profile=self._foundation.instance_profile.instance_profile_arn,
                regions=rights.regions,
                timing=self._timing.of(TerminatorTiming),
            ),
            timeout=cdk.Duration.minutes(2),
            rights=[
                *self._end_jobs(),
                rights.bytes("ReadClosedSets", ["s3:GetObject"], keys.ANY_CLOSED),
                item_rights.query_unhealthy(rights),
                rights.list_bytes(),
            ],
            reserved=self._reserved,
        )

    def _clean_up_after(self, machine: sfn.StateMachine) -> DeadLetters:
        """Sends executions that end without Done to the queue; a message that its function cannot finish in time becomes a letter and
        raises an alarm."""
        rights, timing = self._rights, self._timing
        letters = DeadLetters(self, "CleanupLetters")
        looks = WALK_AND_REFUSALS * timing.terminate_patience_s / timing.terminate_again_s
        queue = Queue(self, "CleanupQueue", function_timeout=CLEANUP_TIMEOUT, receives=looks, letters=letters)
        function = self._function(
            "Cleanup",
            "cleanup",
            "Ends the instances of an execution that no step of it has ended",
            CleanupEnvironment(
                deployment=rights.deployment,
                bucket=self._foundation.home.bucket_name,
                table=self._foundation.table.table_name,
                instance_profile=self._foundation.instance_profile.instance_profile_arn,
                regions=rights.regions,
                machine=machine.state_machine_arn,
                queue=queue.queue_url,
                timing=timing.of(CleanupTiming),
            ),
            timeout=CLEANUP_TIMEOUT,
            rights=[
                *self._end_jobs(),
                *rights.see_ends(),
                rights.work_through(queue.queue_arn),
            ],
            reserved=self._reserved,
        )
        clear_up_after(
            self,
            machine,
            function,
            queue=queue,
            letters=letters,
            description="An execution of the Train machine ended without success",
        )
        invoke_by_clock(self, function)
        watch_cleanup(self._alarms, letters, function)
        return letters

    def _check_regions(self, regions: tuple[str, ...], existing: Existing) -> None:
        check_regions(
            self,
            rights=self._rights,
            table=self._foundation.table.table_name,
            layer=self._layer,
            log_retention_days=self._log_retention_days,
            regions=regions,
            existing=existing,
        )

    def _end_jobs(self) -> list[Right]:
        rights = self._rights
        return [
            *item_rights.end_attempts(rights),
            rights.home("WriteResults", ["s3:GetObject", "s3:PutObject"], keys.ANY_RESULT),
            rights.list_home(),
            rights.look_at("DescribeInstances", "ec2:DescribeInstances"),
            ec2_rights.terminate(rights, self._foundation.instance_profile.instance_profile_arn),
        ]

    def _function(
        self,
        name: str,
        package: str,
        description: str,
        environment: Environment,
        *,
        timeout: cdk.Duration,
        rights: Sequence[Right],
        files: Mapping[str, Path | bytes] | None = None,
        reserved: int = 0,
        memory_mb: int = 512,
    ) -> Function:
        return Function(
            self,
            name,
            package=package,
            description=description,
            environment=environment,
            layer=self._layer,
            timeout=timeout,
            log_retention_days=self._log_retention_days,
            rights=rights,
            files=files,
            reserved=reserved,
            memory_mb=memory_mb,
        )
