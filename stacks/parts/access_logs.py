"""A bucket for S3's server access logs of the other buckets of a stack: who asked for which object."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from stacks.parts import interfaces
from stacks.parts.acknowledged import acknowledge

WRITER = "logging.s3.amazonaws.com"


class AccessLogs(s3.Bucket):
    """Outlives its stack whatever the settings say of data, under a name that CloudFormation makes up, so that it blocks no later
    deploy: a record of who deleted what is worth nothing if a delete takes it along. It empties itself after `days`."""

    def __init__(self, scope: Construct, name: str, *, buckets: Sequence[s3.Bucket], days: int) -> None:
        super().__init__(
            scope,
            name,
            versioned=True,
            # S3 writes server access logs into no bucket whose default is a key of KMS
            # (https://docs.aws.amazon.com/AmazonS3/latest/userguide/enable-server-access-logging.html).
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            removal_policy=cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
            lifecycle_rules=[
                s3.LifecycleRule(
                    expiration=cdk.Duration.days(days), noncurrent_version_expiration=cdk.Duration.days(days)
                )
            ],
        )
        for bucket in buckets:
            self._logs(bucket)
        acknowledge(self, "Holds the access logs; S3 would write a log of each log.", "CKV_AWS_18")

    def _logs(self, bucket: s3.Bucket) -> None:
        logged = bucket.node.default_child
        assert isinstance(logged, s3.CfnBucket)
        prefix = f"{bucket.node.id.lower()}/"
        self.add_to_resource_policy(
            iam.PolicyStatement(
                sid=f"LogsOf{bucket.node.id}",
                principals=[interfaces.principal(iam.ServicePrincipal(WRITER))],
                actions=["s3:PutObject"],
                resources=[self.arn_for_objects(f"{prefix}*")],
                conditions={
                    # By its name: a reference would close a circle, as the bucket itself waits for this policy.
                    "ArnEquals": {"aws:SourceArn": f"arn:{cdk.Aws.PARTITION}:s3:::{logged.bucket_name}"},
                    "StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID},
                },
            )
        )
        logged.logging_configuration = s3.CfnBucket.LoggingConfigurationProperty(
            destination_bucket_name=self.bucket_name, log_file_prefix=prefix
        )
        assert self.policy is not None
        logged.node.add_dependency(self.policy)
