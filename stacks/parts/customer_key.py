"""A customer key, and what in a stack is encrypted with it: buckets, log groups, queues, tables, databases and their secrets."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_rds as rds
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from contract import names
from stacks.parts import interfaces
from stacks.parts.access_logs import AccessLogs
from stacks.parts.acknowledged import acknowledge
from stacks.parts.rights import arn_of

WAIT_BEFORE_DELETION = cdk.Duration.days(30)
"""KMS's maximum: until then a person who needs what the key encrypted can cancel the deletion."""


SPOT_USES = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)
"""What AWS's pages grant to its role for spot."""


class CustomerKey(kms.Key):
    """Rotated every year. It is kept as long as what it encrypts: with `keep` it outlives its stack.

    Roles of the account use it with their own policies (stacks.parts.key_rights); a service that writes without a role needs the key's.
    """

    def __init__(self, scope: Construct, name: str, *, alias: str, deployment: str, region: str, keep: bool) -> None:
        super().__init__(
            scope,
            name,
            alias=alias,
            description=f"Trainyard {deployment}: what its stacks store in {region}",
            enable_key_rotation=True,
            removal_policy=cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if keep else cdk.RemovalPolicy.DESTROY,
            pending_window=WAIT_BEFORE_DELETION,
        )
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html
        self._let(
            "LogsEncrypt",
            f"logs.{region}.amazonaws.com",
            ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*"],
            {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": _log_groups(deployment, region)}},
        )
        self._let("LogsDescribe", f"logs.{region}.amazonaws.com", ["kms:DescribeKey"], None)

    def let_rds_log(self, deployment: str, region: str) -> None:
        """Lets CloudWatch encrypt what the catalogue's database logs, in the group that RDS names."""
        group = arn_of("logs", region, cdk.Aws.ACCOUNT_ID, f"log-group:{names.catalogue_log_group(deployment)}")
        self._let(
            "DatabaseLogsEncrypt",
            f"logs.{region}.amazonaws.com",
            ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*"],
            {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": group}},
        )

    def let_rules_send(self) -> None:
        """Lets EventBridge's rules put messages into queues that the key encrypts.

        Rules of this account alone; which rule may send, each queue's own policy says by the rule's ARN. The condition is that of
        EventBridge's own page on confused deputies (https://docs.aws.amazon.com/eventbridge/latest/userguide/cross-service-confused-deputy-prevention.html).
        """
        ours: dict[str, object] = {"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}}
        self._let("RulesEncrypt", "events.amazonaws.com", ["kms:Decrypt", "kms:GenerateDataKey"], ours)

    def let_spot_launch(self) -> None:
        """Lets AWS's role for spot put disks under the key: it launches spot nodes itself, and has no policy for keys of its own.

        Named by a condition and not as the principal, because KMS refuses a policy that names a role which does not exist yet; an
        account's first spot launch makes it (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/service-linked-roles-spot-instance-requests.html).
        """
        role = f"arn:{cdk.Aws.PARTITION}:iam::{cdk.Aws.ACCOUNT_ID}:role/{names.SPOT_ROLE}"
        alone = {
            "StringEquals": {"kms:CallerAccount": cdk.Aws.ACCOUNT_ID},
            "ArnEquals": {"aws:PrincipalArn": role},
        }
        for sid, actions, further in (
            ("SpotEncrypts", SPOT_USES, {}),
            ("SpotAttaches", ("kms:CreateGrant",), {"Bool": {"kms:GrantIsForAWSResource": "true"}}),
        ):
            self.add_to_resource_policy(
                iam.PolicyStatement(
                    sid=sid,
                    principals=[interfaces.principal(iam.AnyPrincipal())],
                    actions=list(actions),
                    resources=["*"],
                    conditions={**alone, **further},
                )
            )
        acknowledge(
            self,
            "Two conditions keep the statements to one role of the account, that of AWS's spot service.",
            "CKV_AWS_33",
        )

    def _let(self, sid: str, service: str, actions: list[str], conditions: dict[str, object] | None) -> None:
        self.add_to_resource_policy(
            iam.PolicyStatement(
                sid=sid,
                principals=[interfaces.principal(iam.ServicePrincipal(service))],
                actions=actions,
                resources=["*"],
                conditions=conditions,
            )
        )


def _log_groups(deployment: str, region: str) -> list[str]:
    """Those that we name, and those that CloudFormation names after their stack."""
    ours = (names.log_group, names.build_log_group, names.platform_log_group, names.child_log_group)
    groups = (f"{deployment}-*", *(one(deployment) for one in ours))
    return [arn_of("logs", region, cdk.Aws.ACCOUNT_ID, f"log-group:{group}") for group in groups]


def encrypt(stack: cdk.Stack, key: kms.IKey) -> None:
    """Encrypts with the key everything in the stack that takes one, whoever made it: what is added later is not forgotten."""
    for one in stack.node.find_all():
        if isinstance(one, logs.CfnLogGroup):
            one.kms_key_id = key.key_arn
        elif isinstance(one, sqs.CfnQueue):
            one.kms_master_key_id, one.sqs_managed_sse_enabled = key.key_arn, None
        elif isinstance(one, dynamodb.CfnTable):
            one.sse_specification = dynamodb.CfnTable.SSESpecificationProperty(
                sse_enabled=True, sse_type="KMS", kms_master_key_id=key.key_arn
            )
        elif isinstance(one, secretsmanager.CfnSecret | rds.CfnDBCluster):
            one.kms_key_id = key.key_arn
        elif isinstance(one, s3.CfnBucket) and not isinstance(one.node.scope, AccessLogs):
            one.bucket_encryption = _under(key)


def _under(key: kms.IKey) -> s3.CfnBucket.BucketEncryptionProperty:
    """With a Bucket Key, S3 asks KMS for a bucket's key from time to time, and not for each object."""
    rule = s3.CfnBucket.ServerSideEncryptionRuleProperty(
        bucket_key_enabled=True,
        server_side_encryption_by_default=s3.CfnBucket.ServerSideEncryptionByDefaultProperty(
            sse_algorithm="aws:kms", kms_master_key_id=key.key_arn
        ),
    )
    return s3.CfnBucket.BucketEncryptionProperty(server_side_encryption_configuration=[rule])
