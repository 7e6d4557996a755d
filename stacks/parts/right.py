"""A right: one named statement of a policy, and the reason for its wildcard if it has one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.parts import interfaces
from stacks.parts.acknowledged import acknowledge


@dataclass(frozen=True, slots=True)
class Right:
    """An Allow statement whose name a person reads in the console."""

    name: str
    actions: Sequence[str]
    resources: Sequence[str]
    wildcards: str = ""
    """Why resources contain a `*`, in a sentence; required where they do."""
    conditions: Mapping[str, object] = field(default_factory=dict)
    """Conditions by operator: `{"StringEquals": {...}}`."""


def role(scope: Construct, name: str, service: str, description: str, *rights: Right, **options: Any) -> iam.Role:
    """Returns a role with these rights that a service can assume for this account only; `options` are further ones of CDK's role."""
    trusted = iam.ServicePrincipal(service, conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}})
    made = iam.Role(scope, name, assumed_by=interfaces.principal(trusted), description=description, **options)
    grant(made, *rights)
    return made


def grant(role: iam.Role, *rights: Right) -> None:
    """Adds the rights to the role's policy, and acknowledges each wildcard with the reason of its right."""
    for right in rights:
        role.add_to_policy(
            iam.PolicyStatement(
                sid=right.name,
                actions=list(right.actions),
                resources=list(right.resources),
                conditions=dict(right.conditions) or None,
            )
        )
        for resource in right.resources:
            if "*" in resource:
                assert right.wildcards, f"{right.name} has a wildcard without a reason: {resource}"
                acknowledge(role, right.wildcards, f"AwsSolutions-IAM5[Resource::{_readable(resource)}]")


def _readable(resource: str) -> str:
    """Returns the resource as cdk-nag writes it."""
    resource = resource.replace(cdk.Aws.PARTITION, "<AWS::Partition>").replace(cdk.Aws.ACCOUNT_ID, "<AWS::AccountId>")
    return re.sub(r"\$\{(aws:[^}]+)\}", r"<\1>", resource)
