"""One version of an S3 object as a file that can be read at any place, a bounded piece at a time."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from aws.clients import client
from aws.facts import Object
from aws.s3 import ABSENT, ARCHIVE_CLASSES
from contract.aws_errors import code_of

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

READ_ON = 8 * 1024**2
"""Bytes ahead that are read and thrown away: as fast as another request, and an archive has very many small gaps."""
BUFFER = 1024**2
JSON_LINES = "application/x-ndjson"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """An object's head, with what names these very bytes."""

    bucket: str
    key: str
    size: int
    version: str
    """Empty in a bucket without versions."""
    etag: str
    archived: bool
    modified: float = 0.0
    """When it was written, UTC epoch seconds; 0 where nothing said so."""


def head(bucket: str, key: str) -> Pinned | None:
    """None where there is no such object; raises ClientError (403) where we may not look."""
    s3: S3Client = client("s3")
    try:
        answer = s3.head_object(Bucket=bucket, Key=key)
    except ClientError as problem:
        if code_of(problem) in ABSENT:
            return None
        raise
    version = answer.get("VersionId", "")
    restored = 'ongoing-request="false"' in answer.get("Restore", "")
    return Pinned(
        bucket=bucket,
        key=key,
        size=answer["ContentLength"],
        version="" if version == "null" else version,
        etag=answer["ETag"],
        archived=answer.get("StorageClass") in ARCHIVE_CLASSES and not restored,
        modified=answer["LastModified"].timestamp(),
    )


def pinned(found: Object) -> Pinned:
    """The version of an object that a look at it found."""
    return Pinned(
        bucket=found.bucket,
        key=found.key,
        size=found.size,
        version="" if found.version == "null" else found.version,
        etag=found.etag,
        archived=found.archived,
    )


def write(bucket: str, key: str, body: bytes) -> Pinned:
    """Writes an object, and returns the version that this made."""
    s3: S3Client = client("s3")
    answer = s3.put_object(Bucket=bucket, Key=key, Body=body, ContentType=JSON_LINES)
    version = answer.get("VersionId", "")
    return Pinned(bucket=bucket, key=key, size=len(body), version=version, etag=answer["ETag"], archived=False)


def opened(pinned: Pinned) -> io.BufferedReader:
    """The object's bytes; reading raises ClientError where they are no longer those that were looked at."""
    return io.BufferedReader(_File(pinned), BUFFER)


class _File(io.RawIOBase):
    """A stream of S3 that is opened again where its reader jumps."""

    def __init__(self, pinned: Pinned) -> None:
        self._pinned = pinned
        self._place = 0
        self._body: Any = None
        self._body_place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._pinned.size}[whence]
        self._place = max(0, start + offset)
        return self._place

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), self._pinned.size - self._place)
        if wanted <= 0:
            return 0
        self._go()
        data: bytes = self._body.read(wanted)
        buffer[: len(data)] = data
        self._place += len(data)
        self._body_place = self._place
        return len(data)

    def _go(self) -> None:
        """Brings the stream to the place."""
        ahead = self._place - self._body_place
        if self._body is None or not 0 <= ahead <= READ_ON:
            self.close_body()
            self._body = self._open()
        else:
            while ahead:
                ahead -= len(self._body.read(min(ahead, BUFFER)))
        self._body_place = self._place

    def _open(self) -> Any:
        s3: S3Client = client("s3")
        version = {"VersionId": self._pinned.version} if self._pinned.version else {}
        return s3.get_object(
            Bucket=self._pinned.bucket,
            Key=self._pinned.key,
            IfMatch=self._pinned.etag,
            Range=f"bytes={self._place}-",
            **version,  # type: ignore[arg-type]
        )["Body"]

    def close_body(self) -> None:
        if self._body is not None and hasattr(self._body, "close"):
            self._body.close()
        self._body = None

    def close(self) -> None:
        self.close_body()
        super().close()
