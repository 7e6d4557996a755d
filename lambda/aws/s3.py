"""Every S3 call of the functions: the job's documents in the home bucket, and the bytes beside them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.config import Config
from botocore.exceptions import ClientError

from aws import copies
from aws.bodies import whole
from aws.clients import PATIENT, client
from aws.facts import Given, Object, Pass, Seen
from contract import keys
from contract.aws_errors import code_of
from contract.codec import Garbled, decode, encode
from contract.commits import Commit
from contract.intents import Intent, Step
from contract.jobs import Job
from contract.orders import Order
from contract.reports import NodeReport

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client
    from types_boto3_s3.type_defs import GetObjectOutputTypeDef

T = TypeVar("T")
ABSENT = frozenset({"NoSuchKey", "404", "NoSuchVersion", "NotFound"})
NO_BUCKET = frozenset({"NoSuchBucket", "404"})
CONFLICT = frozenset({"ConditionalRequestConflict", "409"})
"""Another conditional write of the same key was under way: this one did nothing, and says nothing of what is there now."""
RACED = frozenset({"PreconditionFailed", "412"}) | CONFLICT
ARCHIVE_CLASSES = frozenset({"GLACIER", "DEEP_ARCHIVE"})
"""Classes of storage whose objects have to be restored before they can be read."""
AGAIN_S = (0.1, 0.4, 1.6)
"""Pauses before a conditional write is sent again that met another one."""
TELLS = 5
"""How often a report is read and written again that somebody else writes meanwhile."""
AT_ONCE = 16
"""Reports read side by side."""


class Raced(Exception):
    """Somebody else wrote the document first: read it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """An intent with the ETag that its next version has to name."""

    intent: Intent
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of an object, or a delete marker."""

    key: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A Train state that waits for an attempt of a job."""

    job: str
    attempt: int
    token: str
    key: str


class Bucket:
    """One bucket, by its region's client."""

    def __init__(self, name: str, region: str | None = None, config: Config = PATIENT) -> None:
        self.name = name
        self._client: S3Client = client("s3", region, config)

    def get(self, key: str) -> bytes | None:
        found = self.get_tagged(key)
        return found[0] if found else None

    def get_tagged(self, key: str) -> tuple[bytes, str] | None:
        """Body and ETag, None where there is no such object."""
        answer = self._answer(key)
        return (whole(answer["Body"], key), answer["ETag"]) if answer else None

    def _answer(self, key: str) -> GetObjectOutputTypeDef | None:
        try:
            return self._client.get_object(Bucket=self.name, Key=key)
        except ClientError as problem:
            if code_of(problem) in ABSENT:
                return None
            raise

    def get_aged(self, key: str) -> tuple[bytes, float] | None:
        """Body, and age in seconds by S3's own clock; None where there is no such object."""
        answer = self._answer(key)
        if answer is None:
            return None
        now = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
        return whole(answer["Body"], key), max(0.0, (now - answer["LastModified"]).total_seconds())

    def put(self, key: str, body: bytes) -> None:
        self._client.put_object(Bucket=self.name, Key=key, Body=body, ContentType="application/json")

    def create(self, key: str, body: bytes) -> str:
        """Returns the ETag; raises Raced where the object exists."""
        return self._conditional(key, body, IfNoneMatch="*")

    def ensure(self, key: str, body: bytes) -> None:
        """Writes the object unless it exists. Usually one call, and needs no permission to read."""
        try:
            self._put_if(key, body, IfNoneMatch="*")
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
                    ContentType="application/json",
                    **condition,  # type: ignore[arg-type]
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
        self._client.copy_object(Bucket=self.name, Key=key, CopySource=where, MetadataDirective="REPLACE")  # type: ignore[arg-type]

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


class JobStore(Bucket):
    """The home bucket, read and written as the contract's documents."""

    def job(self, job: str) -> Job | None:
        return self._read(Job, keys.JobPrefix(job).description)

    def create_job(self, job: Job) -> None:
        """Raises Raced where the name has a job already."""
        self.create(keys.JobPrefix(job.id).description, encode(job))

    def intents(self, job: str, attempt: int) -> list[Held]:
        """The walks of the attempt, in their order."""
        found = []
        for key, _, _ in self.listed(keys.JobPrefix(job).intents(attempt)):
            if read := self.get_tagged(key):
                found.append(Held(intent=decode(Intent, read[0]), etag=read[1]))
        return sorted(found, key=lambda held: held.intent.walk)

    def launch(self, job: str, attempt: int) -> Step | None:
        """The rung on which the attempt was launched, with its answer."""
        steps = (held.intent.launched for held in reversed(self.intents(job, attempt)))
        return next((step for step in steps if step is not None), None)

    def create_intent(self, intent: Intent) -> Held:
        key = keys.JobPrefix(intent.job).intent(intent.attempt, intent.walk)
        return Held(intent=intent, etag=self.create(key, encode(intent)))

    def replace_intent(self, intent: Intent, etag: str) -> Held:
        key = keys.JobPrefix(intent.job).intent(intent.attempt, intent.walk)
        return Held(intent=intent, etag=self.replace(key, encode(intent), etag))

    def close(self, job: str, attempt: int) -> None:
        """Closes the attempt: from now on nothing is launched for it."""
        self.put(keys.JobPrefix(job).closed(attempt), as_json({"job": job, "attempt": attempt}))

    def closed(self, job: str, attempt: int) -> bool:
        return self.head(keys.JobPrefix(job).closed(attempt)) is not None

    def last_attempt(self, job: str) -> int:
        """The newest attempt of which more is there than that it is closed; 0 before the first launch."""
        prefix = keys.JobPrefix(job)
        listed = [(prefix.attempt_of(key), key) for key, _, _ in self.listed(prefix.attempts)]
        return max((number for number, key in listed if key != prefix.closed(number)), default=0)

    def close_admission(self, reason: str) -> None:
        """Closes admission: from now on Admit refuses every request with this reason."""
        self.put(keys.ADMISSION, as_json({"closed": True, "reason": reason}))

    def open_admission(self, reason: str) -> None:
        """Opens admission where it is closed for this reason; one that a person closed, a person has to open."""
        if self.admission_closed() == reason:
            self.delete(keys.ADMISSION)

    def admission_closed(self) -> str | None:
        """Why admission is closed; None where it is open. A note that cannot be read closes it as well."""
        body = self.get(keys.ADMISSION)
        if body is None:
            return None
        try:
            return str(json.loads(body)["reason"])
        except (ValueError, KeyError, TypeError):
            return f"{keys.ADMISSION} is there, and says no reason"

    def launched_regions(self) -> set[str]:
        """Every region where anything was ever launched."""
        return {key.removeprefix(keys.LAUNCHED_REGIONS) for key, _, _ in self.listed(keys.LAUNCHED_REGIONS)}

    def reports(self, job: str, attempt: int) -> list[Seen]:
        """Every report of the attempt's nodes, regular and urgent; aws.heard says what they mean together."""
        listed = list(self.listed(keys.JobPrefix(job).reports(attempt)))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            bodies = list(pool.map(lambda entry: self.get(entry[0]), listed))
        return [
            Seen(key=key, report=_report(body), age_s=age)
            for (key, _, age), body in zip(listed, bodies, strict=True)
            if body is not None
        ]

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

    def order(self, job: str, attempt: int) -> Given | None:
        """The order; None where there is none, or one that cannot be read: nodes may write it, and agents ignore such a one."""
        found = self.get_aged(keys.JobPrefix(job).order(attempt))
        try:
            return None if found is None else Given(order=decode(Order, found[0]), age_s=found[1])
        except Garbled:
            return None

    def create_order(self, job: str, attempt: int, order: Order) -> None:
        """Raises Raced where the attempt has its order already."""
        self.create(keys.JobPrefix(job).order(attempt), encode(order))

    def keep_token(self, token: Token) -> None:
        self.put(token.key, json.dumps({"job": token.job, "attempt": token.attempt, "token": token.token}).encode())

    def tokens(self, job: str | None = None) -> list[Token]:
        """Every Train state that waits, or those of one job."""
        found = []
        for key, _, _ in self.listed(keys.tokens(job) if job else keys.TOKENS):
            if body := self.get(key):
                found.append(Token(**json.loads(body), key=key))
        return found

    def last_pass(self) -> Pass | None:
        """The attendant's last pass over all jobs, None where none is known."""
        found = self.get_aged(keys.PASS)
        if found is None:
            return None
        try:
            return Pass(age_s=found[1], gaps_s=tuple(map(float, json.loads(found[0])["gaps_s"])))
        except (ValueError, KeyError, TypeError):
            return None

    def note_pass(self, gaps_s: Sequence[float]) -> None:
        self.put(keys.PASS, as_json({"gaps_s": gaps_s}))

    def commit(self, key: str) -> Commit | None:
        return self._read(Commit, key)

    def _read(self, kind: type[T], key: str) -> T | None:
        body = self.get(key)
        return None if body is None else decode(kind, body)


def _json(body: bytes) -> object:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _report(body: bytes) -> NodeReport | None:
    try:
        return decode(NodeReport, body)
    except Garbled:
        return None


def as_json(value: Any) -> bytes:
    """For documents that people read."""
    return json.dumps(value, indent=1, ensure_ascii=False).encode()
