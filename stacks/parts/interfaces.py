"""Passes CDK's classes as the interfaces that they implement.

Some classes name a parameter differently from their interface (Role.grant_assume_role takes an `identity`, IRole's a
`grantee`). Type checkers rightly refuse such a class for keyword arguments; nothing here calls these methods by name.
"""

from __future__ import annotations

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns


def principal(one: iam.PrincipalBase) -> iam.IPrincipal:
    return one  # pyrefly: ignore[bad-return]


def role(one: iam.Role) -> iam.IRole:
    return one  # pyrefly: ignore[bad-return]


def function(one: lambda_.Function | lambda_.Alias) -> lambda_.IFunction:
    return one  # pyrefly: ignore[bad-return]


def target(one: targets.LambdaFunction | targets.SqsQueue) -> events.IRuleTarget:
    return one  # pyrefly: ignore[bad-return]


def action(one: actions.SnsAction) -> cloudwatch.IAlarmAction:
    return one  # pyrefly: ignore[bad-return]


def key(one: kms.Key) -> kms.IKey:
    return one  # pyrefly: ignore[bad-return]


def subnet(one: ec2.Subnet) -> ec2.ISubnet:
    return one  # pyrefly: ignore[bad-return]


def security_group(one: ec2.SecurityGroup) -> ec2.ISecurityGroup:
    return one


def cluster(one: eks.Cluster) -> eks.ICluster:
    return one  # pyrefly: ignore[bad-return]


def topic(one: sns.Topic) -> sns.ITopic:
    return one  # pyrefly: ignore[bad-return]
