"""Decides whether a message tells of an execution of ours."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

SECOND = "second"
"""In the event that the cleanup sends to itself: this is the second look, and no third follows."""


class UnreadableMessage(ValueError):
    """Nobody can say whom the message concerns: it is kept and told, by way of the dead-letter queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """An execution of ours has ended, says an event, which may be old."""

    execution: str
    second: bool
    event: dict[str, Any]

    def again(self) -> str:
        """The body of the second message."""
        return json.dumps(self.event | {SECOND: True})


def read(body: str, ours: str) -> Notice | None:
    """The notice of an execution of the machine `ours`, by its name; None for an event that is provably another machine's. Raises
    Unreadable for everything else."""
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
