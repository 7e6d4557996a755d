"""One row of the table of refused searches, and the words that many rows share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grid_plan import limits
from searches.request import ALLOWED, ENTRIES, PARAMETER
from tools.refusals.grids.yard import LIMITS
from tools.refusals.refusal import Refusal
from tools.refusals.searches.yard import LEAST, execution

LINE = limits.allowed(LIMITS)
FIELDS = ", ".join(ALLOWED)
EMPTY = "allowed: a lowest number below the highest (one value belongs in template.hyperparameters)"
NO_CONDITION = f"is not here: every trial has all parameters, whatever the others are (no conditional spaces); allowed: {PARAMETER}"


class Row(Refusal):
    """A refusal of a search; what is given are fields over the smallest one."""

    least = LEAST

    def __init__(
        self, what: str, *says: str, given: Any = None, name: str = "tune-7", shown: str = "", **more: Any
    ) -> None:
        """`name` is that of the execution, `shown` what the page has in the place of an input that is too long to read."""
        super().__init__(what, {} if given is None else given, *says, **more)
        self.run: Mapping[str, str] = execution(name)
        self.shown = shown

    def reasons(self) -> list[str]:
        return self.completed(_allowed)


def _allowed(reason: str) -> str:
    """Finds what a field may be: of a line where it is one of the template or of a place."""
    where = reason.split(": ")[0].split(".")
    if where[0] == "template" and len(where) > 1:
        return LINE[where[1]]
    if where[0] == "places" and len(where) > 2:
        return LINE[where[2]]
    return ENTRIES.get(where[0], ALLOWED[where[0]]) if len(where) > 1 else ALLOWED[where[0]]
