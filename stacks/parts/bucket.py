"""A bucket that outlives its stack unless the settings say otherwise: private, encrypted, TLS only, with lifecycle rules."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from constructs import Construct

from stacks.parts.acknowledged import acknowledge

GIVE_UP_UPLOADS = cdk.Duration.days(7)


class Bucket(s3.Bucket):
    """Overwritten and deleted objects stay for `days`.

    A bucket without `keep` is deleted with its stack once it is empty, and the drain empties it. A kept bucket is also deleted
    when its stack's first deploy fails: it is still empty, and its name would block every further deploy.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        physical_name: str,
        days: int,
        keep: bool,
        forgets: Mapping[str, int] | None = None,
        sends_events: bool = False,
    ) -> None:
        """`forgets` maps a prefix to the days after which S3 deletes the objects under it; `sends_events` says whether EventBridge sees
        what is written."""
        super().__init__(
            scope,
            name,
            bucket_name=physical_name,
            versioned=True,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            removal_policy=cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if keep else cdk.RemovalPolicy.DESTROY,
            lifecycle_rules=[
                s3.LifecycleRule(
                    abort_incomplete_multipart_upload_after=GIVE_UP_UPLOADS,
                    noncurrent_version_expiration=cdk.Duration.days(days),
                    expired_object_delete_marker=True,
                ),
                *(
                    s3.LifecycleRule(prefix=prefix, expiration=cdk.Duration.days(after))
                    for prefix, after in (forgets or {}).items()
                ),
            ],
        )
        acknowledge(
            self,
            "Access logs would need a bucket that has none itself, and cost by the request; CloudTrail records the calls.",
            "AwsSolutions-S1",
            "CKV_AWS_18",
        )
        if sends_events:
            # CDK's own way takes a function of CDK's; CloudFormation knows the property itself.
            bucket = self.node.default_child
            assert isinstance(bucket, s3.CfnBucket)
            bucket.notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
                event_bridge_configuration=s3.CfnBucket.EventBridgeConfigurationProperty(event_bridge_enabled=True)
            )
