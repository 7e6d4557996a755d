"""Small stand-ins for what lies outside a node: S3, DynamoDB, CloudWatch Logs, Secrets Manager and the metadata service."""

from __future__ import annotations

import hashlib
import io
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from agent.aws import Aws
from agent.metadata import Metadata

Fault = Callable[[str, str], Exception | None]


def refusal(code: str, call: str = "Call") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": f"told to answer {code}"}}, call)


class FakeS3:
    """The client calls that `agent.store` makes, over one dictionary; `fault(call, key)` may give an exception to raise."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], bytes] = {}
        self.calls: list[tuple[str, str]] = []
        self.fault: Fault = lambda _call, _key: None
        self._lock = threading.Lock()

    def _enter(self, call: str, key: str) -> None:
        self.calls.append((call, key))
        if problem := self.fault(call, key):
            raise problem

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        self._enter("get", Key)
        if (Bucket, Key) not in self.objects:
            raise refusal("NoSuchKey")
        return {"Body": io.BytesIO(self.objects[Bucket, Key])}

    def put_object(self, Bucket: str, Key: str, Body: bytes, **options: Any) -> None:  # noqa: N803
        self._enter("put", Key)
        digest = options.get("ChecksumSHA256")
        if digest and digest != b64encode(hashlib.sha256(Body).digest()).decode():
            raise refusal("BadDigest")
        with self._lock:
            if options.get("IfNoneMatch") and (Bucket, Key) in self.objects:
                raise refusal("PreconditionFailed")
            self.objects[Bucket, Key] = Body

    def delete_object(self, Bucket: str, Key: str) -> None:  # noqa: N803
        self._enter("delete", Key)
        self.objects.pop((Bucket, Key), None)

    def upload_file(self, Filename: str, Bucket: str, Key: str, **_options: Any) -> None:  # noqa: N803
        self._enter("upload", Key)
        self.objects[Bucket, Key] = Path(Filename).read_bytes()

    def download_file(self, Bucket: str, Key: str, Filename: str, **_options: Any) -> None:  # noqa: N803
        self._enter("download", Key)
        if (Bucket, Key) not in self.objects:
            raise refusal("404")
        Path(Filename).write_bytes(self.objects[Bucket, Key])

    def get_paginator(self, _name: str) -> FakeS3:
        return self

    def paginate(self, Bucket: str, Prefix: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        """Pages of two, so that nobody reads just the first."""
        self._enter("list", Prefix)
        keys = sorted(key for bucket, key in self.objects if bucket == Bucket and key.startswith(Prefix))
        for start in range(0, max(len(keys), 1), 2):
            yield {"Contents": [{"Key": key} for key in keys[start : start + 2]]} if keys else {}

    def sent(self, part: str) -> list[str]:
        """Keys with `part` in them that were uploaded, in order."""
        return [key for call, key in self.calls if call in ("put", "upload") and part in key]


class FakeTable:
    """DynamoDB's two calls that `agent.table` makes, over one dictionary; `fault(call, sort key)` may give an exception to raise.
    Answers are dated by `clock`, cut to whole seconds."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, str], dict[str, Any]] = {}
        self.calls: list[tuple[str, str]] = []
        self.written: list[dict[str, Any]] = []
        """Every item that was ever written, in order: what the table's stream shows."""
        self.fault: Fault = lambda _call, _sort: None
        self.lost: Fault = lambda _call, _sort: None
        """As `fault`, once the call has been done."""
        self.unseen = set[str]()
        """Sort keys whose items only a consistent read shows yet."""
        self.clock: Callable[[], float] = time.time
        self._lock = threading.Lock()

    def get_item(self, TableName: str, Key: dict[str, Any], ConsistentRead: bool) -> dict[str, Any]:  # noqa: N803
        key = self._enter("get", TableName, Key)
        found = self.items.get(key) if ConsistentRead or key[1] not in self.unseen else None
        return self._answer("get", key[1], {} if found is None else {"Item": found})

    def put_item(
        self,
        TableName: str,  # noqa: N803
        Item: dict[str, Any],  # noqa: N803
        ConditionExpression: str,  # noqa: N803
        ExpressionAttributeValues: dict[str, Any],  # noqa: N803
    ) -> dict[str, Any]:
        key = self._enter("put", TableName, Item)
        assert ConditionExpression == "attribute_not_exists(pk) OR version < :v"
        if size_of(Item) > 400 * 1024:
            raise self._dated(refusal("ValidationException", "PutItem"))
        with self._lock:
            there = self.items.get(key)
            if there is not None and int(there["version"]["N"]) >= int(ExpressionAttributeValues[":v"]["N"]):
                raise self._dated(refusal("ConditionalCheckFailedException", "PutItem"))
            self.items[key] = Item
            self.written.append(Item)
        return self._answer("put", key[1], {})

    def _enter(self, call: str, table: str, key: dict[str, Any]) -> tuple[str, str]:
        assert table == "yard-state"
        sort = key["sk"]["S"]
        self.calls.append((call, sort))
        if problem := self.fault(call, sort):
            raise self._dated(problem)
        return key["pk"]["S"], sort

    def _answer(self, call: str, sort: str, answer: dict[str, Any]) -> dict[str, Any]:
        if problem := self.lost(call, sort):
            raise problem
        return {**answer, **self._date()}

    def _dated(self, problem: Exception) -> Exception:
        if isinstance(problem, ClientError):
            problem.response.update(self._date())  # type: ignore[typeddict-item]
        return problem

    def _date(self) -> dict[str, Any]:
        return {"ResponseMetadata": {"HTTPHeaders": {"date": formatdate(int(self.clock()), usegmt=True)}}}


def size_of(item: dict[str, Any]) -> int:
    """Bytes of an item as DynamoDB counts them: names and values, two digits of a number a byte, and one."""

    def of(value: dict[str, Any]) -> int:
        ((kind, what),) = value.items()
        if kind == "N":
            return len(what.replace(".", "")) // 2 + 2
        return len(what if kind == "B" else what.encode())

    return sum(len(name.encode()) + of(value) for name, value in item.items())


class FakeLogs:
    """CloudWatch Logs: what arrived, and the calls in which it did."""

    def __init__(self) -> None:
        self.batches: list[list[dict[str, Any]]] = []
        self.streams: list[str] = []
        self.fault: Fault = lambda _call, _key: None

    def create_log_stream(self, logGroupName: str, logStreamName: str) -> None:  # noqa: N803
        if problem := self.fault("create", logGroupName):
            raise problem
        if logStreamName in self.streams:
            raise refusal("ResourceAlreadyExistsException")
        self.streams.append(logStreamName)

    def put_log_events(self, logGroupName: str, logStreamName: str, logEvents: list[dict[str, Any]]) -> None:  # noqa: N803
        if problem := self.fault("put", logGroupName):
            raise problem
        assert logStreamName in self.streams
        self.batches.append(list(logEvents))

    @property
    def lines(self) -> list[str]:
        return [event["message"] for batch in self.batches for event in batch]


class FakeAws(Aws):
    """One account, one S3 for every region."""

    def __init__(self) -> None:
        super().__init__()
        self.s3, self.table, self.logs, self.secrets = FakeS3(), FakeTable(), FakeLogs(), dict[str, str]()
        self.without_credentials = 0
        """So many looks find none yet."""

    def has_credentials(self) -> bool:
        self.without_credentials -= 1
        return self.without_credentials < 0

    def client(self, service: str, region: str) -> Any:  # noqa: ARG002
        return {"s3": self.s3, "dynamodb": self.table, "logs": self.logs}[service]

    def secret(self, region: str, arn: str) -> str:  # noqa: ARG002
        if arn not in self.secrets:
            raise refusal("ResourceNotFoundException")
        return self.secrets[arn]


class FakeImds:
    """An instance metadata service, version 2 only: `values` by path, changed while it runs."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values = values
        self.tokens: set[str] = set()
        self.asked: list[str] = []
        self.unanswered = 0
        """So many requests more get no answer."""
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
