"""Finds what separates the columns of a CSV manifest."""

from __future__ import annotations

import csv
import re

from grid_plan import cells

SEPARATORS = (",", ";", "\t", "|")
"""In the order in which they are tried. Excel writes semicolons where decimals have a comma."""
SEPARATOR_LINE = re.compile(r'"?sep=.?"?[,;\t|]*', re.IGNORECASE)
"""A first line for Excel, as in `sep=;`. Saving the file again quotes it, or pads it to the width of the table."""


def is_separator_line(text: str) -> bool:
    """Whether a line only names the separator. It decides nothing: some programs keep it and write another separator."""
    return SEPARATOR_LINE.fullmatch(text.rstrip("\r\n")) is not None


def choose_separator(line: str) -> str:
    """Returns the separator by which most cells of the first record are known; a comma where several suit."""
    return max(SEPARATORS, key=lambda one: cells.count_known(_split(line, one)))


def _split(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator), [""])
    except csv.Error:
        return [line]
