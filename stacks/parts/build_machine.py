"""The Build machine: Check, Build, Collect. It creates nothing before Check has accepted the request."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from contract.errors import HostAway
from contract.images import ARM64, ORDER
from stacks.parts import jsonata
from stacks.parts.build_project import ARM_IMAGE, IMAGE
from stacks.parts.machine import SERVICE_ERRORS, failed, invocation, machine_role, retry_for_minutes, standard_machine
from stacks.parts.right import Right

FOLLOWING = "StepFunctionsGetEventForCodeBuildStartBuildRule"
"""Name of the rule by which Step Functions learns that a build has ended; Step Functions creates it once per account and region."""
BUSY = [
    "CodeBuild.AccountLimitExceededException",
    "CodeBuild.ThrottlingException",
    "CodeBuild.SdkClientException",
    "CodeBuild.CodeBuildException",
]
"""Errors of a busy account: a new account may run one build at a time, and queue few."""
NOTHING_TO_DO = "{% $plan.order = '' %}"
ON_ARM = f"$plan.platform = '{ARM64}'"
"""A plan without a platform is for the usual one."""
BUILD_MARGIN = cdk.Duration.minutes(10)
HOST_PAUSE = cdk.Duration.minutes(10)
"""The longest pause between two questions to a git host that does not answer."""


class BuildMachine(Construct):
    """`machine` brings an image into every region, or says why it cannot; `function` answers `check` with an order, and `collect`."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        physical_name: str,
        comment: str,
        function: lambda_.Function,
        project_name: str,
        longest_build: cdk.Duration,
        hosts_patience: cdk.Duration | None = None,
    ) -> None:
        """`hosts_patience` is how long Check waits for a git host that does not answer; None where contexts are never fetched from one."""
        super().__init__(scope, name)
        longest = longest_build.plus(BUILD_MARGIN)
        check, build, collect = self._check(function), self._build(project_name, longest), self._collect(function)
        end = failed(self, "What was wrong with the request, or how the build ended.")

        if hosts_patience:
            _wait_for_hosts(check, hosts_patience)
        check.add_catch(end, errors=["States.ALL"], assign={"problem": jsonata.REFUSED})
        build.add_catch(collect, errors=["States.ALL"], assign={"problem": "{% $states.errorOutput %}"})
        collect.add_catch(end, errors=["States.ALL"], assign={"problem": jsonata.REFUSED})

        needed = sfn.Choice.jsonata(self, "Needed", comment="An image that every region has is not built again.")
        needed.when(sfn.Condition.jsonata(NOTHING_TO_DO), collect, comment="The image stands in every region")
        needed.otherwise(build)
        check.next(needed)
        build.next(collect)
        collect.next(self._done())

        self.machine = standard_machine(
            self,
            physical_name=physical_name,
            begins_with=check,
            comment=comment,
            timeout=longest.plus(cdk.Duration.hours(1)).plus(hosts_patience or cdk.Duration.seconds(0)),
            runs_as=self._role(function, project_name),
        )

    def _role(self, function: lambda_.Function, project_name: str) -> iam.Role:
        here = f"{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}"
        rule = f"arn:{cdk.Aws.PARTITION}:events:{here}:rule/{FOLLOWING}"
        return machine_role(
            self,
            "The Build machine: invokes its function, runs its builds",
            Right("InvokeStepFunctions", ["lambda:InvokeFunction"], [function.function_arn]),
            Right(
                "RunBuilds",
                ["codebuild:StartBuild", "codebuild:StopBuild", "codebuild:BatchGetBuilds"],
                [project_arn(project_name)],
            ),
            Right("ManageTheSyncRule", ["events:PutTargets", "events:PutRule", "events:DescribeRule"], [rule]),
        )

    def _check(self, function: lambda_.Function) -> tasks.LambdaInvoke:
        return self._invoke(
            "Check",
            function,
            "Reads the request, its context and the image under the tag in every region. Nothing is made or changed.",
            payload={"action": "check", "request": "{% $states.input %}"},
            assign={"plan": "{% $states.result.Payload %}", "build": "{% null %}", "problem": "{% null %}"},
        )

    def _build(self, project_name: str, longest: cdk.Duration) -> sfn.CustomState:
        """Starts the build with an idempotency token, which CDK's own task lacks: a repeated request starts no second build."""
        build = sfn.CustomState(
            self,
            "Build",
            state_json={
                "Type": "Task",
                "Comment": "Builds the image, or finds the one to copy, and pushes it to each region that lacks it.",
                "Resource": f"arn:{cdk.Aws.PARTITION}:states:::codebuild:startBuild.sync",
                "Arguments": {
                    "ProjectName": project_name,
                    "IdempotencyToken": "{% $states.context.Execution.Name & '-' & $states.context.State.EnteredTime %}",
                    "EnvironmentTypeOverride": f"{{% {ON_ARM} ? 'ARM_CONTAINER' : 'LINUX_CONTAINER' %}}",
                    "ImageOverride": f"{{% {ON_ARM} ? '{ARM_IMAGE.image_id}' : '{IMAGE.image_id}' %}}",
                    "EnvironmentVariablesOverride": [
                        {"Name": ORDER, "Type": "PLAINTEXT", "Value": "{% $plan.order %}"}
                    ],
                },
                "Assign": {"build": "{% $states.result.Build.Id %}"},
                "TimeoutSeconds": longest.to_seconds(),
            },
        )
        build.add_retry(
            errors=BUSY,
            interval=cdk.Duration.seconds(30),
            max_attempts=20,
            backoff_rate=1.5,
            max_delay=cdk.Duration.minutes(5),
        )
        return build

    def _collect(self, function: lambda_.Function) -> tasks.LambdaInvoke:
        return self._invoke(
            "Collect",
            function,
            "Asks every region which image has the tag now; after a failed build, reads the end of its log.",
            payload={
                "action": "collect",
                "plan": "{% $plan %}",
                "build": "{% $build %}",
                "problem": "{% $problem %}",
            },
            outputs="{% $states.result.Payload %}",
        )

    def _done(self) -> sfn.Succeed:
        return sfn.Succeed.jsonata(
            self, "Done", comment="One image under the tag in every region; the output has its addresses."
        )

    def _invoke(
        self, name: str, function: lambda_.Function, comment: str, *, payload: Mapping[str, Any], **options: Any
    ) -> tasks.LambdaInvoke:
        step = invocation(self, name, function, comment, payload=payload, **options)
        retry_for_minutes(step, SERVICE_ERRORS)
        return step


def _wait_for_hosts(check: tasks.LambdaInvoke, patience: cdk.Duration) -> None:
    """Checks again while a git host does not answer: what a push started is not lost while its host is away."""
    check.add_retry(
        errors=[HostAway.__name__],
        interval=cdk.Duration.seconds(30),
        max_attempts=math.ceil(patience.to_seconds() / HOST_PAUSE.to_seconds()),
        backoff_rate=2,
        max_delay=HOST_PAUSE,
    )


def project_arn(name: str) -> str:
    """Returns the ARN of a CodeBuild project in the stack's own account and region."""
    return f"arn:{cdk.Aws.PARTITION}:codebuild:{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}:project/{name}"
