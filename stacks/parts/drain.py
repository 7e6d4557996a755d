"""The custom resource that makes a destroy drain: CloudFormation deletes it before everything else in its stack."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_

from stacks.parts.custom_resource import add_custom_resource

CLOUDFORMATION_WAITS = cdk.Duration.hours(1)
"""The longest wait of CloudFormation for a custom resource."""


def drain_first(stack: cdk.Stack, drain: lambda_.IFunction) -> None:
    """Makes a destroy drain the whole deployment before it deletes anything that is in the stack so far; call this last.

    Every stack that starts something and that every deployment has calls this, so that nothing is deleted while anything runs, whichever
    stack a destroy deletes first and whichever stack a failed deploy did not make. A drain that finds nothing takes about a minute.
    """
    add_custom_resource(
        stack,
        "DrainOnDelete",
        kind="Drain",
        function_arn=drain.function_arn,
        wait=CLOUDFORMATION_WAITS,
        after=tuple(stack.node.children),
        why="Everything of the stack has to outlive the drain, also what nothing refers to.",
    )
