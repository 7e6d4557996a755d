"""SageMaker, S3 and STS over HTTP, as far as a submission meets them; notes when CreateTrainingJob came and when it was answered."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from benchmarks.submission.plan import ACCOUNT

MISSING = "<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>"
EXISTS = (
    "<Error><Code>PreconditionFailed</Code><Message>At least one of the pre-conditions did not hold</Message></Error>"
)
CALLER = (
    '<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>'
    f"<Arn>arn:aws:iam::{ACCOUNT}:user/benchmark</Arn><UserId>benchmark</UserId><Account>{ACCOUNT}</Account>"
    "</GetCallerIdentityResult></GetCallerIdentityResponse>"
)


@dataclass(slots=True)
class Seen:
    """What one run asked for. Moments are `time.monotonic`, which all processes of a machine share."""

    calls: Counter[str] = field(default_factory=Counter)
    request: dict[str, Any] = field(default_factory=dict)
    came: float = 0.0
    answered: float = 0.0


class Server(ThreadingHTTPServer):
    """One account; every answer comes `late` seconds after the request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.begin({}, 0.0)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def begin(self, objects: Mapping[str, bytes], late: float) -> None:
        """A new account with nothing but these objects (by `bucket/key`)."""
        self.objects, self.late, self.seen = dict(objects), late, Seen()


class Handler(BaseHTTPRequestHandler):
    """S3 (path style), SageMaker (JSON) and STS."""

    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        """Counted, not printed."""

    def do_GET(self) -> None:
        self._count("GetObject")
        body = self.server.objects.get(self._place())
        if body is None:
            return self._say(404, MISSING.encode())
        return self._say(200, body, **{"ETag": '"0"', "Last-Modified": formatdate(usegmt=True)})

    def do_PUT(self) -> None:
        self._count("PutObject")
        body, place = self._body(), self._place()
        if self.headers.get("If-None-Match") and place in self.server.objects:
            return self._say(412, EXISTS.encode())
        self.server.objects[place] = body
        return self._say(200, b"", ETag='"0"')

    def do_POST(self) -> None:
        came, body = time.monotonic(), self._body()
        name = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
        self._count(name or "GetCallerIdentity")
        if not name:
            return self._say(200, CALLER.encode())
        asked = json.loads(body)
        if name == "CreateTrainingJob":
            self._say(200, json.dumps({"TrainingJobArn": self._arn(asked["TrainingJobName"])}).encode())
            self.server.seen.request, self.server.seen.came = asked, came
            self.server.seen.answered = time.monotonic()
            return None
        if name == "DescribeTrainingJob":
            return self._say(200, json.dumps(self._described(asked["TrainingJobName"])).encode())
        return self._say(400, json.dumps({"__type": "UnknownOperationException", "message": name}).encode())

    def _arn(self, name: str) -> str:
        region = self.headers["Authorization"].partition("Credential=")[2].split("/")[2]
        return f"arn:aws:sagemaker:{region}:{ACCOUNT}:training-job/{name}"

    def _described(self, name: str) -> dict[str, Any]:
        """Over already."""
        now = time.time()
        return {
            "TrainingJobName": name,
            "TrainingJobArn": self._arn(name),
            "TrainingJobStatus": "Completed",
            "SecondaryStatus": "Completed",
            "ModelArtifacts": {"S3ModelArtifacts": "s3://bytes/model.tar.gz"},
            "CreationTime": now - 60,
            "TrainingStartTime": now - 50,
            "TrainingEndTime": now,
            "BillableTimeInSeconds": 50,
        }

    def _place(self) -> str:
        return self.path.partition("?")[0].strip("/")

    def _body(self) -> bytes:
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _count(self, name: str) -> None:
        self.server.seen.calls[name] += 1

    def _say(self, status: int, body: bytes, **headers: str) -> None:
        time.sleep(self.server.late)
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
