"""Reads strict JSON: rejects NaN, infinite numbers, duplicate names and halves of surrogate pairs."""

from __future__ import annotations

import json
from typing import Any

from grid_plan.spellings import CLOSING, OPENING
from refusals.texts import find_half
from refusals.wording import plain


def loads(text: str) -> Any:
    """Returns the value of a text. Raises ValueError that says in a few words what is wrong."""
    try:
        found = json.loads(text, parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_once)
        half = find_half(found) if "\\u" in text else None
    except json.JSONDecodeError as problem:
        is_quote = text[problem.pos : problem.pos + 1] in (*OPENING, *CLOSING)
        what = "a typographic quote in the place of a straight one" if is_quote else problem.msg
        raise ValueError(f"{what} at place {problem.pos + 1}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if half is not None:
        raise ValueError(
            f"{plain(half)} holds half of a surrogate pair" if half else "it holds half of a surrogate pair"
        )
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{plain(text)} is too large a number")
    return number


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{plain(twice)} appears twice")
    return found
