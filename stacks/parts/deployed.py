"""Finds what the stacks of an app have by walking over its constructs: a list of it would miss what is added later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from constructs import IConstruct

from stacks.parts.function import Function
from stacks.parts.rights import arn_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedThings:
    """Everything that a dashboard looks at. Nothing here refers to another stack: what is shown must never keep a stack from changing."""

    alarms: tuple[str, ...]
    """ARNs, of every region."""
    functions: tuple[str, ...]
    """Names of stacks that have functions, in the dashboard's region."""
    queues: tuple[str, ...]
    """The same of queues."""


def find_deployed(scope: IConstruct, region: str) -> DeployedThings:
    """Returns what the stacks of `scope` have, in the order of the stacks. Names of alarms are physical, so their ARNs are known."""
    every = scope.node.find_all()
    alarms = [one for one in every if isinstance(one, cloudwatch.CfnAlarm)]
    return DeployedThings(
        alarms=tuple(
            arn_of("cloudwatch", cdk.Stack.of(one).region, cdk.Aws.ACCOUNT_ID, f"alarm:{one.alarm_name}")
            for one in alarms
        ),
        functions=_list_stacks([one for one in every if isinstance(one, Function)], region),
        queues=_list_stacks([one for one in every if isinstance(one, sqs.Queue)], region),
    )


def find_functions(stack: cdk.Stack) -> list[Function]:
    """Returns the functions of a stack."""
    return [one for one in stack.node.find_all() if isinstance(one, Function)]


def has_queues(stack: cdk.Stack) -> bool:
    """Whether functions of the stack work by themselves, as those do that may leave letters."""
    return any(isinstance(one, sqs.Queue) for one in stack.node.find_all())


def _list_stacks(constructs: Sequence[IConstruct], region: str) -> tuple[str, ...]:
    stacks = [cdk.Stack.of(one) for one in constructs]
    return tuple(dict.fromkeys(one.stack_name for one in stacks if one.region == region))
