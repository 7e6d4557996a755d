"""S3: versions, conditional writes, pages, and a clock of its own in every answer."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any
from urllib.parse import parse_qsl, unquote

from localaws.model import Pages, Refused
from tests.fakes.clock import Clock
from tests.fakes.wire import Call

COPY_BYTES = 5 * 1024**3
PAGE = 1000


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an object. Times are whole seconds: Last-Modified has no finer ones."""

    id: str
    body: bytes
    written_at: int
    deleted: bool = False
    content_type: str = "binary/octet-stream"
    size: int | None = None
    """For tests of limits: pretends another size than the body's."""
    storage_class: str = "STANDARD"
    restore: str = ""
    """What S3 tells of a copy that can be read for a while, of an object in an archive class."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """What its writer says of it."""
    cache_control: str = ""

    @property
    def etag(self) -> str:
        """Of the bytes alone: equal bytes have equal ETags, whoever wrote them and when."""
        return f'"{hashlib.md5(self.body, usedforsecurity=False).hexdigest()}"'

    @property
    def length(self) -> int:
        return len(self.body) if self.size is None else self.size

    @property
    def cold(self) -> bool:
        """Its bytes have to be restored before anybody reads or copies them."""
        return self.storage_class in {"GLACIER", "DEEP_ARCHIVE"} and 'ongoing-request="false"' not in self.restore

    @property
    def modified(self) -> datetime:
        return datetime.fromtimestamp(self.written_at, timezone.utc)


@dataclass
class Bucket:
    """A bucket with versioning on, if it is not said otherwise."""

    region: str
    forbidden: tuple[str, ...] = ()
    """Prefixes that the caller may not touch."""
    locked: tuple[str, ...] = ()
    """Prefixes whose versions nobody may delete."""
    objects: dict[str, list[Version]] = field(default_factory=dict)
    """Oldest version first."""
    versioned: bool = True
    """Without versions nobody is told of one, and the newest is the only one."""

    def newest(self, key: str) -> Version | None:
        versions = self.objects.get(key)
        return versions[-1] if versions and not versions[-1].deleted else None

    def live(self) -> dict[str, Version]:
        """In the order of keys, which is S3's order of listing."""
        found = {key: self.newest(key) for key in sorted(self.objects)}
        return {key: version for key, version in found.items() if version is not None}


@dataclass
class S3:
    """All buckets; their names belong to no region, their bytes do."""

    clock: Clock
    buckets: dict[str, Bucket] = field(default_factory=dict)
    conflicts: int = 0
    """So many conditional writes meet another one that is under way: 409, and nothing is written."""
    pages: Pages = field(default_factory=lambda: Pages(size=PAGE, error="InvalidArgument"))
    _number: itertools.count[int] = field(default_factory=itertools.count)

    def answer(self, call: Call) -> dict[str, Any]:
        params = call.params
        bucket = self.buckets.get(params["Bucket"])
        if bucket is None:
            raise Refused("NoSuchBucket", "The specified bucket does not exist", 404)
        key = params.get("Key", params.get("Prefix", ""))
        if any(key.startswith(prefix) for prefix in bucket.forbidden):
            raise Refused("AccessDenied", "Access Denied", 403)
        match call.operation:
            case "GetObject":
                return self._get(bucket, params)
            case "HeadObject":
                return {name: one for name, one in self._get(bucket, params, head=True).items() if name != "Body"}
            case "PutObject":
                return self._put(bucket, params)
            case "DeleteObject":
                return self._delete(bucket, params)
            case "CopyObject":
                return self._copy(bucket, params)
            case "ListObjectsV2":
                return self._list(bucket, params)
            case "HeadBucket":
                return {"BucketRegion": bucket.region}
            case "ListObjectVersions":
                return self._versions(bucket, params)
            case "DeleteObjects":
                return self._delete_all(bucket, params)
        raise Refused("NotImplemented", f"The fake has no {call.name}", 501)

    def write(self, bucket: str, key: str, body: bytes, **facts: Any) -> Version:
        """For tests and nodes: a plain put."""
        version = Version(self._version(), body, int(self.clock.now), **facts)
        return self._add(self.buckets[bucket], key, version)

    def read(self, bucket: str, key: str) -> bytes | None:
        version = self.buckets[bucket].newest(key)
        return version.body if version else None

    def _version(self) -> str:
        return f"version-{next(self._number)}"

    def _add(self, bucket: Bucket, key: str, version: Version) -> Version:
        bucket.objects.setdefault(key, []).append(version)
        return version

    def _get(self, bucket: Bucket, params: dict[str, Any], *, head: bool = False) -> dict[str, Any]:
        version = self._found(bucket, params["Key"], params.get("VersionId"), cold=head)
        wanted = params.get("IfMatch")
        if wanted and wanted != version.etag:
            raise Refused("PreconditionFailed", "At least one of the pre-conditions you specified did not hold", 412)
        first = int(params["Range"].removeprefix("bytes=").removesuffix("-")) if "Range" in params else 0
        return {
            "Body": version.body[first:],
            "ContentLength": version.length - first,
            "ContentType": version.content_type,
            "ETag": version.etag,
            "VersionId": version.id if bucket.versioned else None,
            "LastModified": version.modified,
            "StorageClass": None if version.storage_class == "STANDARD" else version.storage_class,
            "Restore": version.restore or None,
            "Metadata": dict(version.metadata),
        }

    @staticmethod
    def _found(bucket: Bucket, key: str, wanted: str | None, *, cold: bool = False) -> Version:
        """An object whose newest version is a delete marker is not there, but by its version it is. `cold`: one is told of as well."""
        every = [one for one in bucket.objects.get(key, []) if one.id == wanted and not one.deleted]
        version = bucket.newest(key) if wanted is None else next(iter(every), None)
        if version is None:
            missing = "key" if wanted is None else "version"
            raise Refused(f"NoSuch{missing.title()}", f"The specified {missing} does not exist.", 404)
        if version.cold and not cold:
            raise Refused("InvalidObjectState", "The operation is not valid for the object's storage class", 403)
        return version

    def _put(self, bucket: Bucket, params: dict[str, Any]) -> dict[str, Any]:
        """`If-None-Match: *` writes only what is not there; `If-Match` replaces only what it names, 404 where nothing is."""
        key, newest = params["Key"], bucket.newest(params["Key"])
        if len(key.encode()) > 1024:
            raise Refused("KeyTooLongError", "Your key is too long")
        if params.get("IfNoneMatch") is not None and params["IfNoneMatch"] != "*":
            raise Refused("NotImplemented", "A header you provided implies functionality that is not implemented", 501)
        if self.conflicts and (params.get("IfNoneMatch") or params.get("IfMatch")):
            self.conflicts -= 1
            conflict = "The conditional request cannot succeed due to a conflicting operation against this resource."
            raise Refused("ConditionalRequestConflict", conflict, 409)
        if params.get("IfNoneMatch") and newest:
            raise Refused("PreconditionFailed", "At least one of the pre-conditions you specified did not hold", 412)
        if wanted := params.get("IfMatch"):
            if newest is None:
                raise Refused("NoSuchKey", "The specified key does not exist.", 404)
            if newest.etag != wanted:
                raise Refused(
                    "PreconditionFailed", "At least one of the pre-conditions you specified did not hold", 412
                )
        version = Version(
            self._version(),
            params.get("Body", b""),
            int(self.clock.now),
            content_type=params.get("ContentType", "binary/octet-stream"),
            metadata=params.get("Metadata", {}),
            cache_control=params.get("CacheControl", ""),
        )
        self._add(bucket, key, version)
        return {"ETag": version.etag, "VersionId": version.id}

    def _delete(self, bucket: Bucket, params: dict[str, Any]) -> dict[str, Any]:
        """Deleting what is not there is no error: it adds a delete marker as well."""
        version = Version(self._version(), b"", int(self.clock.now), deleted=True)
        self._add(bucket, params["Key"], version)
        return {"DeleteMarker": True, "VersionId": version.id}

    def _copy(self, bucket: Bucket, params: dict[str, Any]) -> dict[str, Any]:
        """At most 5 GB in one call."""
        source, _, query = params["CopySource"].partition("?")
        from_name, _, from_key = unquote(source).lstrip("/").partition("/")
        from_bucket = self.buckets.get(from_name)
        if from_bucket is None:
            raise Refused("NoSuchBucket", "The specified bucket does not exist", 404)
        if any(from_key.startswith(prefix) for prefix in from_bucket.forbidden):
            raise Refused("AccessDenied", "Access Denied", 403)
        found = self._found(from_bucket, from_key, dict(parse_qsl(query)).get("versionId"))
        if found.length > COPY_BYTES:
            raise Refused("InvalidRequest", "The specified copy source is larger than the maximum allowable size")
        copy = Version(
            self._version(), found.body, int(self.clock.now), content_type=found.content_type, size=found.size
        )
        self._add(bucket, params["Key"], copy)
        return {"CopyObjectResult": {"ETag": copy.etag, "LastModified": copy.modified}, "VersionId": copy.id}

    def _list(self, bucket: Bucket, params: dict[str, Any]) -> dict[str, Any]:
        """Pages of at most 1,000 keys in the order of keys; what was written before the call is in it. Keys that are equal up to the first
        delimiter behind the prefix are one entry of CommonPrefixes, and count as one."""
        prefix, after = params.get("Prefix", ""), params.get("StartAfter", "")
        delimiter = params.get("Delimiter", "")
        live = dict[str, Version | None]()
        for key, one in bucket.live().items():
            if key.startswith(prefix) and key > after:
                name, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
                live |= {f"{prefix}{name}{cut}": None} if cut else {key: one}
        start = self.pages.resume(params.get("ContinuationToken"), self.clock.now)
        size = min(params.get("MaxKeys", PAGE), self.pages.size)
        shown = list(live.items())[start : start + size]
        following = self.pages.issue(start + size, self.clock.now) if start + size < len(live) else None
        return {
            "Name": params["Bucket"],
            "Prefix": prefix,
            "Delimiter": delimiter or None,
            "KeyCount": len(shown),
            "MaxKeys": size,
            "IsTruncated": following is not None,
            "NextContinuationToken": following,
            "Contents": [
                {
                    "Key": key,
                    "Size": one.length,
                    "ETag": one.etag,
                    "LastModified": one.modified,
                    "StorageClass": one.storage_class,
                }
                for key, one in shown
                if one is not None
            ]
            or None,
            "CommonPrefixes": [{"Prefix": key} for key, one in shown if one is None] or None,
        }

    def _versions(self, bucket: Bucket, params: dict[str, Any]) -> dict[str, Any]:
        """Everything that was ever written and not deleted by its version; delete markers count."""
        every = [(key, one) for key in sorted(bucket.objects) for one in reversed(bucket.objects[key])]
        after = (params.get("KeyMarker", ""), params.get("VersionIdMarker", ""))
        start = next((place + 1 for place, (key, one) in enumerate(every) if (key, one.id) == after), None)
        if start is None:  # the marker itself was deleted meanwhile: on with the first key behind it
            start = next((place for place, (key, _) in enumerate(every) if key > after[0]), len(every))
        size = min(params.get("MaxKeys", PAGE), self.pages.size)
        shown = every[start : start + size]
        answer: dict[str, Any] = {"Name": params["Bucket"], "IsTruncated": start + size < len(every)}
        if answer["IsTruncated"]:
            answer |= {"NextKeyMarker": shown[-1][0], "NextVersionIdMarker": shown[-1][1].id}
        entries = [(one.deleted, {"Key": key, "VersionId": one.id}) for key, one in shown]
        answer["Versions"] = [entry for deleted, entry in entries if not deleted] or None
        answer["DeleteMarkers"] = [entry for deleted, entry in entries if deleted] or None
        return answer

    def _delete_all(self, bucket: Bucket, params: dict[str, Any]) -> dict[str, Any]:
        """At most 1,000 a call; a key without a version gets a delete marker. What is locked stays, and is told one by one; what is not
        there is no error."""
        wanted = params["Delete"]["Objects"]
        if len(wanted) > PAGE:
            raise Refused("MalformedXML", "The XML you provided was not well-formed or did not validate")
        errors = []
        for one in wanted:
            key, version = one["Key"], one.get("VersionId")
            if key.startswith(bucket.locked):
                errors.append({"Key": key, "VersionId": version, "Code": "AccessDenied", "Message": "Access Denied"})
                continue
            if version is None:
                self._delete(bucket, {"Key": key})
                continue
            bucket.objects[key] = [kept for kept in bucket.objects.get(key, []) if kept.id != version]
            if not bucket.objects[key]:
                del bucket.objects[key]
        return {"Errors": errors or None}
