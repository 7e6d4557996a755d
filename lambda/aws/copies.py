"""Copies of large objects: S3 copies parts side by side, where one call for the whole may outlive a function."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from aws.facts import Object

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

PART_BYTES = 256 * 1024**2
"""Also the largest object of a single call: seconds, where 5 GB can take minutes."""
AT_ONCE = 10
"""As many connections as a client keeps."""


def copy(s3: S3Client, source: Object, bucket: str, key: str) -> None:
    """Copies one version of an object into `bucket`: readers see the whole of it, or nothing."""
    where: dict[str, Any] = {"Bucket": source.bucket, "Key": source.key}
    if source.version and source.version != "null":
        where["VersionId"] = source.version
    if source.size <= PART_BYTES:
        # Whoever uploads chooses its tags; policies may rest on tags of ours.
        s3.copy_object(Bucket=bucket, Key=key, CopySource=where, TaggingDirective="REPLACE")  # type: ignore[arg-type]
        return
    same = s3.head_object(**where)[
        "ETag"
    ]  # a bucket without versions may get another object while its parts are copied
    upload = {"Bucket": bucket, "Key": key, "UploadId": s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]}

    def part(number: int) -> dict[str, Any]:
        first = (number - 1) * PART_BYTES
        last = min(first + PART_BYTES, source.size) - 1
        answer = s3.upload_part_copy(
            **upload,
            PartNumber=number,
            CopySource=where,  # type: ignore[arg-type]
            CopySourceRange=f"bytes={first}-{last}",
            CopySourceIfMatch=same,
        )
        return {"PartNumber": number, "ETag": answer["CopyPartResult"]["ETag"]}

    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        parts = list(pool.map(part, range(1, -(-source.size // PART_BYTES) + 1)))
        s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})  # type: ignore[typeddict-item]
    except (ClientError, BotoCoreError):
        pool.shutdown(cancel_futures=True)
        _abort(s3, upload)
        raise
    finally:
        pool.shutdown()


def _abort(s3: S3Client, upload: dict[str, str]) -> None:
    """Parts without a whole are paid for. What cannot be aborted now, the bucket's own rule takes away."""
    try:
        s3.abort_multipart_upload(Bucket=upload["Bucket"], Key=upload["Key"], UploadId=upload["UploadId"])
    except (ClientError, BotoCoreError) as problem:
        logging.getLogger(__name__).warning(
            "parts of s3://%s/%s are left: %s", upload["Bucket"], upload["Key"], problem
        )
