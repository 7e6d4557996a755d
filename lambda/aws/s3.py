"""Every S3 call of the functions: what people and nodes read in the home bucket, and the bytes beside it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import ClientError

from aws import copies
from aws.clients import PATIENT, client
from aws.errors import Raced
from aws.facts import Object
from contract import keys
from contract.aws_errors import code_of
from contract.codec import decode, encode
from contract.jobs import Job

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client
    from types_boto3_s3.type_defs import GetObjectOutputTypeDef

ABSENT = frozenset({"NoSuchKey", "404", "NoSuchVersion", "NotFound"})
NO_BUCKET = frozenset({"NoSuchBucket", "404"})
CONFLICT = frozenset({"ConditionalRequestConflict", "409"})
"""Another conditional write of the same key was under way: this one did nothing, and says nothing of what is there now."""
RACED = frozenset({"PreconditionFailed", "412"}) | CONFLICT
ARCHIVE_CLASSES = frozenset({"GLACIER", "DEEP_ARCHIVE"})
"""Classes of storage whose objects have to be restored before they can be read."""
JSON, HTML = "application/json", "text/html; charset=utf-8"
AGAIN_S = (0.1, 0.4, 1.6)
"""Pauses before a conditional write is sent again that met another one."""
TELLS = 5
"""How often a report is read and written again that another writer changes meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of an object, or a delete marker."""

    key: str
    id: str


class ObjectTooLarge(Exception):
    """An object has more bytes than its reader takes; the message has both numbers."""


class Bucket:
    """One bucket, by its region's client."""

    def __init__(self, name: str, region: str | None = None, config: Config = PATIENT) -> None:
        self.name = name
        self._client: S3Client = client("s3", region, config)

    def get(self, key: str, *, most: int | None = None) -> bytes | None:
        """The body, None where there is no such object. Raises ObjectTooLarge, unread, where it has more bytes than `most`."""
        answer = self._answer(key)
        if answer is None:
            return None
        if most is not None and answer["ContentLength"] > most:
            answer["Body"].close()
            raise ObjectTooLarge(f"{key} has {answer['ContentLength']:,} bytes; allowed: up to {most:,}")
        return answer["Body"].read()

    def get_tagged(self, key: str) -> tuple[bytes, str] | None:
        """Body and ETag, None where there is no such object."""
        answer = self._answer(key)
        return (answer["Body"].read(), answer["ETag"]) if answer else None

    def _answer(self, key: str) -> GetObjectOutputTypeDef | None:
        try:
            return self._client.get_object(Bucket=self.name, Key=key)
        except ClientError as problem:
            if code_of(problem) in ABSENT:
                return None
            raise

    def put(self, key: str, body: bytes, kind: str = JSON) -> None:
        self._client.put_object(Bucket=self.name, Key=key, Body=body, ContentType=kind)

    def put_page(self, key: str, body: bytes, marks: Mapping[str, str]) -> None:
        """Writes a page of HTML that no browser keeps, with `marks` about it."""
        self._client.put_object(
            Bucket=self.name, Key=key, Body=body, ContentType=HTML, CacheControl="no-cache", Metadata=dict(marks)
        )

    def read_marks(self, key: str) -> dict[str, str] | None:
        """Returns the marks of an object; None where there is no such object."""
        try:
            return dict(self._client.head_object(Bucket=self.name, Key=key).get("Metadata", {}))
        except ClientError as problem:
            if code_of(problem) in ABSENT:
                return None
            raise

    def create(self, key: str, body: bytes) -> str:
        """Returns the ETag; raises Raced where the object exists."""
        return self._conditional(key, body, IfNoneMatch="*")

    def ensure(self, key: str, body: bytes, kind: str = JSON) -> None:
        """Writes the object unless it exists. Usually one call, and needs no permission to read."""
        try:
            self._put_if(key, body, IfNoneMatch="*", ContentType=kind)
        except ClientError as problem:
            if code_of(problem) not in RACED - CONFLICT:
                raise

    def replace(self, key: str, body: bytes, etag: str) -> str:
        """Returns the new ETag; raises Raced where the object is no longer the one that `etag` names."""
        return self._conditional(key, body, IfMatch=etag)

    def _conditional(self, key: str, body: bytes, **condition: str) -> str:
        try:
            return self._put_if(key, body, **condition)
        except ClientError as problem:
            if code_of(problem) not in RACED:
                raise
            # Where an answer is lost botocore sends the write again, and it meets itself.
            found = self.get_tagged(key)
            if found is None or found[0] != body:
                raise Raced(key) from None
            return found[1]

    def _put_if(self, key: str, body: bytes, **condition: str) -> str:
        """One conditional write, sent again where it meets another one; S3 wants that of its callers."""
        for pause in (*AGAIN_S, None):
            try:
                answer = self._client.put_object(
                    Bucket=self.name,
                    Key=key,
                    Body=body,
                    **{"ContentType": JSON, **condition},  # type: ignore[arg-type]
                )
            except ClientError as problem:
                if pause is None or code_of(problem) not in CONFLICT:
                    raise
                time.sleep(pause)
            else:
                return answer["ETag"]
        raise AssertionError("the last write either answers or raises")

    def delete(self, key: str) -> None:
        self._client.delete_object(Bucket=self.name, Key=key)

    def head(self, key: str) -> Object | None:
        """None where there is no such object; raises ClientError (403) where we may not look."""
        try:
            answer = self._client.head_object(Bucket=self.name, Key=key)
        except ClientError as problem:
            if code_of(problem) in ABSENT:
                return None
            raise
        restored = 'ongoing-request="false"' in answer.get("Restore", "")
        return Object(
            bucket=self.name,
            key=key,
            size=answer["ContentLength"],
            version=answer.get("VersionId", ""),
            etag=answer.get("ETag", ""),
            archived=answer.get("StorageClass") in ARCHIVE_CLASSES and not restored,
        )

    def copy(self, source: Object, key: str) -> None:
        """Copies one version of an object into this bucket."""
        copies.copy(self._client, source, self.name, key)

    def renew(self, key: str) -> None:
        """Copies an object onto itself: S3 counts its age from now on. The version of before stays as long as any other."""
        where = {"Bucket": self.name, "Key": key}
        self._client.copy_object(
            Bucket=self.name,
            Key=key,
            CopySource=where,  # type: ignore[arg-type]
            MetadataDirective="REPLACE",
            TaggingDirective="REPLACE",
        )

    def listed(self, prefix: str) -> Iterator[tuple[str, int, float]]:
        """Key, size, and age in seconds by S3's own clock, of every object under `prefix`."""
        for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix):
            now = parsedate_to_datetime(page["ResponseMetadata"]["HTTPHeaders"]["date"])
            for entry in page.get("Contents", []):
                yield entry["Key"], entry["Size"], max(0.0, (now - entry["LastModified"]).total_seconds())

    def holds_any(self, prefix: str) -> bool:
        return bool(self._client.list_objects_v2(Bucket=self.name, Prefix=prefix, MaxKeys=1).get("KeyCount"))

    def exists(self) -> bool:
        try:
            self._client.head_bucket(Bucket=self.name)
        except ClientError as problem:
            if code_of(problem) in NO_BUCKET:
                return False
            raise
        return True

    def versions(self) -> Iterator[list[Version]]:
        """Every version and every delete marker, 1,000 at most at a time."""
        for one in self._client.get_paginator("list_object_versions").paginate(Bucket=self.name):
            entries = [*one.get("Versions", []), *one.get("DeleteMarkers", [])]
            yield [Version(key=entry["Key"], id=entry["VersionId"]) for entry in entries]

    def delete_versions(self, versions: Sequence[Version]) -> dict[str, str]:
        """Deletes up to 1,000 versions for good; returns S3's reason for each key that stays."""
        if not versions:
            return {}
        answer = self._client.delete_objects(
            Bucket=self.name,
            Delete={"Objects": [{"Key": one.key, "VersionId": one.id} for one in versions], "Quiet": True},
        )
        return {one.get("Key", ""): one.get("Code", "") for one in answer.get("Errors", [])}


class HomeBucket(Bucket):
    """The home bucket: what people and nodes read of a job."""

    def job(self, job: str) -> Job | None:
        body = self.get(keys.JobPrefix(job).description)
        return None if body is None else decode(Job, body)

    def create_job(self, job: Job) -> None:
        """Raises Raced where the name has a job already."""
        self.create(keys.JobPrefix(job.id).description, encode(job))

    def result_tag(self, job: str) -> str:
        """ETag of the job's report, empty where there is none."""
        found = self.get_tagged(keys.JobPrefix(job).result)
        return found[1] if found else ""

    def tell_result(self, job: str, report: Callable[[object, str], Mapping[str, Any] | None]) -> None:
        """Writes the job's report that `report` makes of the one that is there, whoever wrote it (None where that is not JSON), and of its
        ETag; one for which it has none stays. Raises Raced where others write it again and again."""
        key = keys.JobPrefix(job).result
        for _ in range(TELLS):
            found = self.get_tagged(key)
            told = report(_json(found[0]), found[1]) if found else report(None, "")
            if told is None:
                return
            try:
                if found:
                    self.replace(key, as_json(told), found[1])
                else:
                    self.create(key, as_json(told))
            except Raced:
                continue
            return
        raise Raced(key)


def _json(body: bytes) -> object:
    try:
        return json.loads(body)
    except ValueError:
        return None


def as_json(value: Any) -> bytes:
    """For documents that people read."""
    return json.dumps(value, indent=1, ensure_ascii=False).encode()
