"""Small stand-ins for what lies outside a node: S3, CloudWatch Logs, Secrets Manager and the metadata service."""

from __future__ import annotations

import io
import threading
import time
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError

from agent.metadata import Metadata
from localaws.log_batches import judge_batch
from localaws.model import Refused

Fault = Callable[[str, str], Exception | None]


def as_sent(body: Any, options: dict[str, Any]) -> bytes:
    """The bytes of a request. Refuses those that are not what their checksum says."""
    content = body if isinstance(body, bytes) else body.read()
    told = options.get("ChecksumCRC32")
    if told and told != b64encode(zlib.crc32(content).to_bytes(4, "big")).decode():
        raise refusal("BadDigest")
    return bytes(content)


def refusal(code: str, call: str = "Call") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": f"told to answer {code}"}}, call)


class FakeS3:
    """The client calls that `agent.store` makes, over one dictionary; `fault(call, key)` may give an exception to raise."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], bytes] = {}
        self.uploads: dict[tuple[str, str, str], dict[int, bytes]] = {}
        self.meta = SimpleNamespace(events=SimpleNamespace(register=lambda *_, **__: None))
        """A client's: nothing takes over requests of this one."""
        self.calls: list[tuple[str, str]] = []
        self.fault: Fault = lambda _call, _key: None
        self.now: Callable[[], float] = time.time
        self._modified: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()

    def _enter(self, call: str, key: str) -> None:
        self.calls.append((call, key))
        if problem := self.fault(call, key):
            raise problem

    def get_object(self, Bucket: str, Key: str, Range: str = "") -> dict[str, Any]:  # noqa: N803
        self._enter("read" if Range else "get", Key)
        if (Bucket, Key) not in self.objects:
            raise refusal("AccessDenied")  # to whoever may not list the whole bucket
        content = self.objects[Bucket, Key]
        if Range:
            first, last = map(int, Range.removeprefix("bytes=").split("-"))
            if first >= len(content):
                raise refusal("InvalidRange")
            content = content[first : last + 1]
        return {"Body": io.BytesIO(content), "ContentLength": len(content)}

    def put_object(self, Bucket: str, Key: str, Body: Any, **options: Any) -> None:  # noqa: N803
        self._enter("put", Key)
        content = as_sent(Body, options)
        with self._lock:
            if options.get("IfNoneMatch") and (Bucket, Key) in self.objects:
                raise refusal("PreconditionFailed")
            self.objects[Bucket, Key], self._modified[Bucket, Key] = content, self.now()

    def create_multipart_upload(self, Bucket: str, Key: str, **_: Any) -> dict[str, Any]:  # noqa: N803
        self._enter("begin", Key)
        with self._lock:
            name = f"upload-{len(self.calls)}-{len(self.uploads)}"
            self.uploads[Bucket, Key, name], self._modified[Bucket, Key] = {}, self.now()
        return {"UploadId": name}

    def upload_part(self, Bucket: str, Key: str, UploadId: str, PartNumber: int, Body: Any, **options: Any) -> Any:  # noqa: N803
        self._enter("upload", Key)
        if (Bucket, Key, UploadId) not in self.uploads:
            raise refusal("NoSuchUpload")
        self.uploads[Bucket, Key, UploadId][PartNumber] = as_sent(Body, options)
        return {"ETag": f"part-{PartNumber}"}

    def complete_multipart_upload(
        self, Bucket: str, Key: str, UploadId: str, MultipartUpload: Any, MpuObjectSize: int  # noqa: N803
    ) -> None:  # fmt: skip
        self._enter("complete", Key)
        parts = self.uploads.pop((Bucket, Key, UploadId))
        content = b"".join(parts[part["PartNumber"]] for part in MultipartUpload["Parts"])
        if len(content) != MpuObjectSize:
            raise refusal("InvalidRequest")
        self.objects[Bucket, Key] = content

    def abort_multipart_upload(self, Bucket: str, Key: str, UploadId: str) -> None:  # noqa: N803
        self._enter("abort", Key)
        self.uploads.pop((Bucket, Key, UploadId), None)

    def delete_objects(self, Bucket: str, Delete: dict[str, Any]) -> dict[str, Any]:  # noqa: N803
        assert 0 < len(Delete["Objects"]) <= 1000, "S3 takes 1 to 1,000 keys"
        for one in Delete["Objects"]:
            self._enter("delete", one["Key"])
            self.objects.pop((Bucket, one["Key"]), None)
        return {}

    def download_file(self, Bucket: str, Key: str, Filename: str, **_options: Any) -> None:  # noqa: N803
        self._enter("download", Key)
        if (Bucket, Key) not in self.objects:
            raise refusal("403")
        Path(Filename).write_bytes(self.objects[Bucket, Key])

    def copy(self, CopySource: dict[str, str], Bucket: str, Key: str, SourceClient: FakeS3, Config: Any) -> None:  # noqa: N803
        """boto3's: in one call or many."""
        assert Config.multipart_chunksize <= 5 * 1024**3, "S3 copies no larger part"
        self._enter("copy", Key)
        if (CopySource["Bucket"], CopySource["Key"]) not in SourceClient.objects:
            raise refusal("403", "HeadObject")
        content = SourceClient.objects[CopySource["Bucket"], CopySource["Key"]]
        with self._lock:
            self.objects[Bucket, Key], self._modified[Bucket, Key] = content, self.now()

    def get_paginator(self, _name: str) -> FakeS3:
        return self

    def paginate(self, Bucket: str, Prefix: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        """Pages of two, so that nobody reads just the first."""
        self._enter("list", Prefix)
        keys = sorted(key for bucket, key in self.objects if bucket == Bucket and key.startswith(Prefix))
        for start in range(0, max(len(keys), 1), 2):
            page = [
                {"Key": key, "Size": len(self.objects[Bucket, key]), "LastModified": self._date(Bucket, key)}
                for key in keys[start : start + 2]
            ]
            yield {"Contents": page} if keys else {}

    def _date(self, bucket: str, key: str) -> datetime:
        """S3's, in whole seconds. What a test put there itself has been there for ever."""
        return datetime.fromtimestamp(int(self._modified.get((bucket, key), 0)), UTC)

    def sent(self, part: str) -> list[str]:
        """Keys with `part` in them that were uploaded, in order."""
        return [key for call, key in self.calls if call in ("put", "upload") and part in key]


class FakeLogs:
    """CloudWatch Logs: what arrived, and the calls in which it did. `kept_days` is the retention of its log group."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self.kept_days: int | None = None
        self.calls = 0
        self.batches: list[list[Mapping[str, Any]]] = []
        self.streams: list[str] = []
        self.fault: Fault = lambda _call, _key: None

    def create_log_stream(self, logGroupName: str, logStreamName: str) -> None:  # noqa: N803
        if problem := self.fault("create", logGroupName):
            raise problem
        if logStreamName in self.streams:
            raise refusal("ResourceAlreadyExistsException")
        self.streams.append(logStreamName)

    def put_log_events(self, logGroupName: str, logStreamName: str, logEvents: list[dict[str, Any]]) -> Any:  # noqa: N803
        self.calls += 1
        if problem := self.fault("put", logGroupName):
            raise problem
        assert logStreamName in self.streams
        try:
            taken, rejected = judge_batch(logEvents, self._now(), self.kept_days)
        except Refused as problem:
            raise refusal(problem.code, "PutLogEvents") from problem
        if taken:
            self.batches.append(taken)
        return {"rejectedLogEventsInfo": rejected} if rejected else {}

    @property
    def lines(self) -> list[str]:
        return [event["message"] for batch in self.batches for event in batch]


class FakeImds:
    """An instance metadata service, version 2 only: `values` by path, changed while it runs."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values = values
        self.tokens: set[str] = set()
        self.asked: list[str] = []
        self.unanswered = 0
        """So many requests more get no answer."""
        self.lost = dict[str, int]()
        """By path, how many requests more get no answer."""
        imds = self

        class Handler(BaseHTTPRequestHandler):
            def parse_request(self) -> bool:
                imds.unanswered -= 1
                return imds.unanswered < 0 and super().parse_request()

            def do_PUT(self) -> None:
                token = f"token-{len(imds.tokens)}-{time.monotonic_ns()}"
                imds.tokens.add(token)
                self._answer(200, token)

            def do_GET(self) -> None:
                path = self.path.removeprefix("/latest/meta-data/")
                imds.asked.append(path)
                imds.lost[path] = imds.lost.get(path, 0) - 1
                if imds.lost[path] >= 0:
                    self.close_connection = True
                    return
                if self.headers.get("X-aws-ec2-metadata-token") not in imds.tokens:
                    self._answer(401, "")
                elif path in imds.values:
                    self._answer(200, imds.values[path])
                else:
                    self._answer(404, "")

            def _answer(self, status: int, text: str) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    @property
    def metadata(self) -> Metadata:
        return Metadata(self.endpoint)


@contextmanager
def imds(values: dict[str, str]) -> Iterator[FakeImds]:
    service = FakeImds(values)
    thread = threading.Thread(target=service.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield service
    finally:
        service.server.shutdown()
        service.server.server_close()
        thread.join()
