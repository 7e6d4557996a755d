"""A right: one named statement of a policy, and the reason for its wildcard if it has one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

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
    apart: str = ""
    """Name of a further policy of the role in which it stands (`grant_apart`); empty for the role's first policy."""
    managed: bool = False
    """Whether that further policy is a managed one: these do not count among the characters that IAM takes of all others of a role."""


def role(scope: Construct, name: str, service: str, description: str, *rights: Right, **options: Any) -> iam.Role:
    """Returns a role with these rights that a service can assume for this account only; `options` are further ones of CDK's role."""
    trusted = iam.ServicePrincipal(service, conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}})
    made = iam.Role(scope, name, assumed_by=interfaces.principal(trusted), description=description, **options)
    grant(made, *rights)
    return made


def grant(role: iam.Role, *rights: Right) -> None:
    """Adds the rights to the role's policy, or to the further ones that they name, and acknowledges each wildcard with the reason of its
    right."""
    for right in rights:
        if not right.apart:
            role.add_to_policy(_statement(right))
            _explain(role, right)
    for name in dict.fromkeys(right.apart for right in rights if right.apart):
        grant_apart(role, name, *(right for right in rights if right.apart == name))


def offer(scope: Construct, name: str, description: str, *rights: Right, **options: Any) -> iam.ManagedPolicy:
    """Returns a managed policy with these rights, which takes effect once an administrator attaches it."""
    made = iam.ManagedPolicy(
        scope, name, description=description, statements=[_statement(right) for right in rights], **options
    )
    for right in rights:
        _explain(made, right)
    return made


def grant_apart(role: iam.Role, name: str, *rights: Right) -> None:
    """Adds the rights in a further policy of the role. The CDK estimates the size of a role's first policy generously, and turns what
    it thinks too much into a managed policy. One that is to be managed belongs to this role alone, as the others do."""
    statements = [_statement(right) for right in rights]
    kind = iam.ManagedPolicy if any(right.managed for right in rights) else iam.Policy
    policy = kind(role, name, statements=statements, roles=[interfaces.role(role)])
    for right in rights:
        _explain(policy, right)


def add_to(policy: iam.ManagedPolicy, *rights: Right) -> None:
    """Adds the rights to a policy that people attach to whom they like."""
    policy.add_statements(*(_statement(right) for right in rights))
    for right in rights:
        _explain(policy, right)


def _statement(right: Right) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid=right.name,
        actions=list(right.actions),
        resources=list(right.resources),
        conditions=dict(right.conditions) or None,
    )


def _explain(owner: IConstruct, right: Right) -> None:
    """Acknowledges each wildcard of a right with its reason."""
    for resource in right.resources:
        if "*" in resource:
            assert right.wildcards, f"{right.name} has a wildcard without a reason: {resource}"
            acknowledge(owner, right.wildcards, f"AwsSolutions-IAM5[Resource::{_readable(resource)}]")


def _readable(resource: str) -> str:
    """Returns the resource as cdk-nag writes it."""
    resource = resource.replace(cdk.Aws.PARTITION, "<AWS::Partition>").replace(cdk.Aws.ACCOUNT_ID, "<AWS::AccountId>")
    return re.sub(r"\$\{(aws:[^}]+)\}", r"<\1>", resource)
