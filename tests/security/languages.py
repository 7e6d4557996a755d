"""Sets of keys as patterns, and whether two of them have a key in common: exactly, and with the key as the proof."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

ANY = frozenset(string.ascii_letters + string.digits + "/._-#:@ ")
"""Letters that stand for all: whatever a pattern tells apart is among them."""
OF_JOB, OF_JOB_FIRST = (
    frozenset(string.ascii_letters + string.digits + "._-"),
    frozenset(string.ascii_letters + string.digits + "_-"),
)
"""Letters of a job's id, and of its beginning (names.JOB_PATTERN)."""


@dataclass(frozen=True, slots=True)
class Part:
    """One letter of `letters`, or as many as one likes."""

    letters: frozenset[str]
    many: bool = False

    @property
    def regex(self) -> str:
        return f"[{re.escape(''.join(sorted(self.letters)))}]" + ("*" if self.many else "")


Pattern = tuple[Part, ...]
"""A set of keys."""
JOB: Pattern = (Part(OF_JOB_FIRST), Part(OF_JOB, many=True))
GRID: Pattern = (Part(OF_JOB_FIRST), Part(OF_JOB_FIRST, many=True))
NUMBER: Pattern = (Part(frozenset(string.digits)), Part(frozenset(string.digits), many=True))
HEX: Pattern = (Part(frozenset("0123456789abcdef")),)
NAME: Pattern = (Part(ANY - {"/"}), Part(ANY - {"/"}, many=True))
REST: Pattern = (Part(ANY, many=True),)


def literal(text: str) -> Pattern:
    return tuple(Part(frozenset({letter})) for letter in text)


def of_policy(text: str) -> Pattern:
    """A pattern as IAM reads it: `*` is any text, slashes too, and `?` one letter."""
    found: Pattern = ()
    for letter in text:
        found += {"*": REST, "?": (Part(ANY),)}.get(letter, literal(letter))
    return found


def other_than(name: str) -> list[Pattern]:
    """Every job's id but `name`, in patterns."""
    found = [literal(name[:length]) for length in range(1, len(name))]
    for length, letter in enumerate(name):
        first = OF_JOB if length else OF_JOB_FIRST
        found.append((*literal(name[:length]), Part(first - {letter}), Part(OF_JOB, many=True)))
    return [*found, (*literal(name), Part(OF_JOB), Part(OF_JOB, many=True))]


def common(one: Pattern, other: Pattern) -> str | None:
    """A shortest key that both patterns have; None where they have none."""
    seen, ahead = {(0, 0)}, [(0, 0, "")]
    for i, j, key in ahead:
        if i == len(one) and j == len(other):
            return key
        for place in _next(one, other, i, j):
            if place[:2] not in seen:
                seen.add(place[:2])
                ahead.append((place[0], place[1], key + place[2]))
    return None


def _next(one: Pattern, other: Pattern, i: int, j: int) -> Iterator[tuple[int, int, str]]:
    """Places after one step, with the letter that it adds; a part that stands for many may be over at any time."""
    if i < len(one) and one[i].many:
        yield i + 1, j, ""
    if j < len(other) and other[j].many:
        yield i, j + 1, ""
    if i < len(one) and j < len(other) and (both := one[i].letters & other[j].letters):
        letter = min(both, key=lambda each: (not each.isalnum(), each))
        yield i + (not one[i].many), j + (not other[j].many), letter


def fits(pattern: Sequence[Part], key: str) -> bool:
    return re.fullmatch("".join(part.regex for part in pattern), key) is not None
