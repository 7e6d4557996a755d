"""The values of a line's metrics: the regular expression that reads one out of a log, and what the last one says of a training."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

NUMBER = (
    "(?:[A-z.]*[a-eg-mo-z][0-9]*[(]|<tf.*numpy=(?:[a-z.]*[a-eg-mo-z][0-9]*[(])?)?[ -(Z-^]*"
    "([-+]?(?:(?:[0-9]+(?:[,_][0-9]+)*[.]?[0-9]*|[.][0-9]+)(?:[Ee][-+]?[0-9]+)?|(?:[Nn][Aa][Nn]|[Ii][Nn][Ff])[A-Za-z]*))"
)
"""Reads every float that Python, NumPy, PyTorch and TensorFlow print, out of `tensor(0.5)` and `'0.5'` too. Its first part passes over
what stands around the number, and its group is the number. 1,234.5 is read whole, so that no float can be made of it, and never as 1.

It has neither backslashes nor quotes, so that JSON, CSV and Python have the same text, and nothing but what the expressions of Python
and Java read alike: no look-ahead, and `Z-^` for a bracket in a class. `nan(ind)` is no call: the name of one ends with neither n nor f.
"""


MOST = 1e300
"""No value of a metric is as large."""
DIVERGED = ("nan", "inf", "-inf")
"""What a metric is in the place of a finite number, as Python writes it."""


def write_expression(metric: str) -> str:
    """Returns the expression for a training that prints `metric=0.5`."""
    return re.sub(r"[][\\^$*+?{}()|]", ".", metric) + f"={NUMBER}"


def describe_value(value: float) -> str:
    """Says why a metric whose last value this is has none; empty for a number that documents can hold."""
    if not math.isfinite(value):
        return f"its last value is {value}"
    return f"its last value is {value}, beyond {MOST:g}" if abs(value) > MOST else ""


def describe_values(values: Mapping[str, float]) -> dict[str, str]:
    """Returns, for each metric whose last value is no such number, why it has none."""
    return {name: problem for name, one in values.items() if (problem := describe_value(one))}


def keep_values(values: Mapping[str, float]) -> dict[str, float]:
    """Returns the metrics that have a value: JSON has neither NaN nor infinity, and neither says how good a training is."""
    return {name: one for name, one in values.items() if not describe_value(one)}
