"""SageMaker, S3 and STS over HTTP, as far as a submission meets them; notes when CreateTrainingJob was accepted.

`python -m benchmarks.submission.server` prints its port, then serves until its standard input ends. A process of its own, because
whoever starts the others has to be small: the kernel counts what a process held before its exec as part of its peak memory.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from email.utils import formatdate
from functools import cache
from http.server import ThreadingHTTPServer
from typing import Any

import botocore.session
from botocore.validate import ParamValidator

from benchmarks.served import S3_MISSING, caller, serve
from benchmarks.submission import plan
from benchmarks.submission.plan import ACCOUNT
from localaws.limits import beyond
from localaws.model import Refused
from localaws.plain_http import PlainHandler
from localaws.services.sagemaker_model import CREATE, invalid
from localaws.services.sagemaker_planned import Life, Planned

BEGIN, SEEN = "/begin/", "/seen"
"""What the race itself asks for: a new account, whose every answer comes so many milliseconds late; what one run did."""
EXISTS = (
    "<Error><Code>PreconditionFailed</Code><Message>At least one of the pre-conditions did not hold</Message></Error>"
)


@dataclass(slots=True)
class Seen:
    """What one run asked for."""

    calls: dict[str, int] = field(default_factory=dict)
    before: int = 0
    """Calls that came before CreateTrainingJob."""
    request: dict[str, Any] = field(default_factory=dict)
    """Of the CreateTrainingJob that was accepted; empty where none was."""
    accepted: float = 0.0
    """The moment at which it was, by `time.monotonic`, which all processes of a machine share."""


class Server(ThreadingHTTPServer):
    """One account; every answer comes `late` seconds after the request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.begin({}, 0.0)

    def begin(self, objects: Mapping[str, bytes], late: float) -> None:
        """A new account with nothing but these objects (by `bucket/key`)."""
        self.objects, self.late, self.seen = dict(objects), late, Seen()
        self.sagemaker = Planned(plan.REGION, time, ACCOUNT)
        self.sagemaker.life = lambda _: Life(starting_s=0, downloading_s=0, training_s=0, uploading_s=0)


class Handler(PlainHandler):
    """S3 (path style), SageMaker (JSON) and STS."""

    wbufsize, disable_nagle_algorithm = -1, True
    """An answer goes out whole: headers that went ahead would keep the body waiting 40 ms for the client's acknowledgement."""
    server: Server

    def do_GET(self) -> None:
        if self.path.startswith(BEGIN):
            return self._begin(float(self.path.removeprefix(BEGIN)) / 1000)
        if self.path == SEEN:
            return self.answer(200, json.dumps(asdict(self.server.seen)).encode())
        self._count("GetObject")
        body = self.server.objects.get(self._place())
        if body is None:
            return self._say(404, S3_MISSING.encode())
        return self._say(200, body, **{"ETag": '"0"', "Last-Modified": formatdate(usegmt=True)})

    def do_PUT(self) -> None:
        self._count("PutObject")
        body, place = self.body(), self._place()
        if self.headers.get("If-None-Match") and place in self.server.objects:
            return self._say(412, EXISTS.encode())
        self.server.objects[place] = body
        return self._say(200, b"", ETag='"0"')

    def do_POST(self) -> None:
        body = self.body()
        name = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
        self._count(name or "GetCallerIdentity")
        if not name:
            return self._say(200, caller(ACCOUNT).encode())
        asked = json.loads(body)
        try:
            return self._sagemaker(name, asked)
        except Refused as refused:
            return self._say(400, json.dumps({"__type": refused.code, "message": refused.message}).encode())

    def _begin(self, late: float) -> None:
        """A new account; answers with the request that is wanted, and with the child's environment."""
        self.server.begin(plan.objects(), late)
        told = {"wanted": plan.wanted(), "variables": plan.variables(), "region": plan.REGION}
        self.answer(200, json.dumps(told).encode())

    def _sagemaker(self, name: str, asked: dict[str, Any]) -> None:
        """What does not fit SageMaker's model is refused, as is a second submission. Raises Refused."""
        seen, creates = self.server.seen, name == CREATE
        if creates and (problem := "one was created before" if seen.request else unfit(asked)):
            raise invalid(problem)
        answer = json.dumps(self.server.sagemaker.answer(name, asked), default=datetime.timestamp).encode()
        if not creates:
            return self._say(200, answer)
        seen.request, seen.before = asked, sum(seen.calls.values()) - 1
        time.sleep(self.server.late)
        seen.accepted = time.monotonic()
        return self.answer(200, answer)

    def _place(self) -> str:
        return self.path.partition("?")[0].strip("/")

    def body(self) -> bytes:
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
            self.wfile.flush()
        return super().body()

    def _count(self, name: str) -> None:
        calls = self.server.seen.calls
        calls[name] = calls.get(name, 0) + 1

    def _say(self, status: int, body: bytes, **headers: str) -> None:
        """As late as AWS would."""
        time.sleep(self.server.late)
        self.answer(status, body, headers)


@cache
def _model() -> Any:
    return botocore.session.Session().get_service_model("sagemaker").operation_model("CreateTrainingJob").input_shape


def unfit(request: Mapping[str, Any]) -> str:
    """What of CreateTrainingJob's arguments botocore's model of SageMaker does not take; empty where they fit."""
    return ParamValidator().validate(request, _model()).generate_report() or beyond(_model(), request)


def main() -> None:
    _model()
    with Server() as server:
        serve(server)


if __name__ == "__main__":
    main()
