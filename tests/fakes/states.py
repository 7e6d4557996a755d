"""Step Functions: its executions, and task tokens, which are answered once, beaten while they live, dead after that."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from localaws.model import Refused
from tests.fakes.clock import Clock
from tests.fakes.executions import Executions, Publish
from tests.fakes.wire import Call

OUTPUT_BYTES = 256 * 1024


@dataclass
class Wait:
    """A task that waits for its token."""

    token: str
    heartbeat_s: float
    beaten_at: float
    until: float
    """TimeoutSeconds, as a time."""
    output: dict[str, Any] | None = None
    error: tuple[str, str] | None = None
    """Error and cause."""
    closed: bool = False
    """The task is over without an answer: its execution was stopped, or went on."""
    answered: Callable[[], None] = lambda: None
    """Called when an answer came."""

    def timed_out(self, now: float) -> str:
        """The error of a wait whose time is over, empty while it waits."""
        if self.output is not None or self.error is not None:
            return ""
        if now >= self.until:
            return "States.Timeout"
        return "States.HeartbeatTimeout" if now >= self.beaten_at + self.heartbeat_s else ""

    def waits(self, now: float) -> bool:
        return not (self.closed or self.output is not None or self.error is not None or self.timed_out(now))


@dataclass
class States:
    """All tokens and executions of an account."""

    clock: Clock
    publish: Publish = lambda *_: None
    waits: dict[str, Wait] = field(default_factory=dict)
    _number: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.executions = Executions(self.clock, self.publish)

    def wait(self, *, heartbeat_s: float, timeout_s: float) -> Wait:
        """What entering a `waitForTaskToken` state does: each entry, a retry too, has a new token."""
        now = self.clock.now
        wait = Wait(f"AQCFAKE{next(self._number):016d}", heartbeat_s, now, now + timeout_s)
        self.waits[wait.token] = wait
        return wait

    def answer(self, call: Call) -> dict[str, Any]:
        """A token nobody ever issued is InvalidToken; one that was answered, timed out or closed is TaskTimedOut; one whose
        execution is long gone is TaskDoesNotExist (forgotten: see `forget`). Whoever holds a token may answer it."""
        if not call.operation.startswith("SendTask"):
            return self.executions.answer(call)
        params, token = call.params, call.params["taskToken"]
        if token in self.waits and self.waits[token] is _GONE:
            raise Refused("TaskDoesNotExist", "Task does not exist")
        wait = self.waits.get(token)
        if wait is None:
            raise Refused("InvalidToken", "Invalid Token: 'Invalid token'")
        if call.operation == "SendTaskSuccess":
            self._check_output(params["output"])
        if not wait.waits(self.clock.now):
            raise Refused("TaskTimedOut", "Task Timed Out: 'Provided task does not exist anymore'")
        match call.operation:
            case "SendTaskSuccess":
                wait.output = json.loads(params["output"])
                wait.answered()
            case "SendTaskFailure":
                wait.error = (params.get("error", "States.TaskFailed"), params.get("cause", ""))
                wait.answered()
            case "SendTaskHeartbeat":
                wait.beaten_at = self.clock.now
            case _:
                raise Refused("UnknownOperationException", f"The fake has no {call.name}")
        return {}

    def forget(self, token: str) -> None:
        """The execution and its history are gone (90 days)."""
        self.waits[token] = _GONE

    @staticmethod
    def _check_output(output: str) -> None:
        try:
            json.loads(output)
        except ValueError:
            raise Refused("InvalidOutput", "Invalid output: not JSON") from None
        if len(output.encode()) > OUTPUT_BYTES:
            raise Refused("InvalidOutput", "Output exceeds 256 KiB")


_GONE = Wait("", 0.0, 0.0, 0.0, closed=True)
