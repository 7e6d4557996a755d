"""Reads the text of one cell as a value of its column."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from grid_plan import strict
from refusals.wording import plain

NUMBER = re.compile(r"-?([0-9]{1,12}(\.[0-9]{0,20})?|\.[0-9]{1,20})([eE][+-]?[0-9]{1,2})?", re.ASCII)
"""As pandas and spreadsheets write numbers, with a point: 2, 2.0, 1e-05."""
GROUPED = re.compile(r"-?[0-9]+([.,' \u00a0\u202f][0-9]+)+", re.ASCII)
"""With what some languages write between thousands or before decimals."""
THOUSANDS = re.compile(r"-?[1-9][0-9]{0,2}(\.[0-9]{3})+", re.ASCII)
FLAGS = {"true": True, "yes": True, "1": True, "1.0": True, "false": False, "no": False, "0": False, "0.0": False}
"""By lower case. pandas makes numbers of a column of flags where one is missing."""


class Wrong(ValueError):
    """A cell holds something that its column does not take; the message is a problem's second half."""


def read_text(cell: str) -> str:
    return cell


def read_whole(cell: str) -> int:
    if THOUSANDS.fullmatch(cell):
        raise Wrong(f"{plain(cell)} is {cell.partition('.')[0]} in English and {cell.replace('.', '')} in German")
    number = read_number(cell, "a whole number")
    if not number.is_integer():
        raise Wrong(f"{plain(cell)} is not a whole number")
    return int(number)


def read_number(cell: str, what: str = "a number") -> float:
    if not NUMBER.fullmatch(cell):
        hint = " (decimals follow a point, and nothing separates thousands)" if GROUPED.fullmatch(cell) else ""
        raise Wrong(f"{plain(cell)} is not {what}{hint}")
    return float(cell)


def read_flag(cell: str) -> bool:
    if cell.lower() not in FLAGS:
        raise Wrong(f"{plain(cell)} is neither true nor false")
    return FLAGS[cell.lower()]


def read_words(cell: str) -> list[str]:
    return cell.split()


def read_json(kind: type) -> Callable[[str], Any]:
    what = "an object" if kind is dict else "a list"

    def read(cell: str) -> Any:
        try:
            found = strict.loads(cell)
        except ValueError as problem:
            raise Wrong(f"{plain(cell)} is not JSON ({plain(str(problem))})") from None
        if not isinstance(found, kind):
            raise Wrong(f"{plain(cell)} is JSON, but not {what}")
        return found

    return read
