"""Schedules of EventBridge Scheduler that invoke one function, with a role of their own and a queue for undelivered invocations."""

from __future__ import annotations

import json
from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.parts import interfaces
from stacks.parts.acknowledged import acknowledge
from stacks.parts.right import Right, grant

SHORTEST_AGE_S = 60
"""Scheduler's minimum age of an event; without retries an invocation is never older."""


class Schedules(Construct):
    """Schedules without retries: the next invocation is the second chance."""

    def __init__(
        self, scope: Construct, name: str, *, function: lambda_.Function, letters: sqs.IQueue, description: str
    ) -> None:
        super().__init__(scope, name)
        self._function, self._letters = function, letters
        self._role = iam.Role(
            self,
            "Role",
            assumed_by=interfaces.principal(
                iam.ServicePrincipal(
                    "scheduler.amazonaws.com",
                    conditions={
                        "StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID, "aws:SourceArn": _group(self)}
                    },
                )
            ),
            description=description,
        )
        grant(
            self._role,
            Right("InvokeTheFunction", ["lambda:InvokeFunction"], [function.function_arn]),
            Right("SendToTheDeadLetterQueue", ["sqs:SendMessage"], [letters.queue_arn]),
        )

    def add(self, name: str, expression: str, *, description: str, given: Mapping[str, object]) -> None:
        """Invokes the function with `given` at the times of `expression`, in UTC."""
        schedule = scheduler.CfnSchedule(
            self,
            name,
            description=description,
            schedule_expression=expression,
            schedule_expression_timezone="UTC",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=self._function.function_arn,
                role_arn=self._role.role_arn,
                input=json.dumps(given),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_retry_attempts=0, maximum_event_age_in_seconds=SHORTEST_AGE_S
                ),
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(arn=self._letters.queue_arn),
            ),
        )
        schedule.node.add_dependency(self._role)
        acknowledge(
            schedule,
            "The input says which action to take and no more; Scheduler encrypts with its own key.",
            "CKV_AWS_297",
        )
        acknowledge(schedule, "CDK writes a dependency that a reference makes already.", "W3005")


def _group(scope: Construct) -> str:
    """ARN of the schedules' group, which Scheduler names as the source when it assumes a role."""
    return cdk.Stack.of(scope).format_arn(service="scheduler", resource="schedule-group", resource_name="default")
