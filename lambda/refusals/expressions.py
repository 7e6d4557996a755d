"""Judges the regular expressions of metrics: those that cannot give a value, and those that misread what trainings print.

The second is tried on lines that the expression itself makes: what stands around its first group, as short as it may be, with printed
numbers in the place of the group. In how many ways they may be read is counted before, because an engine may need years for one line.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from itertools import islice

from contract.metric_values import NUMBER
from refusals.patterns import (
    HOLE,
    MOST_SAMPLE,
    has_more_ways,
    list_characters,
    list_nested,
    looks_around,
    may_find,
    parse,
    write_line,
)
from refusals.wording import plain

PRINTED = ("0.25", "12.0", "-0.25", "7.1e-05", "1e-05", "2.3026e+00", "1.5e+20", "nan", "inf", "-inf")
"""What Python, PyTorch and TensorFlow print of floats."""
MOST_WAYS = 1e6
"""An expression is not tried on a line that it can read in more ways: so many take a tenth of a second."""
RUN = 64
"""So many equal characters are nothing unusual in a log, as in a bar, a rule or a digest."""
HOPELESS_WAYS = 1e12
"""Hours."""
MOST_CHARACTERS = 20
"""Of an expression, each of which is tried as such a run."""
MOST_SLOW = 3
"""Of these, so many are looked at further, each for up to half a second."""
SHOWN = 2
"""Lines of a kind that a warning names."""
MAY_BE = f"one of Python's, with the value in its first group, as in loss={NUMBER}"


@lru_cache(1024)
def find_fault(expression: str) -> str:
    """Says why no value can be read by an expression, as the second half of a problem; empty where one can."""
    said = plain(expression)
    try:
        groups = re.compile(expression).groups
        hopeless = _find_hopeless(expression)
    except (re.error, RecursionError, OverflowError) as problem:
        return f"{said} is no regular expression: {problem}; allowed: {MAY_BE}"
    if not groups:
        return f"{said} has no group, which would say where the value stands; allowed: {MAY_BE}"
    if "\n" in expression or "\r" in expression:
        return f"{said} holds a line end, which SageMaker does not take; allowed: {MAY_BE}"
    if hopeless:
        return f"{said} {hopeless}; allowed: {MAY_BE}"
    return ""


def _find_hopeless(expression: str) -> str:
    """Says of which character the expression cannot read many in a row, and why; empty where there is none."""
    tree = parse(expression)
    for nested in list_nested(tree):
        for letter in sorted(list_characters(nested))[:MOST_CHARACTERS]:
            if has_more_ways(nested, letter * RUN, HOPELESS_WAYS, anywhere=False):
                return f"repeats a repeat, and {_say_hours(letter)}"
    letters = sorted(list_characters(tree))[:MOST_CHARACTERS]
    slow = (letter for letter in letters if has_more_ways(tree, letter * RUN, HOPELESS_WAYS))
    for letter in islice(slow, MOST_SLOW):
        if not may_find(tree, letter * RUN):
            return f"has too many repeats in a row, and {_say_hours(letter)}"
    return ""


def _say_hours(letter: str) -> str:
    return f"needs hours for a line with {RUN} times {plain(letter)!r}"


@lru_cache(1024)
def find_misreading(expression: str) -> str:
    """Says which printed numbers an expression without a fault misreads, as the second half of a warning. Empty where it reads all of
    them, or cannot be tried."""
    tree, pattern = parse(expression), re.compile(expression)
    before, _, after = write_line(tree).partition(HOLE)
    wrong, missed = list[str](), list[str]()
    for number in PRINTED:
        line = f"{before}{number}{after}"
        if len(line) > MOST_SAMPLE or has_more_ways(tree, line, MOST_WAYS):
            return ""
        found = pattern.search(line)
        value = _read(found[1] if found else None)
        if value is None:
            missed.append(f'"{plain(line)}"')
        elif value != float(number) and not (math.isnan(value) and number == "nan"):
            wrong.append(f'"{plain(line)}" as {value:g}')
    if not wrong and (not missed or (len(missed) == len(PRINTED) and looks_around(tree))):
        return ""
    said = [f"reads {' and '.join(wrong[:SHOWN])}"] if wrong else []
    if missed:
        lines = ", ".join([*missed[:SHOWN], *missed[SHOWN:][-1:]])
        said.append(f"finds no number in {lines}, so that an earlier value would count in its place")
    advice = f"after the words before the number, {NUMBER} reads all of them"
    return f"{plain(expression)} {', and '.join(said)}; {advice}"


def _read(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
