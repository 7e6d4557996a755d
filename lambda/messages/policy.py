"""Decides whether a message tells of an execution of ours."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

SECOND = "second"
"""A key of the event that the cleanup sends itself for its second look; no third follows."""


class UnreadableMessage(ValueError):
    """The message names no execution that can be told: it goes to the dead-letter queue, which raises an alarm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """An event that says that an execution of ours has ended. It may be old."""

    execution: str
    second: bool
    event: dict[str, Any]

    def again(self) -> str:
        """The body of the second message."""
        return json.dumps(self.event | {SECOND: True})


def write_unheard(machine: str, execution: str) -> str:
    """Returns the body of a message about an end of which no event told (ARNs), in the form of the event. It counts as the second one: so
    long after the end no launcher launches any more."""
    return json.dumps({"detail": {"stateMachineArn": machine, "executionArn": execution}, SECOND: True})


def read(body: str, ours: str) -> Notice | None:
    """The notice, where the event is about the state machine named `ours`; None where it is provably about another machine.

    Raises UnreadableMessage for everything else."""
    try:
        event = json.loads(body)
    except ValueError as problem:
        raise UnreadableMessage(f"the message is not JSON: {problem}") from None
    detail = event.get("detail") if isinstance(event, dict) else None
    if not isinstance(detail, dict):
        raise UnreadableMessage("the message is not an event: it has no detail")
    machine, execution = detail.get("stateMachineArn"), detail.get("executionArn")
    if not isinstance(machine, str) or not isinstance(execution, str) or ":stateMachine:" not in machine:
        raise UnreadableMessage("the event names no state machine or no execution")
    if machine.rpartition(":")[2] != ours:
        return None
    start = machine.replace(":stateMachine:", ":execution:") + ":"
    if not execution.startswith(start) or not re.fullmatch(r"[^:/]+", execution.removeprefix(start)):
        raise UnreadableMessage(f"{execution} is not an execution of {machine}")
    return Notice(execution=execution, second=event.get(SECOND) is True, event=event)
