"""Binds the credentials of jobs to our network: outside of it they open no bucket of bytes, whoever has them."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from stacks.parts import interfaces

WRITES = ("s3:Put*", "s3:Delete*", "s3:AbortMultipartUpload")


def bind_jobs(bucket: s3.Bucket, *, job_role: str, vpc: ec2.IVpc | None, read_elsewhere: bool) -> None:
    """Denies the sessions of the role with that name everything that does not come through the S3 endpoint of `vpc`, which every network of
    ours has, and which the region check wants of every other; in a region without one, everything. It denies nothing to others.

    `read_elsewhere`: nodes of other regions restore checkpoints from this bucket, through their NAT gateways; then only writes are bound,
    which nodes do in their own region alone.
    """
    role = cdk.Stack.of(bucket).format_arn(service="iam", region="", resource="role", resource_name=job_role)
    # A request that names no VPC is denied as well: StringNotEquals is met where the key is missing.
    outside = {"StringNotEquals": {"aws:SourceVpc": vpc.vpc_id}} if vpc else {}
    bucket.add_to_resource_policy(
        iam.PolicyStatement(
            sid="JobsInOurNetworkAlone",
            effect=iam.Effect.DENY,
            principals=[interfaces.principal(iam.AnyPrincipal())],
            actions=list(WRITES) if read_elsewhere else ["s3:*"],
            resources=[bucket.bucket_arn, bucket.arn_for_objects("*")],
            conditions={"ArnEquals": {"aws:PrincipalArn": role}, **outside},
        )
    )
