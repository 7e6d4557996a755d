"""What cdk-nag's packs for HIPAA Security and NIST 800-53 (revision 5) find in a deployment with `compliance`, and why it stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_rds as rds
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import IConstruct

from stacks.parts.access_logs import AccessLogs
from stacks.parts.acknowledged import acknowledge
from stacks.parts.catalogue_database import ROTATION
from stacks.parts.function import ACKNOWLEDGED as OF_FUNCTIONS

HIPAA, NIST = "HIPAA.Security", "NIST.800.53.R5"
BOTH = (HIPAA, NIST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A rule, the resources at which it finds something, and the reason why that stays, in a sentence."""

    rule: str
    on: str
    """The resources in words."""
    is_on: Callable[[IConstruct], bool]
    reason: str
    packs: tuple[str, ...] = BOTH


FINDINGS = (
    Finding(
        rule="CodeBuildProjectSourceRepoUrl",
        on="the project of image builds",
        is_on=lambda one: isinstance(one, codebuild.CfnProject),
        reason="The rule wants OAuth for repositories; this project's source is an object of S3, which its role reads.",
        packs=(HIPAA,),
    ),
    Finding(
        rule="DynamoDBInBackupPlan",
        on="the table of state",
        is_on=lambda one: isinstance(one, dynamodb.CfnTable),
        reason="Point-in-time recovery restores the table to any second of the last 35 days; what it holds is worth nothing after that.",
    ),
    Finding(
        rule="EC2RestrictedCommonPorts",
        on="rules of security groups that let a group's own members in",
        is_on=lambda one: isinstance(one, ec2.CfnSecurityGroupIngress) and one.source_security_group_id is not None,
        reason="Nodes of a job reach each other on every port, as EFA requires it; the source is the group itself, and no address.",
    ),
    Finding(
        rule="IAMNoInlinePolicy",
        on="every role's policy",
        is_on=lambda one: isinstance(one, iam.CfnPolicy),
        reason="A role's policies are its own, written for it alone, and go with it; and none can be attached to another role.",
    ),
    Finding(
        rule="LambdaConcurrency",
        on="every function",
        is_on=lambda one: isinstance(one, lambda_.CfnFunction),
        reason=OF_FUNCTIONS["CKV_AWS_115"],
    ),
    Finding(
        rule="LambdaDLQ",
        on="every function",
        is_on=lambda one: isinstance(one, lambda_.CfnFunction),
        reason=OF_FUNCTIONS["CKV_AWS_116"],
    ),
    Finding(
        rule="LambdaInsideVPC",
        on="every function",
        is_on=lambda one: isinstance(one, lambda_.CfnFunction),
        reason=OF_FUNCTIONS["CKV_AWS_117"],
    ),
    Finding(
        rule="RDSEnhancedMonitoringEnabled",
        on="the catalogue's database",
        is_on=lambda one: isinstance(one, rds.CfnDBInstance),
        reason="It would send figures of a machine that sleeps most of the time; RDS's own metrics show its load.",
    ),
    Finding(
        rule="RDSInBackupPlan",
        on="the catalogue's database",
        is_on=lambda one: isinstance(one, rds.CfnDBInstance),
        reason="Aurora restores the cluster to any second of the last seven days, and AWS Backup would keep no more of it.",
    ),
    Finding(
        rule="RDSInstanceDeletionProtectionEnabled",
        on="the catalogue's database, where no data is kept",
        is_on=lambda one: isinstance(one, rds.CfnDBCluster) and not one.deletion_protection,
        reason="The settings say that no data is kept: a destroy deletes it.",
    ),
    Finding(
        rule="SecretsManagerRotationEnabled",
        on="the secrets of the catalogue's roles",
        is_on=lambda one: isinstance(one, secretsmanager.CfnSecret),
        reason=ROTATION,
    ),
    Finding(
        rule="S3BucketReplicationEnabled",
        on="every bucket",
        is_on=lambda one: isinstance(one, s3.CfnBucket),
        reason="S3 stores each object in three zones, and overwritten ones for days; a copy elsewhere would double what checkpoints cost.",
    ),
    Finding(
        rule="S3DefaultEncryptionKMS",
        on="buckets of access logs",
        is_on=lambda one: isinstance(one, s3.CfnBucket) and isinstance(one.node.scope, AccessLogs),
        reason="S3 writes access logs into no bucket whose default is a key of KMS; S3's own keys encrypt them.",
    ),
    Finding(
        rule="VPCDefaultSecurityGroupClosed",
        on="every network",
        is_on=lambda one: isinstance(one, ec2.CfnVPC),
        reason="A function of ours takes every rule out of the group at deploy; the rule knows the CDK's own function alone.",
    ),
    Finding(
        rule="VPCNoUnrestrictedRouteToIGW",
        on="the routes of the public subnets",
        is_on=lambda one: isinstance(one, ec2.CfnRoute) and one.gateway_id is not None,
        reason="A public subnet holds a NAT gateway and nothing else; nodes are in private subnets, which have no such route.",
    ),
)


def acknowledge_findings(app: IConstruct) -> None:
    """Acknowledges each finding at each of its resources, and nowhere else."""
    for one in app.node.find_all():
        for finding in FINDINGS:
            if finding.is_on(one):
                acknowledge(one, finding.reason, *(f"{pack}-{finding.rule}" for pack in finding.packs))
