"""The topic that people subscribe to, with a key of its own: under AWS's key the messages of alarms are dropped silently."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from stacks.parts import interfaces

ALARMS = "cloudwatch.amazonaws.com"
WAIT_BEFORE_DELETION = cdk.Duration.days(7)
"""KMS's minimum; only messages on their way are encrypted with the key."""


class Topic(sns.Topic):
    """CloudWatch's alarms of this account may publish, and roles whose own policy has the right.

    EventBridge rules may not: SNS does not support a condition on their account in the key's policy, and none of our rules
    publishes (https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html).
    """

    def __init__(self, scope: Construct, name: str, *, display_name: str) -> None:
        key = kms.Key(
            scope,
            f"{name}Key",
            description=f"{display_name}: messages of the notification topic",
            enable_key_rotation=True,
            removal_policy=cdk.RemovalPolicy.DESTROY,
            pending_window=WAIT_BEFORE_DELETION,
        )
        super().__init__(scope, name, display_name=display_name, enforce_ssl=True, master_key=interfaces.key(key))
        self.key = key
        # The key's own policy leaves roles of the account to the roles' policies; a service has no such policy.
        key.add_to_resource_policy(self._alarms("AlarmsEncrypt", ["kms:Decrypt", "kms:GenerateDataKey*"], "*"))
        self.add_to_resource_policy(self._alarms("AlarmsPublish", ["sns:Publish"], self.topic_arn))

    def _alarms(self, name: str, actions: list[str], resource: str) -> iam.PolicyStatement:
        return iam.PolicyStatement(
            sid=name,
            principals=[interfaces.principal(iam.ServicePrincipal(ALARMS))],
            actions=actions,
            resources=[resource],
            conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
        )
