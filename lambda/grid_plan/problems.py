"""Collects what is wrong with a manifest, line by line, into one report that a person can read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from contract.errors import InvalidRequest
from refusals.wording import MOST

DISTINCT = 1000
"""The most different problems that are remembered: more than a person reads closely."""
NAMED = 5
"""The most lines that one problem names."""


@dataclass(slots=True)
class Where:
    """Lines with the same problem."""

    first: list[int] = field(default_factory=list)
    count: int = 0

    def add(self, line: int) -> None:
        if self.first and self.first[-1] == line:  # a sweep makes many trainings of one line
            return
        self.count += 1
        if len(self.first) < NAMED:
            self.first.append(line)

    def __str__(self) -> str:
        if self.count == 1:
            return f"line {self.first[0]}"
        shown, more = [str(line) for line in self.first], self.count - len(self.first)
        last = f"{more:,} more" if more else shown.pop()
        return f"lines {', '.join(shown)} and {last}"


@dataclass(slots=True)
class Report:
    """Collects problems in the order in which they were found; equal problems of several lines become one."""

    general: list[str] = field(default_factory=list)
    """Problems that belong to no line."""
    by_text: dict[str, Where] = field(default_factory=dict)
    left_out: int = 0

    def __bool__(self) -> bool:
        return bool(self.general or self.by_text)

    def add(self, text: str, line: int | None = None) -> None:
        if line is None:
            if text not in self.general:
                self.general.append(text)
        elif text in self.by_text or len(self.by_text) < DISTINCT:
            self.by_text.setdefault(text, Where()).add(line)
        else:
            self.left_out += 1

    def reasons(self) -> Iterator[str]:
        """Yields the reasons, one line each, in the order of the manifest."""
        yield from self.general
        for text, where in sorted(self.by_text.items(), key=lambda one: one[1].first[0]):
            yield f"{where}: {text}"

    def shortened(self, most: int) -> list[str]:
        """Returns the first reasons, up to `most` characters, and how many are left out."""
        told, left, total = list[str](), most, 0
        for reason in self.reasons():
            total += 1
            left -= len(reason) + 3
            if left >= 0:
                told.append(reason)
        unsaid = total - len(told) + self.left_out
        return [*told, f"and {unsaid:,} more"] if unsaid else told

    def refusal(self) -> InvalidRequest:
        """Returns one error for everything; Step Functions keeps 32,768 characters of a cause, and escapes double some of them."""
        count = len(self.general) + len(self.by_text) + self.left_out
        reasons = "" if count == 1 else f" for {count:,} reasons"
        told = [f"- {one}" for one in self.shortened(MOST)]
        return InvalidRequest("\n".join([f"The grid was refused{reasons}; nothing was started.", *told]))
