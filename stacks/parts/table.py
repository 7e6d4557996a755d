"""The table of state: on demand, encrypted, with point-in-time recovery, and a stream that wakes the attendant."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from contract import items
from stacks.parts.acknowledged import acknowledge


class StateTable(dynamodb.Table):
    """contract.items says what is in it. With `keep` it outlives its stack, and cannot be deleted by mistake; without, it is deleted
    with its stack, whatever is in it.

    Deletion protection also keeps CloudFormation from deleting it when its stack's first deploy fails, and its name would then block
    every further deploy: make it the last resource of its stack.
    """

    def __init__(self, scope: Construct, name: str, *, physical_name: str, keep: bool) -> None:
        super().__init__(
            scope,
            name,
            table_name=physical_name,
            partition_key=dynamodb.Attribute(name=items.PARTITION, type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name=items.SORT, type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=dynamodb.TableEncryption.DEFAULT,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=keep,
            removal_policy=cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if keep else cdk.RemovalPolicy.DESTROY,
            time_to_live_attribute=items.EXPIRES,
            stream=dynamodb.StreamViewType.NEW_IMAGE,
        )
        acknowledge(
            self,
            "DynamoDB encrypts with a key of its own, as S3 does for the buckets; a customer key costs by the request.",
            "CKV_AWS_119",
        )

    @property
    def stream_arn(self) -> str:
        arn = self.table_stream_arn
        assert arn is not None
        return arn
