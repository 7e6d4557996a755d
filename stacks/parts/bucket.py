"""A bucket that outlives its stack: private, encrypted, TLS only, tidied by itself."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from constructs import Construct

FORGET_VERSIONS = cdk.Duration.days(7)
"""Reports are replaced every half minute: a month of their versions would be a hundred thousand objects a node."""
GIVE_UP_UPLOADS = cdk.Duration.days(7)


class Bucket(s3.Bucket):
    """`versioned` keeps what was overwritten or deleted for a week; `events` sends object events to EventBridge."""

    def __init__(
        self, scope: Construct, name: str, *, physical_name: str, versioned: bool, events: bool = False
    ) -> None:
        super().__init__(
            scope,
            name,
            bucket_name=physical_name,
            versioned=versioned,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            removal_policy=cdk.RemovalPolicy.RETAIN,
            lifecycle_rules=[
                s3.LifecycleRule(
                    abort_incomplete_multipart_upload_after=GIVE_UP_UPLOADS,
                    noncurrent_version_expiration=FORGET_VERSIONS if versioned else None,
                    expired_object_delete_marker=True if versioned else None,
                )
            ],
        )
        if events:
            plain = self.node.default_child
            assert isinstance(plain, s3.CfnBucket)
            # The construct's own switch adds a function of its own that calls S3 after the fact; the property needs none.
            plain.notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
                event_bridge_configuration=s3.CfnBucket.EventBridgeConfigurationProperty(event_bridge_enabled=True)
            )
