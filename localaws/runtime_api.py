"""One warm process of one function; it uses the Lambda Runtime API, as AWS's own runtime client does."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from localaws.peers import is_own
from localaws.plain_http import PlainHandler
from localaws.processors import spent

INIT_S = 10.0
"""Seconds that Lambda gives an init; a slower one starts again within the first invocation and its time-out. Measured in processor
time at the function's share, whatever else runs on the computer."""
INIT_LIMIT_S = 60.0
"""Limit of an init by the clock: two cores that everything shares need longer than AWS."""
STOP_POLL_S = 0.05
"""How late a worker's server notices its end; with Python's half second, nine functions took four seconds to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of an invocation."""

    payload: bytes
    """The function's JSON, or the error's: errorMessage, errorType, stackTrace."""
    failed: bool = False
    alive: bool = True
    """Whether the worker can take another invocation."""

    @classmethod
    def error(cls, kind: str, message: str, *, alive: bool = True) -> Outcome:
        """Returns a failure that Lambda itself reports."""
        return cls(payload=json.dumps({"errorType": kind, "errorMessage": message}).encode(), failed=True, alive=alive)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One event on its way to a worker."""

    request: str
    arn: str
    payload: bytes
    timeout_s: float


class Worker:
    """A process that handles one invocation at a time. It ends with `stop()`, with a time-out, or by itself."""

    def __init__(
        self,
        command: list[str],
        variables: Mapping[str, str],
        folder: Path,
        on_line: Callable[[str], None],
        *,
        share: float = 1.0,
    ) -> None:
        """`share` is the function's part of a processor."""
        self._inbox: queue.Queue[Invocation | None] = queue.Queue()
        self._outcomes: queue.Queue[Outcome | None] = queue.Queue()
        self._ready = threading.Event()
        self._init_error: bytes | None = None
        self._on_line, self._share = on_line, share
        self._init_s = 0.0
        self._api = _Server(("127.0.0.1", 0), _handler(self))
        self._api.daemon_threads = True
        threading.Thread(target=self._api.serve_forever, args=(STOP_POLL_S,), name="runtime-api", daemon=True).start()
        self._process = subprocess.Popen(
            command,
            env={**variables, "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self._api.server_port}"},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # A terminal's interrupt is for the rehearsal, which ends its workers itself.
            start_new_session=True,
        )
        threading.Thread(target=self._read, name="worker-output", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def invoke(self, invocation: Invocation) -> Outcome:
        """Sends the event and waits for the end of the invocation; time-outs and deaths are outcomes as well."""
        self._ready.wait(INIT_LIMIT_S)
        if not self._ready.is_set() or not self.alive:
            self.stop()
            return self._broken(invocation)
        before = self._least_s() - self._begun_anew_s()
        self._inbox.put(invocation)
        try:
            outcome = self._outcomes.get(timeout=invocation.timeout_s)
        except queue.Empty:
            return self._timed_out(invocation, f"Task timed out after {invocation.timeout_s:.2f} seconds")
        if self._least_s() - before > invocation.timeout_s:
            return self._timed_out(
                invocation, f"Task timed out after {invocation.timeout_s:.2f} seconds, at its share of a processor"
            )
        return outcome or self._broken(invocation)

    def stop(self) -> None:
        """Kills the process and waits for it."""
        self._process.kill()
        self._process.wait()
        self._inbox.put(None)
        self._api.shutdown()
        self._api.server_close()

    def _begun_anew_s(self) -> float:
        """Returns what the first invocation spends on repeating an init that was too slow."""
        again_s, self._init_s = self._init_s if self._init_s > INIT_S else 0.0, 0.0
        return again_s

    def _least_s(self) -> float:
        """Returns the seconds that Lambda would have needed at least since the process began: its processor time divided by its share."""
        try:
            return spent(self._process.pid) / self._share
        except OSError:  # it has just ended
            return 0.0

    def _timed_out(self, invocation: Invocation, reason: str) -> Outcome:
        self.stop()
        self._on_line(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {invocation.request} {reason}")
        message = f"RequestId: {invocation.request} Error: {reason}"
        return Outcome.error("Sandbox.Timedout", message, alive=False)

    def _broken(self, invocation: Invocation) -> Outcome:
        if self._init_error:
            return Outcome(payload=self._init_error, failed=True, alive=False)
        status = self._process.poll()
        reason = (
            f"exit status {status}" if status is not None else f"no answer within {INIT_LIMIT_S:.0f} s of its start"
        )
        message = f"RequestId: {invocation.request} Error: Runtime exited with error: {reason}"
        return Outcome.error("Runtime.ExitError", message, alive=False)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._on_line(line.decode(errors="replace").rstrip("\n"))
        self._process.wait()
        self._ready.set()
        self._outcomes.put(None)

    # the API's side

    def next(self) -> Invocation | None:
        if not self._ready.is_set():
            self._init_s = self._least_s()
        self._ready.set()
        return self._inbox.get()

    def done(self, outcome: Outcome) -> None:
        self._outcomes.put(outcome)

    def init_failed(self, document: bytes) -> None:
        self._init_error = document


class _Server(ThreadingHTTPServer):
    """On Lambda nobody but the function reaches its runtime API; here other users of the computer would take its events."""

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002
        return is_own(request)


def _handler(worker: Worker) -> type[BaseHTTPRequestHandler]:
    class Api(PlainHandler):
        def do_GET(self) -> None:
            invocation = worker.next()
            if invocation is None:
                self.close_connection = True
                return
            deadline = time.time() + invocation.timeout_s
            headers = {
                "Content-Type": "application/json",
                "Lambda-Runtime-Aws-Request-Id": invocation.request,
                "Lambda-Runtime-Deadline-Ms": str(int(deadline * 1000)),
                "Lambda-Runtime-Invoked-Function-Arn": invocation.arn,
            }
            self.answer(200, invocation.payload, headers)

        def do_POST(self) -> None:
            body = self.body()
            if self.path.endswith("/init/error"):
                worker.init_failed(body)
            else:
                worker.done(Outcome(payload=body, failed=self.path.endswith("/error")))
            self.answer(202)

    return Api
