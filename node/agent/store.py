"""Every S3 call of the agent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from botocore.exceptions import ClientError

from contract.aws_errors import code_of
from contract.codec import Garbled
from contract.commits import MOST_DOCUMENT

MIB = 1024 * 1024
COPIED, COPIED_AT_ONCE = 64 * MIB, 8
"""Bytes of a part that S3 copies, which it has to do within a read's time-out, and how many of an object at once."""
ABSENT, FORBIDDEN = ("NoSuchKey", "404"), ("AccessDenied", "403")
TAKEN = ("PreconditionFailed", "ConditionalRequestConflict")
"""S3 answers the second where another write of the key is under way."""
MOST_DELETED = 1000
"""Keys of one DeleteObjects."""


class NotDeleted(RuntimeError):
    """S3 did not delete some objects."""


class Missing(LookupError):
    """There is no such object."""


class TooLong(Garbled):
    """A document has more bytes than any reader takes; the message has both numbers."""


class Stored(NamedTuple):
    """An object as a list of the bucket tells it."""

    key: str
    size: int
    """Bytes."""
    modified: datetime
    """By S3's clock; of an object that was sent in parts, when its upload began."""


class Store:
    """One bucket. Calls raise what boto3 raises after its retries, except where their docstring says otherwise."""

    def __init__(self, client: Any, bucket: str, *, gbps: float = 0.0, authorities: str = "") -> None:
        """`gbps`: of the machine's network, 0 where it is not known. `authorities`: the file with those that are trusted; empty for the
        client's own."""
        self.client, self.bucket, self.gbps, self.authorities = client, bucket, gbps, authorities

    def get(self, key: str, *, most: int = MOST_DOCUMENT) -> bytes:
        """Reads a document. Raises Missing; TooLong, unread, where it has more bytes than `most`: code of a job can write any."""
        try:
            answer = self.client.get_object(Bucket=self.bucket, Key=key)
            if answer["ContentLength"] > most:
                answer["Body"].close()
                raise self._too_long(key, answer["ContentLength"], most)
            body: bytes = answer["Body"].read()
        except ClientError as problem:
            if self.lacks(key, problem):
                raise Missing(f"s3://{self.bucket}/{key} is missing") from None
            raise
        return body

    def _check_length(self, key: str, document: bytes) -> None:
        if len(document) > MOST_DOCUMENT:
            raise self._too_long(key, len(document), MOST_DOCUMENT)

    def _too_long(self, key: str, size: int, most: int) -> TooLong:
        return TooLong(f"s3://{self.bucket}/{key} has {size:,} bytes; allowed: up to {most:,}")

    def create(self, key: str, document: bytes) -> bool:
        """Writes a JSON document unless there is one; whether it did. A request whose answer was lost finds its own document.

        Raises TooLong."""
        self._check_length(key, document)
        try:
            self.client.put_object(
                Bucket=self.bucket, Key=key, Body=document, ContentType="application/json", IfNoneMatch="*"
            )
        except ClientError as problem:
            if code_of(problem) in TAKEN:
                return False
            raise
        return True

    def lacks(self, key: str, problem: ClientError) -> bool:
        """Whether there is no such object. S3 answers "forbidden" for a missing one too, because a job may not list the whole bucket; it
        may list its own keys, and the list tells. A right that is missing must not look like a checkpoint that is."""
        code = code_of(problem)
        return code in ABSENT or (code in FORBIDDEN and key not in self.keys(key))

    def put(self, key: str, document: bytes) -> None:
        """Writes a JSON document, or replaces it. Raises TooLong: a checkpoint that no node could restore must not look like one."""
        self._check_length(key, document)
        self.client.put_object(Bucket=self.bucket, Key=key, Body=document, ContentType="application/json")

    def keys(self, prefix: str) -> Iterator[str]:
        """Every key under `prefix`, page by page."""
        return (one.key for one in self.objects(prefix))

    def objects(self, prefix: str) -> Iterator[Stored]:
        """Every object under `prefix`, page by page."""
        for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix):
            for entry in page.get("Contents", []):
                yield Stored(entry["Key"], entry["Size"], entry["LastModified"])

    def delete(self, keys: Iterable[str]) -> None:
        """Deletes the objects, up to 1,000 in a call; one that does not exist counts as deleted. Raises NotDeleted."""
        left = list(keys)
        for start in range(0, len(left), MOST_DELETED):
            objects = [{"Key": key} for key in left[start : start + MOST_DELETED]]
            answer = self.client.delete_objects(Bucket=self.bucket, Delete={"Objects": objects, "Quiet": True})
            if errors := answer.get("Errors"):
                first = errors[0]
                raise NotDeleted(f"{len(errors)} objects stay, {first['Key']} among them: {first['Code']}")

    def copy_from(self, other: Store, key: str) -> None:
        """Has S3 copy the object of the same key out of another bucket, in parts where it is large; no byte passes through this machine."""
        from boto3.s3.transfer import TransferConfig

        parts = TransferConfig(multipart_threshold=COPIED, multipart_chunksize=COPIED, max_concurrency=COPIED_AT_ONCE)
        source = {"Bucket": other.bucket, "Key": key}
        self.client.copy(source, self.bucket, key, SourceClient=other.client, Config=parts)

    def fetch(self, key: str, file: Path) -> None:
        """Downloads the object, a large one in parts side by side. Raises Missing."""
        try:
            self.client.download_file(self.bucket, key, str(file))
        except ClientError as problem:
            if self.lacks(key, problem):
                raise Missing(f"s3://{self.bucket}/{key} is missing") from None
            raise
