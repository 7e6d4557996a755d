"""Questions how an execution goes on that was started by itself: messages of the functions to the starter."""

from __future__ import annotations

import json
from dataclasses import dataclass

CHECK = "check"
"""A key of the messages that the functions send themselves: how an execution that was started by itself goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Asks how an execution goes on."""

    execution: str
    number: int = 1
    """How often it was asked, this time included."""

    def write(self) -> str:
        return json.dumps({CHECK: {"execution": self.execution, "number": self.number}})

    def again(self) -> Check:
        return Check(execution=self.execution, number=self.number + 1)
