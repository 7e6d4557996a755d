"""A CloudFormation that waits for the answers of custom resources, over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aws.cloudformation import LARGEST


class CloudFormation(ThreadingHTTPServer):
    """Takes answers at a signed address, on this machine alone."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.answers: list[dict[str, Any]] = []
        self.types: list[str | None] = []
        self.refusals = 0
        """How many answers still meet a 503."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/stack?X-Amz-Signature=a%2Fb"

    def request(
        self, kind: str, properties: dict[str, Any], *, stack: str, number: int = 1, resource: str = "Custom::Thing"
    ) -> dict[str, Any]:
        """What the function behind a custom resource of that stack is sent."""
        return {
            "RequestType": kind,
            "ResponseURL": self.url,
            "StackId": f"arn:aws:cloudformation:eu-central-1:123456789012:stack/{stack}/1",
            "RequestId": f"7f3b1c2d-0000-4000-8000-{number:012d}",
            "LogicalResourceId": "Thing",
            "ResourceType": resource,
            "ResourceProperties": {"ServiceToken": "arn", **properties},
        }


class _Answers(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        there = self.server
        assert isinstance(there, CloudFormation)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        there.refusals -= 1
        if there.refusals >= 0:
            self.send_error(503)
            return
        assert self.path == "/stack?X-Amz-Signature=a%2Fb"
        assert len(body) <= LARGEST
        there.types.append(self.headers["Content-Type"])
        there.answers.append(json.loads(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def listening() -> Iterator[CloudFormation]:
    with CloudFormation() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()
