"""S3: EventBridge notifications of buckets that CloudFormation made, events in AWS's form, and short pages."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from moto.s3 import notifications
from moto.s3.models import FakeBucket, FakeTableStorageBucket, S3Backend
from moto.s3.utils import compute_checksum

if TYPE_CHECKING:
    from localaws.recorder import Call, Environ
    from localaws.server import LocalAws


def install(aws: LocalAws) -> None:
    """Sends object events to the bus, and limits ListObjectsV2 to the conditions' page size."""
    _bucket_properties(aws)
    _events(aws)
    aws.wrap(S3Backend, "list_objects", _under_the_prefix)
    aws.patch(S3Backend, "copy_object", _checksum_of_the_whole(S3Backend.copy_object))
    aws.recorder.interceptors.append(lambda call, environ: _short_pages(call, environ, aws.conditions.page_size))


def _bucket_properties(aws: LocalAws) -> None:
    create, update = FakeBucket.create_from_cloudformation_json, FakeBucket.update_from_cloudformation_json

    def complete(bucket: Any, resource: Any) -> Any:
        wanted = resource["Properties"].get("NotificationConfiguration", {}) if "Properties" in resource else {}
        if str(wanted.get("EventBridgeConfiguration", {}).get("EventBridgeEnabled", "")).lower() == "true":
            bucket.set_notification_configuration({"EventBridgeConfiguration": {}})
        return bucket

    def created(resource_name: str, cloudformation_json: Any, account_id: str, region_name: str, **rest: Any) -> Any:
        return complete(
            create(resource_name, cloudformation_json, account_id, region_name, **rest), cloudformation_json
        )

    def updated(original: Any, new_name: str, cloudformation_json: Any, account_id: str, region_name: str) -> Any:
        return complete(update(original, new_name, cloudformation_json, account_id, region_name), cloudformation_json)

    aws.patch(FakeBucket, "create_from_cloudformation_json", staticmethod(created))
    aws.patch(FakeBucket, "update_from_cloudformation_json", staticmethod(updated))


def _under_the_prefix(original: Any, self: Any, bucket: Any, prefix: str | None, *given: Any, **named: Any) -> Any:
    """Shows moto only the keys under the prefix: it looks at every key of the bucket, several times as long."""
    if not prefix or isinstance(bucket, FakeTableStorageBucket):
        return original(self, bucket, prefix, *given, **named)
    found = {name: bucket.keys.get(name) for name in list(bucket.keys) if name.startswith(prefix)}
    under = SimpleNamespace(keys={name: key for name, key in found.items() if key is not None})
    return original(self, under, prefix, *given, **named)


def _checksum_of_the_whole(original: Any) -> Any:
    """Computes a copy's checksum over its one part; moto copies the checksum of the source's parts, which matches no bytes."""

    def copy_object(
        self: Any, src_key: Any, dest_bucket_name: str, dest_key_name: str, *given: Any, **named: Any
    ) -> None:
        original(self, src_key, dest_bucket_name, dest_key_name, *given, **named)
        made = self.get_object(dest_bucket_name, dest_key_name)
        if made.checksum_value and src_key.checksum_type == "COMPOSITE":
            value = compute_checksum(made.value, algorithm=made.checksum_algorithm)
            made.checksum_value = value.decode() if isinstance(value, bytes) else value

    return copy_object


def _events(aws: LocalAws) -> None:
    reasons = {"Put": "PutObject", "Post": "POST Object", "Copy": "CopyObject", "Delete": "DeleteObject"}
    counter = itertools.count(1)

    def emit(account_id: str, bucket: Any, event_name: str, key: Any) -> None:  # noqa: ARG001
        name = str(getattr(event_name, "value", event_name))
        kind = name.rsplit(":", 1)[-1]
        thing = {
            "key": key.name,
            "size": key.size,
            "etag": key.etag.replace('"', ""),
            "sequencer": f"{next(counter):016X}",
        }
        if bucket.is_versioned:
            thing["version-id"] = key.version_id
        detail: dict[str, Any] = {
            "version": "0",
            "bucket": {"name": bucket.name},
            "object": thing,
            "request-id": f"{next(counter):016X}",
            "requester": aws.account,
            "source-ip-address": "127.0.0.1",
            "reason": reasons.get(kind, kind),
        }
        if "Removed" in name:
            detail["object"].pop("size")
            detail["deletion-type"] = "Permanently Deleted" if kind == "Delete" else "Delete Marker Created"
        aws.emit("aws.s3", notifications._detail_type(name), detail, [bucket.arn], bucket.region_name)

    aws.patch(notifications, "_send_event_bridge_message", emit)


def _short_pages(call: Call, environ: Environ, page_size: int) -> None:
    """Shortens pages for every caller: nothing may depend on getting a thousand keys at once."""
    if call.name != "s3:ListObjectsV2":
        return
    query = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    query["max-keys"] = str(min(int(query.get("max-keys", page_size)), page_size))
    environ["QUERY_STRING"] = urlencode(query)
    if "RAW_URI" in environ:
        environ["RAW_URI"] = environ["REQUEST_URI"] = f"{environ['RAW_URI'].split('?')[0]}?{environ['QUERY_STRING']}"
