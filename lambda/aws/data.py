"""Where training data lies: regions of buckets, and what is under an address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from aws.clients import client
from aws.errors import S3_DENIED
from contract.aws_errors import code_of

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

NOT_THERE = "404"
"""HeadBucket's answer for a bucket that does not exist."""
REGION_HEADER = "x-amz-bucket-region"


class Denied(Exception):
    """S3 does not let us look; `code` is its error code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def region_of(bucket: str) -> str:
    """The region of a bucket. Raises Denied."""
    s3: S3Client = client("s3")
    try:
        answer = s3.head_bucket(Bucket=bucket)
    except ClientError as problem:
        raise _denied(problem) from None
    return answer.get("BucketRegion") or answer["ResponseMetadata"]["HTTPHeaders"][REGION_HEADER]


def names_at(bucket: str, prefix: str, region: str, most: int) -> list[str]:
    """The first keys that begin so, in one call; those of one folder together are its own, which ends with /. Raises Denied."""
    s3: S3Client = client("s3", region)
    try:
        page = s3.list_objects_v2(Bucket=bucket, Prefix=prefix, Delimiter="/", MaxKeys=most)
    except ClientError as problem:
        raise _denied(problem) from None
    objects, folders = page.get("Contents", []), page.get("CommonPrefixes", [])
    return sorted([*(one["Key"] for one in objects), *(one["Prefix"] for one in folders)])


def size_of(bucket: str, prefix: str, region: str, pages: int) -> tuple[int, bool]:
    """Bytes under a prefix, and whether that is all: at most so many pages of 1,000 objects are looked at. Raises Denied."""
    s3: S3Client = client("s3", region)
    total, seen = 0, 0
    try:
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            total += sum(entry["Size"] for entry in page.get("Contents", []))
            seen += 1
            if seen >= pages:
                return total, not page["IsTruncated"]
    except ClientError as problem:
        raise _denied(problem) from None
    return total, True


def _denied(problem: ClientError) -> Exception:
    code = code_of(problem)
    return Denied(code) if code in S3_DENIED or code == NOT_THERE else problem
