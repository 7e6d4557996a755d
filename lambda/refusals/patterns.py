"""Reads the tree of a regular expression: the shortest line that it fits, and in how many ways an engine could read a line by it.

The standard library's own parser makes the tree. What looks around or back counts as if it were always true, so there may be fewer ways
than are counted, and never more.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Iterable, Iterator
from typing import Any

_parser: Any = re._parser  # type: ignore[attr-defined]
HOLE = "\0"
"""Stands for the first group."""
MOST_SAMPLE = 1_000
"""Characters of a line: an expression may ask for a letter a million times."""
MOST_STEPS = 1_000_000
"""Of counting ways, about a quarter of a second."""
FILLERS = " =:_-/x0" + string.ascii_letters + string.digits + string.punctuation
"""Characters for a place where an expression allows several, in this order."""
ONE = {_parser.LITERAL, _parser.NOT_LITERAL, _parser.ANY, _parser.IN}
REPEATS = {_parser.MAX_REPEAT, _parser.MIN_REPEAT, _parser.POSSESSIVE_REPEAT}
LOOKS = {_parser.ASSERT, _parser.ASSERT_NOT, _parser.GROUPREF, _parser.GROUPREF_EXISTS}
CATEGORIES = {
    _parser.CATEGORY_DIGIT: re.compile(r"\d"),
    _parser.CATEGORY_NOT_DIGIT: re.compile(r"\D"),
    _parser.CATEGORY_SPACE: re.compile(r"\s"),
    _parser.CATEGORY_NOT_SPACE: re.compile(r"\S"),
    _parser.CATEGORY_WORD: re.compile(r"\w"),
    _parser.CATEGORY_NOT_WORD: re.compile(r"\W"),
}


def parse(expression: str) -> Any:
    """Returns the tree. Raises re.error, RecursionError or OverflowError."""
    return _parser.parse(expression)


def write_line(tree: Any, *, is_behind: bool = False) -> str:
    """Returns a short line that the expression fits, with HOLE in the place of the first group. `is_behind`: that group came before it.

    What must stand before the group, or behind it, is written too, unless the line has it there."""
    line, ahead = "", ""
    for op, value in tree:
        is_behind = is_behind or HOLE in line
        if op is _parser.ASSERT:
            text, is_before = write_line(value[1], is_behind=is_behind), value[0] < 0
            if is_before and not is_behind and not line.endswith(text):
                line += text
            elif not is_before and (is_behind or HOLE in text):
                ahead = ahead or text
            continue
        text = _write(op, value, is_behind=is_behind)
        if text and ahead:
            line, ahead = line if text.startswith(ahead) else line + ahead, ""
        line += text
    return line + ahead


def looks_around(tree: Any) -> bool:
    """Whether it depends on more than the characters in their order, so that `write_line` may miss."""
    return any(op in LOOKS for op, _ in _list_items(tree))


def list_nested(tree: Any) -> Iterator[Any]:
    """Yields each repeat, as a tree, of something that may be read in several ways itself."""
    for op, value in _list_items(tree):
        if (
            op in REPEATS
            and value[1] > 1
            and any(one in REPEATS or one is _parser.BRANCH for one, _ in _list_items(value[2]))
        ):
            yield [(op, value)]


def list_characters(tree: Any) -> set[str]:
    """Returns characters, one at least for every item that takes characters."""
    found = set[str]()
    for op, value in _list_items(tree):
        if op is _parser.IN and not _is_negated(value):
            found |= {_find_first(*one) for one in value}
        elif op in ONE:
            found |= {_choose(op, value)} - {""}
    return found


def has_more_ways(tree: Any, line: str, most: float, *, anywhere: bool = True) -> bool:
    """Whether an engine that finds nothing may come to a place of the line more than `most` times, or so often that counting takes too
    long. `anywhere`: it begins at every character, not at the first alone."""
    start = [1.0 if anywhere or not place else 0.0 for place in range(len(line) + 1)]
    try:
        _Ways(line, most).pass_all(tree, start)
    except _TooMany:
        return True
    return False


def may_find(tree: Any, line: str) -> bool:
    """Whether an engine may find something in the line; not if that takes too long to tell."""
    try:
        return any(_Ways(line, math.inf).pass_all(tree, [1.0] * (len(line) + 1)))
    except _TooMany:
        return False


class _TooMany(Exception):
    """There are more than the most, or they take too long to count."""


class _Ways:
    """Counts. Ways are numbers by place: how often the engine can be there."""

    def __init__(self, line: str, most: float) -> None:
        self._line, self._most, self._steps, self._count = line, most, 0, 0.0

    def pass_all(self, tree: Any, ways: list[float]) -> list[float]:
        """Returns where the engine can be behind all items."""
        for op, value in tree:
            if not any(ways):
                break
            ways = self._pass(op, value, ways)
            self._add_up(sum(ways))
        return ways

    def _add_up(self, count: float) -> None:
        self._count += count
        self._steps += len(self._line)
        if self._count > self._most or self._steps > MOST_STEPS:
            raise _TooMany

    def _pass(self, op: Any, value: Any, ways: list[float]) -> list[float]:
        if op in ONE:
            step = (one if _fits(op, value, letter) else 0.0 for one, letter in zip(ways, self._line, strict=False))
            return [0.0, *step]
        if op in REPEATS:
            return self._repeat(value[0], value[1], value[2], ways)
        if op is _parser.BRANCH:
            return self._add(self.pass_all(branch, ways) for branch in value[1])
        if op is _parser.GROUPREF_EXISTS:
            return self._add(self.pass_all(branch or [], ways) for branch in value[1:])
        if op is _parser.SUBPATTERN:
            return self.pass_all(value[3], ways)
        if op is _parser.ATOMIC_GROUP:
            return self.pass_all(value, ways)
        if op in LOOKS and op is not _parser.GROUPREF:
            self.pass_all(value[1], ways)
        return ways

    def _repeat(self, least: int, most: int, body: Any, ways: list[float]) -> list[float]:
        """An engine goes on with no repeat that has taken no character."""
        empty = self.pass_all(body, [0.0] * (len(ways) - 1) + [1.0])[-1]
        if empty:
            self._add_up(least * sum(ways))
        found = [0.0] * len(ways) if least and not empty else ways
        for number in range(1, min(most, len(ways)) + 1):
            after = self.pass_all(body, ways)
            ways = [one - empty * before for one, before in zip(after, ways, strict=True)]
            if not any(ways):
                break
            if number >= least or empty:
                found = self._add([found, ways])
        return found

    def _add(self, every: Iterable[list[float]]) -> list[float]:
        return [sum(one) for one in zip(*every, strict=True)]


def _list_items(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yields all items, those within others too."""
    for op, value in tree:
        yield op, value
        if op in REPEATS:
            yield from _list_items(value[2])
        elif op is _parser.BRANCH:
            for branch in value[1]:
                yield from _list_items(branch)
        elif op is _parser.SUBPATTERN:
            yield from _list_items(value[3])
        elif op is _parser.ATOMIC_GROUP:
            yield from _list_items(value)
        elif op in (_parser.ASSERT, _parser.ASSERT_NOT):
            yield from _list_items(value[1])
        elif op is _parser.GROUPREF_EXISTS:
            for branch in value[1:]:
                yield from _list_items(branch or [])


def _write(op: Any, value: Any, *, is_behind: bool) -> str:
    if op in ONE:
        return _choose(op, value)
    if op is _parser.SUBPATTERN:
        return HOLE if value[0] == 1 else write_line(value[3], is_behind=is_behind)
    if op is _parser.ATOMIC_GROUP:
        return write_line(value, is_behind=is_behind)
    if op is _parser.GROUPREF_EXISTS:
        return write_line(value[1], is_behind=is_behind)
    if op is _parser.BRANCH:
        texts = [write_line(one, is_behind=is_behind) for one in value[1]]
        return next((one for one in texts if HOLE in one), texts[0])
    if op in REPEATS:
        text = write_line(value[2], is_behind=is_behind)
        return text if HOLE in text else (text * min(value[0], MOST_SAMPLE))[: MOST_SAMPLE + 1]
    return ""


def _choose(op: Any, value: Any) -> str:
    """Returns a character that the item takes."""
    if op is _parser.LITERAL:
        return chr(value)
    found = next((one for one in FILLERS if _takes(op, value, one)), "")
    return _find_first(*value[0]) if not found and op is _parser.IN and not _is_negated(value) else found


def _find_first(op: Any, value: Any) -> str:
    if op is _parser.LITERAL:
        return chr(value)
    if op is _parser.RANGE:
        return chr(value[0])
    return next(one for one in FILLERS if CATEGORIES[value].match(one))


def _fits(op: Any, value: Any, letter: str) -> bool:
    """Whether an item takes a character, in capitals or not."""
    return any(_takes(op, value, one) for one in {letter, letter.lower(), letter.upper()} if len(one) == 1)


def _takes(op: Any, value: Any, letter: str) -> bool:
    if op is _parser.ANY:
        return True
    if op in (_parser.LITERAL, _parser.NOT_LITERAL):
        return (ord(letter) == value) is (op is _parser.LITERAL)
    return _is_negated(value) is not any(_is_in(one, what, letter) for one, what in value)


def _is_negated(value: Any) -> bool:
    """Whether a class takes what is not in it."""
    return value[0][0] is _parser.NEGATE


def _is_in(op: Any, value: Any, letter: str) -> bool:
    if op is _parser.LITERAL:
        return bool(ord(letter) == value)
    if op is _parser.RANGE:
        return bool(value[0] <= ord(letter) <= value[1])
    return op is _parser.CATEGORY and CATEGORIES[value].match(letter) is not None
