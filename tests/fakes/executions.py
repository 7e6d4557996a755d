"""Executions of Step Functions: listed late, described at once, stopped, redriven, and told of by events."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from localaws.model import Pages, Refused, Tokens
from tests.fakes.clock import Clock
from tests.fakes.wire import Call

Publish = Callable[[str, str, dict[str, Any]], None]
MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:yard-train"
GRID_MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:yard-grid"
SEARCH_MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:yard-search"
BUILD_MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:yard-build"


@dataclass
class Execution:
    """One execution of a machine; what runs inside of it is the tests' own."""

    arn: str
    machine: str
    started_at: float
    input: str = "{}"
    status: str = "RUNNING"
    ended_at: float | None = None
    error: str | None = None
    cause: str | None = None
    output: str | None = None

    @property
    def name(self) -> str:
        return self.arn.rpartition(":")[2]

    def listed(self) -> dict[str, Any]:
        return {
            "executionArn": self.arn,
            "stateMachineArn": self.machine,
            "name": self.name,
            "status": self.status,
            "startDate": _time(self.started_at),
            "stopDate": _time(self.ended_at),
        }

    def described(self) -> dict[str, Any]:
        return self.listed() | {"input": self.input, "error": self.error, "cause": self.cause, "output": self.output}


def _time(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, timezone.utc)


@dataclass
class Executions:
    """All executions of an account's machines."""

    clock: Clock
    publish: Publish = lambda *_: None
    machines: set[str] = field(default_factory=lambda: {MACHINE, GRID_MACHINE, SEARCH_MACHINE, BUILD_MACHINE})
    known: dict[str, Execution] = field(default_factory=dict)
    began: Callable[[Execution], None] = lambda _: None
    """What happens in an execution that StartExecution began."""
    stopped: Callable[[Execution], None] = lambda _: None
    """What follows a stop of one that ran."""
    limits: dict[str, Tokens] = field(default_factory=dict)
    """Operation to its bucket of calls."""
    lag_s: float = 1.0
    """How long a listing does not know a new execution."""
    pages: Pages = field(default_factory=lambda: Pages(size=1000, error="InvalidToken"))
    _number: itertools.count[int] = field(default_factory=itertools.count)

    def begin(self, name: str, machine: str = MACHINE) -> Execution:
        """For tests: an execution starts now."""
        arn = f"{machine.replace(':stateMachine:', ':execution:')}:{name}"
        self.known[arn] = Execution(arn, machine, self.clock.now)
        return self.known[arn]

    def end(self, execution: Execution, status: str, error: str | None = None, cause: str | None = None) -> None:
        """It ends now, and an event says so; best effort, as all events."""
        execution.status, execution.ended_at = status, self.clock.now
        execution.error, execution.cause = error, cause
        self.publish("aws.states", "Step Functions Execution Status Change", self.detail(execution))

    def redrive(self, execution: Execution) -> None:
        """It runs again, under the same ARN."""
        execution.status, execution.ended_at, execution.error, execution.cause = "RUNNING", None, None, None

    @staticmethod
    def detail(execution: Execution) -> dict[str, Any]:
        """As in the event of its end; times are in milliseconds."""
        return {
            "executionArn": execution.arn,
            "stateMachineArn": execution.machine,
            "name": execution.name,
            "status": execution.status,
            "startDate": int(execution.started_at * 1000),
            "stopDate": None if execution.ended_at is None else int(execution.ended_at * 1000),
            "error": execution.error,
            "cause": execution.cause,
        }

    def answer(self, call: Call) -> dict[str, Any]:
        if (bucket := self.limits.get(call.operation)) and not bucket.take(self.clock.now):
            raise Refused("ThrottlingException", "Rate exceeded")
        match call.operation:
            case "ListExecutions":
                return self._list(call.params)
            case "DescribeExecution":
                return self._found(call.params["executionArn"]).described()
            case "StopExecution":
                return self._stop(call.params)
            case "StartExecution":
                return self.start(call.params)
        raise Refused("UnknownOperationException", f"The fake has no {call.name}")

    def _found(self, arn: str) -> Execution:
        if arn.count(":") != 7 or ":execution:" not in arn:
            raise Refused("InvalidArn", f"Invalid Arn: '{arn}'")
        if arn not in self.known:
            raise Refused("ExecutionDoesNotExist", f"Execution Does Not Exist: '{arn}'")
        return self.known[arn]

    def _machine(self, arn: str) -> str:
        if arn not in self.machines:
            raise Refused("StateMachineDoesNotExist", f"State Machine Does Not Exist: '{arn}'")
        return arn

    def _list(self, params: dict[str, Any]) -> dict[str, Any]:
        """The newest first, in pages of at most 1,000. A token belongs to a listing that may have changed meanwhile."""
        machine, now = self._machine(params["stateMachineArn"]), self.clock.now
        wanted = params.get("statusFilter")
        seen = [
            one
            for one in self.known.values()
            if one.machine == machine and now >= one.started_at + self.lag_s and wanted in {None, one.status}
        ]
        seen.sort(key=lambda one: -one.started_at)
        page, following = self.pages.cut(seen, params.get("nextToken"), params.get("maxResults") or 100, now)
        return {"executions": [one.listed() for one in page], "nextToken": following}

    def _stop(self, params: dict[str, Any]) -> dict[str, Any]:
        """Stopping what is over is not an error, and changes nothing."""
        execution = self._found(params["executionArn"])
        if execution.status == "RUNNING":
            self.end(execution, "ABORTED", params.get("error"), params.get("cause"))
            self.stopped(execution)
        return {"stopDate": _time(execution.ended_at)}

    def start(self, params: dict[str, Any]) -> dict[str, Any]:
        """A name is unique for 90 days; the same name with the same input on a running execution answers that one."""
        machine, name = self._machine(params["stateMachineArn"]), params.get("name") or f"auto-{next(self._number)}"
        arn, given = f"{machine.replace(':stateMachine:', ':execution:')}:{name}", params.get("input", "{}")
        before = self.known.get(arn)
        if before is not None and (before.status != "RUNNING" or before.input != given):
            raise Refused("ExecutionAlreadyExists", f"Execution Already Exists: '{arn}'")
        made = before or self.begin(name, machine)
        made.input = given
        if before is None:
            self.began(made)
        return {"executionArn": arn, "startDate": _time(made.started_at)}
