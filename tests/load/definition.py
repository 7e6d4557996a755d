"""Runs the definition that the Workflow stack synthesises, on the virtual clock: its own states, retries, catches and JSONata.

It knows what this machine uses: tasks of Lambda with and without a token, choices, a pause, and two ends. Events are counted as AWS
writes them into the history; every state and every retry is a transition, as AWS bills them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cache
from typing import Any

from jsonata import Jsonata

from localaws.services.jsonata import evaluate
from tests.fakes.aws import Aws
from tests.fakes.executions import MACHINE
from tests.fakes.functions import Outcome
from tests.fakes.states import Wait
from tests.properties.execution import FUNCTION_OF
from tools.synthesis import synthesise_once

MOST_EVENTS = 25_000
"""Of an execution's history; the next one ends it: docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html"""
LONGEST_PAUSE_S = 99_999_999
"""Seconds of a Wait: docs.aws.amazon.com/step-functions/latest/dg/state-wait.html"""
HOP_S = 0.05
"""From one state to the next."""
FINAL = {"Succeed": "SUCCEEDED", "Fail": "FAILED"}


@cache
def synthesised() -> dict[str, Any]:
    """The Train machine of cdk.json's deployment."""
    return synthesise_once().machine


@dataclass
class Interpreted:
    """One execution of a definition. `status` is empty while it runs."""

    id: str
    aws: Aws
    invoke: Callable[[str, dict[str, Any]], Outcome]
    definition: Mapping[str, Any]
    request: Mapping[str, Any]
    state: str = ""
    status: str = ""
    problem: tuple[str, str] | None = None
    """Error and cause of a failed execution."""
    transitions: int = 0
    history: list[str] = field(default_factory=list)
    """The types of the events, in order."""
    variables: dict[str, Any] = field(default_factory=dict)
    _entered_at: str = ""
    _used: dict[int, int] = field(default_factory=dict)
    """How often each retrier of the state was used."""
    _wait: Wait | None = None
    _chance: random.Random = field(default_factory=lambda: random.Random(0))

    def start(self) -> None:
        self._began = self._stamp()
        self.history.append("ExecutionStarted")
        self._enter(self.definition["StartAt"], self.request)

    def entered(self, state: str) -> int:
        """How often the execution entered a state."""
        return self._entries.get(state, 0)

    def __post_init__(self) -> None:
        self._entries: dict[str, int] = {}
        self._began = ""

    # States

    def _enter(self, name: str, given: Any) -> None:
        self.state, self._input, self._entered_at = name, given, self._stamp()
        self._used.clear()
        self._entries[name] = self._entries.get(name, 0) + 1
        self.transitions += 1
        one = self.definition["States"][name]
        kind = one["Type"]
        self._note(f"{kind}StateEntered")
        action = {"Task": self._task, "Choice": self._choose, "Wait": self._pause}.get(kind, self._end)
        self.aws.clock.at(self.aws.clock.now + HOP_S, lambda: action(one))

    def _leave(self, kind: str, assigned: Mapping[str, Any], to: str, given: Any, **states: Any) -> None:
        """Assigns all variables at once, from the values before."""
        self._note(f"{kind}StateExited")
        self.variables |= {name: self._value(wanted, **states) for name, wanted in assigned.items()}
        self._enter(to, given)

    def _end(self, one: Mapping[str, Any]) -> None:
        if one["Type"] == "Fail":
            self.problem = (self._value(one["Error"]), self._value(one["Cause"]))
        else:
            self._value(one["Output"])
            self._note("SucceedStateExited")
        self.status = FINAL[one["Type"]]
        self._note("ExecutionSucceeded" if self.status == "SUCCEEDED" else "ExecutionFailed")

    def _choose(self, one: Mapping[str, Any]) -> None:
        for choice in one["Choices"]:
            if self._value(choice["Condition"]) is True:
                return self._leave("Choice", choice.get("Assign", {}), choice["Next"], self._input)
        return self._leave("Choice", {}, one["Default"], self._input)

    def _pause(self, one: Mapping[str, Any]) -> None:
        seconds = self._value(one["Seconds"])
        assert isinstance(seconds, int), seconds
        assert 0 <= seconds <= LONGEST_PAUSE_S, seconds
        self.aws.clock.at(
            self.aws.clock.now + seconds, lambda: self._leave("Wait", one.get("Assign", {}), one["Next"], self._input)
        )

    def _task(self, one: Mapping[str, Any]) -> None:
        """One try."""
        self._note("TaskScheduled")
        self._note("TaskStarted")
        by_token, clock = one["Resource"].endswith(".waitForTaskToken"), self.aws.clock
        limit_s = self._value(one["TimeoutSeconds"])
        context: dict[str, Any] = {}
        wait = None
        if by_token:
            wait = self._wait = self.aws.states.wait(heartbeat_s=one["HeartbeatSeconds"], timeout_s=limit_s)
            wait.answered = lambda: clock.at(clock.now + HOP_S, lambda: self._watch(one, wait))
            context["Task"] = {"Token": wait.token}
        payload = self._value(one["Arguments"]["Payload"], context=context)
        began = clock.now
        outcome = self.invoke(FUNCTION_OF[self.state], payload)
        assert clock.now - began <= limit_s, f"{self.state} took {clock.now - began} s"
        if wait is not None and self._wait is not wait:
            return None
        if outcome.error:
            if wait is not None:
                if not wait.waits(clock.now):
                    return self._watch(one, wait)
                wait.closed = True
            return self._failed(one, "TaskFailed", outcome.error, json.dumps({"errorMessage": outcome.cause}))
        if wait is None:
            return self._done(one, {"Payload": json.loads(json.dumps(outcome.value))})
        self._note("TaskSubmitted")
        return self._watch(one, wait)

    def _watch(self, one: Mapping[str, Any], wait: Wait) -> None:
        if self._wait is not wait or wait.closed:
            return
        clock = self.aws.clock
        if wait.output is not None:
            self._wait = None
            self._done(one, wait.output)
        elif (late := wait.timed_out(clock.now)) or wait.error is not None:
            wait.closed = True
            error, cause = wait.error or (late, "")
            self._failed(one, "TaskTimedOut" if late else "TaskFailed", error, cause)
        else:
            at = max(clock.now + HOP_S, min(wait.until, wait.beaten_at + wait.heartbeat_s))
            clock.at(at, lambda: self._watch(one, wait))

    def _done(self, one: Mapping[str, Any], result: Any) -> None:
        self._note("TaskSucceeded")
        output = self._value(one["Output"], result=result) if "Output" in one else result
        self._leave("Task", one.get("Assign", {}), one["Next"], output, result=result)

    def _failed(self, one: Mapping[str, Any], event: str, error: str, cause: str) -> None:
        """The first retrier that fits, as often as it may; then the first catcher."""
        self._note(event)
        for place, retrier in enumerate(one.get("Retry", [])):
            if not _fits(retrier, error):
                continue
            used = self._used.get(place, 0)
            if used < retrier["MaxAttempts"]:
                self._used[place] = used + 1
                self.transitions += 1
                pause = min(
                    retrier.get("IntervalSeconds", 1) * retrier.get("BackoffRate", 2.0) ** used,
                    retrier.get("MaxDelaySeconds", float("inf")),
                )
                if retrier.get("JitterStrategy") == "FULL":
                    pause = self._chance.uniform(0.0, pause)
                return self.aws.clock.at(self.aws.clock.now + pause, lambda: self._task(one))
            break
        catcher = next(one for one in one["Catch"] if _fits(one, error))
        told = {"Error": error, "Cause": cause}
        return self._leave("Task", catcher.get("Assign", {}), catcher["Next"], told, errorOutput=told)

    # Expressions, and the history

    def _value(self, wanted: Any, **states: Any) -> Any:
        if isinstance(wanted, dict):
            return {name: self._value(one, **states) for name, one in wanted.items()}
        if isinstance(wanted, list):
            return [self._value(one, **states) for one in wanted]
        if not (isinstance(wanted, str) and wanted.startswith("{%")):
            return wanted
        tried = {"EnteredTime": self._entered_at, "Name": self.state, "RetryCount": sum(self._used.values())}
        known: dict[str, Any] = {
            "Execution": {"Id": self.arn, "Name": self.id, "StartTime": self._began},
            "State": tried,
        }
        found = {"input": self._input, **states, "context": known | states.get("context", {})}
        now = int(self.aws.clock.now * 1000)
        virtual = {"millis": Jsonata.JLambda(lambda: now)}
        return evaluate(wanted[2:-2].strip(), {**self.variables, **virtual, "states": found})

    @property
    def arn(self) -> str:
        return f"{MACHINE.replace(':stateMachine:', ':execution:')}:{self.id}"

    def _note(self, event: str) -> None:
        assert len(self.history) < MOST_EVENTS, "the history is full"
        self.history.append(event)

    def _stamp(self) -> str:
        moment = datetime.fromtimestamp(self.aws.clock.now, timezone.utc)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fits(one: Mapping[str, Any], error: str) -> bool:
    named = one["ErrorEquals"]
    return error in named or "States.ALL" in named or ("States.TaskFailed" in named and error != "States.Timeout")
