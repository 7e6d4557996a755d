"""Outputs that a stack shows after a deploy."""

from __future__ import annotations

import aws_cdk as cdk

from contract.links import Console
from stacks.forms import partition


def shown(stack: cdk.Stack, output: str, value: str, what: str) -> None:
    """Adds an output; `what` says what the value is."""
    cdk.CfnOutput(stack, output, value=value, description=what)


def started_here(stack: cdk.Stack, output: str, machine_arn: str, how: str) -> None:
    """Adds an output with the console page from which executions of the machine are started; `how` says what to do there."""
    page = Console(partition(stack.region), stack.region).machine(machine_arn)
    shown(stack, output, page, how)
