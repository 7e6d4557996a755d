"""What makes a destroy drain: a resource of a stack that CloudFormation asks to be deleted before anything else of the stack."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_

from stacks.parts.acknowledged import acknowledge

CLOUDFORMATION_WAITS = cdk.Duration.hours(1)
"""The longest that CloudFormation waits for a custom resource."""


def drain_first(stack: cdk.Stack, drain: lambda_.IFunction) -> None:
    """Everything that the stack has by now outlives a drain of the whole deployment; to be called when all else is in place.

    Every stack that starts something calls this: whichever a destroy begins with, and whatever a deploy that failed left out,
    nothing is taken away while anything runs. A drain that finds nothing takes about a minute.
    """
    others = stack.node.children
    resource = cdk.CustomResource(
        stack,
        "DrainOnDelete",
        resource_type="Custom::Drain",
        service_token=drain.function_arn,
        service_timeout=CLOUDFORMATION_WAITS,
    )
    resource.node.add_dependency(*others)
    acknowledge(resource, "Everything of the stack has to outlive the drain, also what nothing refers to.", "W3005")
