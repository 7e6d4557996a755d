"""The Workflow stack (home region): the Train machine, its functions, and what wakes them."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from contract import keys, names
from contract.environments import (
    AdmissionEnvironment,
    ArtifactCheckEnvironment,
    AttendantEnvironment,
    Environment,
    LauncherEnvironment,
    Limits,
    TerminatorEnvironment,
)
from contract.timing import Timing
from stacks.foundation import FoundationExports
from stacks.parts.assembled import NODE
from stacks.parts.function import Function, Layer
from stacks.parts.rights import READ, Right, Rights
from stacks.parts.train_machine import Steps, TrainMachine

CLOCK = cdk.Duration.minutes(1)
"""The finest that EventBridge has."""
ENDING_STATES = ["stopping", "stopped", "shutting-down", "terminated"]
EVERY_JOB = f"{keys.JOBS}*"


class WorkflowStack(cdk.Stack):
    """Starts and ends every instance of the deployment."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        env: cdk.Environment,
        foundation: FoundationExports,
        rights: Rights,
        images: dict[str, str],
        data_buckets: tuple[str, ...],
        limits: Limits,
        timing: Timing,
        log_retention_days: int,
    ) -> None:
        deployment = rights.deployment
        super().__init__(
            scope, name, env=env, description=f"Trainyard {deployment}: the Train machine and its functions"
        )
        self._foundation, self._rights, self._timing = foundation, rights, timing
        self._layer, self._log_retention_days = Layer(self, "Libraries"), log_retention_days

        attendant = self._attendant()
        train = TrainMachine(
            self,
            "Train",
            physical_name=names.machine(deployment),
            steps=Steps(
                admission=self._admission(images, data_buckets, limits),
                launcher=self._launcher(),
                attendant=attendant,
                artifact_check=self._artifact_check(),
                terminator=self._terminator(),
            ),
            max_hours=limits.max_hours,
            timing=timing,
        )
        self._wake(attendant)

        arn = train.machine.state_machine_arn
        cdk.CfnOutput(self, "TrainMachine", value=arn, description="The state machine that trains a job")
        cdk.CfnOutput(
            self,
            "Console",
            value=f"https://{self.region}.console.aws.amazon.com/states/home?region={self.region}#/statemachines/view/{arn}",
            description="Open this, press Start execution, name it like the job, paste the job's JSON",
        )

    def _admission(self, images: dict[str, str], data_buckets: tuple[str, ...], limits: Limits) -> Function:
        rights, foundation = self._rights, self._foundation
        function = self._function(
            "Admission",
            "admission",
            "Checks a request and writes job.json",
            AdmissionEnvironment(
                deployment=rights.deployment,
                bucket=foundation.home.bucket_name,
                log_group=names.log_group(rights.deployment),
                home_region=rights.home_region,
                regions=rights.regions,
                images=images,
                data_buckets=data_buckets,
                instance_profile=foundation.instance_profile.instance_profile_arn,
                limits=limits,
                timing=self._timing,
            ),
            timeout=cdk.Duration.minutes(1),
        )
        function.may(
            rights.home("DescribeJobs", ["s3:GetObject", "s3:PutObject"], keys.ANY_DESCRIPTION),
            # The tagging actions are part of copying an object that somebody has tagged.
            rights.home("KeepCode", ["s3:GetObject", "s3:PutObject", "s3:PutObjectTagging"], keys.ANY_CODE),
            rights.home("ReadUploads", [*READ, "s3:GetObjectTagging"], f"{keys.UPLOADS}*"),
            rights.list_home(),
            *rights.data(data_buckets),
            rights.look_at(
                "LookAtTypesAndImages",
                "ec2:DescribeInstanceTypes",
                "ec2:DescribeInstanceTypeOfferings",
                "ec2:DescribeImages",
            ),
            rights.parameters(sorted(images.values())),
            rights.secrets("secretsmanager:DescribeSecret"),
        )
        return function

    def _launcher(self) -> Function:
        rights, foundation = self._rights, self._foundation
        function = self._function(
            "Launcher",
            "launcher",
            "Starts the nodes of an attempt",
            LauncherEnvironment(
                deployment=rights.deployment,
                bucket=foundation.home.bucket_name,
                home_region=rights.home_region,
                instance_profile=foundation.instance_profile.instance_profile_arn,
                agent=foundation.agent,
                timing=self._timing,
            ),
            timeout=cdk.Duration.minutes(5),
            files={"launcher/user_data.sh": NODE / "user_data.sh"},
        )
        function.may(
            *self._jobs("NoteEveryWalk", keys.ANY_INTENT),
            rights.list_home(),
            rights.look_at("LookAtInstances", "ec2:DescribeInstances"),
            *rights.launch(),
            *rights.launch_spot(),
            rights.pass_to_ec2(foundation.node_role.role_arn),
        )
        return function

    def _attendant(self) -> Function:
        rights = self._rights
        function = self._function(
            "Attendant",
            "attendant",
            "Looks at the nodes of every running job and answers Train",
            AttendantEnvironment(
                deployment=rights.deployment, bucket=self._foundation.home.bucket_name, timing=self._timing
            ),
            timeout=cdk.Duration.minutes(1),
        )
        function.may(
            *self._jobs("GiveOrders", keys.ANY_ORDER),
            rights.home("KeepTokens", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], f"{keys.CONTROL}*"),
            rights.list_home(),
            rights.look_at("LookAtInstances", "ec2:DescribeInstances"),
            rights.answer_train(),
        )
        return function

    def _artifact_check(self) -> Function:
        rights = self._rights
        function = self._function(
            "ArtifactCheck",
            "artifact_check",
            "Checks that what nodes committed is in S3",
            ArtifactCheckEnvironment(deployment=rights.deployment, bucket=self._foundation.home.bucket_name),
            timeout=cdk.Duration.minutes(5),
        )
        function.may(
            *self._jobs("ListArtifacts", keys.ANY_LIST),
            rights.list_home(),
            rights.bytes("ReadBytes", ["s3:GetObject"], EVERY_JOB),
            rights.list_bytes(),
        )
        return function

    def _terminator(self) -> Function:
        rights = self._rights
        function = self._function(
            "Terminator",
            "terminator",
            "Ends the instances of a job",
            TerminatorEnvironment(
                deployment=rights.deployment,
                bucket=self._foundation.home.bucket_name,
                regions=rights.regions,
                timing=self._timing,
            ),
            timeout=cdk.Duration.minutes(2),
        )
        function.may(
            *self._jobs("CloseAndReport", keys.ANY_CLOSED, keys.ANY_RESULT),
            rights.list_home(),
            rights.look_at("LookAtInstances", "ec2:DescribeInstances"),
            rights.terminate(),
        )
        return function

    def _jobs(self, name: str, *written: str) -> list[Right]:
        """All of a job's documents to read, and few kinds of them to write."""
        return [
            self._rights.home("ReadJobs", ["s3:GetObject"], EVERY_JOB),
            self._rights.home(name, ["s3:PutObject"], *written),
        ]

    def _function(
        self,
        name: str,
        package: str,
        description: str,
        environment: Environment,
        *,
        timeout: cdk.Duration,
        files: dict[str, Path] | None = None,
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
            files=files,
        )

    def _wake(self, attendant: lambda_.IFunction) -> None:
        """The clock makes the attendant look; the other two make it look sooner, and may be lost."""
        # A minute that was missed is made good by the next: no tick is worth repeating.
        clock = targets.LambdaFunction(attendant, retry_attempts=0, max_event_age=CLOCK)
        events.Rule(
            self,
            "Clock",
            description="The attendant looks at every running job",
            schedule=events.Schedule.rate(CLOCK),
            targets=[clock],
        )
        events.Rule(
            self,
            "UrgentReport",
            description="A node has something to say that cannot wait",
            event_pattern=events.EventPattern(
                source=["aws.s3"],
                detail_type=["Object Created"],
                detail={
                    "bucket": {"name": [self._foundation.home.bucket_name]},
                    "object": {"key": [{"wildcard": keys.ANY_URGENT}]},
                },
            ),
            targets=[targets.LambdaFunction(attendant)],
        )
        events.Rule(
            self,
            "InstanceEnding",
            description="An instance of the account ends, perhaps one of ours",
            event_pattern=events.EventPattern(
                source=["aws.ec2"],
                detail_type=["EC2 Instance State-change Notification"],
                detail={"state": ENDING_STATES},
            ),
            targets=[targets.LambdaFunction(attendant)],
        )
