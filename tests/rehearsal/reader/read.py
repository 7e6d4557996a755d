"""Reads objects with the credentials of the job's role, which a real boto3 finds by itself, and as the instance; prints each answer.

The arguments are a bucket, the job's own object, another job's object, and the folder of a whole boto3.
"""

from __future__ import annotations

import os
import sys

bucket, own, other, libraries = sys.argv[1:]
sys.path.insert(0, libraries)

import boto3  # noqa: E402
from botocore.exceptions import ClientError  # noqa: E402


def read(who: str, key: str) -> None:
    client = boto3.session.Session(region_name="eu-central-1").client("s3")
    try:
        said = client.get_object(Bucket=bucket, Key=key)["Body"].read().decode()
    except ClientError as problem:
        said = problem.response["Error"]["Code"]
    print(f"{who} {key}: {said}")


read("role", own)
read("role", other)
del os.environ["AWS_CONFIG_FILE"]
os.environ["AWS_METADATA_SERVICE_NUM_ATTEMPTS"] = "20"  # boto3 waits a second, once, which a busy machine may take
read("instance", own)
