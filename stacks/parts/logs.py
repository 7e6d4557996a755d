"""A log group that deletes its events after a number of days."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.parts.acknowledged import acknowledge


def log_group(scope: Construct, name: str, *, days: int, physical_name: str | None = None) -> logs.LogGroup:
    """`days` is one of CloudWatch's retentions. The group is deleted with its stack: a log that expires anyway is not a record."""
    group = logs.LogGroup(scope, name, log_group_name=physical_name, removal_policy=cdk.RemovalPolicy.DESTROY)
    plain = group.node.default_child
    assert isinstance(plain, logs.CfnLogGroup)
    # The construct's enumeration has names for the allowed numbers, the settings have the numbers.
    plain.retention_in_days = days
    acknowledge(
        group,
        "CloudWatch encrypts with a key of its own; a customer's key costs, and hides nothing from who may read the log.",
        "CKV_AWS_158",
    )
    return group
