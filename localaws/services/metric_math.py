"""Evaluates alarms: one value per metric and period, metric math over them, and the verdict that includes missing values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import cache

Values = Sequence[float | None]
"""One value per period, oldest first; None for a period without data."""
EXTRA = 2
"""Further periods that CloudWatch reads when some of an alarm's own have no data."""
OK, ALARM, NO_DATA = "OK", "ALARM", "INSUFFICIENT_DATA"
STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "Sum": sum,
    "Maximum": max,
    "Minimum": min,
    "Average": lambda values: sum(values) / len(values),
    "SampleCount": len,
}
OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "GreaterThanThreshold": lambda value, threshold: value > threshold,
    "GreaterThanOrEqualToThreshold": lambda value, threshold: value >= threshold,
    "LessThanThreshold": lambda value, threshold: value < threshold,
    "LessThanOrEqualToThreshold": lambda value, threshold: value <= threshold,
}
_OVER: Mapping[str, Callable[[Sequence[float]], float]] = {"SUM": sum, "MAX": max, "MIN": min}
_BETWEEN: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda one, other: one + other,
    ast.Sub: lambda one, other: one - other,
    ast.Mult: lambda one, other: one * other,
}


def evaluate(expression: str, known: Mapping[str, Values]) -> Values:
    """Evaluates FILL with a number; SUM, MAX and MIN over a list of metrics; sums, differences and products.

    Raises NotImplementedError for anything else. FILL of a metric without a single value also gives none: whether CloudWatch
    fills a metric without any point could not be verified without an account, and an alarm should not rest on it.
    """
    return _value(_parsed(expression), known)


@cache
def _parsed(expression: str) -> ast.expr:
    """Parses each expression once: alarms run in threads, and Python 3.11.7 was seen to fail when several of them parse at a time."""
    return ast.parse(expression, mode="eval").body


def _value(node: ast.expr, known: Mapping[str, Values]) -> Values:
    if isinstance(node, ast.Name):
        return known[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _BETWEEN:
        one, other = _value(node.left, known), _value(node.right, known)
        return [_both(_BETWEEN[type(node.op)], *pair) for pair in zip(one, other, strict=True)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "FILL":
            values, instead = _value(node.args[0], known), float(ast.literal_eval(node.args[1]))
            never = all(value is None for value in values)
            return [None if never else instead if value is None else value for value in values]
        if node.func.id in _OVER and isinstance(node.args[0], ast.List):
            columns = zip(*(_value(one, known) for one in node.args[0].elts), strict=True)
            return [_any(_OVER[node.func.id], column) for column in columns]
    raise NotImplementedError(f"metric math: {ast.unparse(node)}")


def _both(work: Callable[[float, float], float], one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else work(one, other)


def _any(work: Callable[[Sequence[float]], float], column: Values) -> float | None:
    values = [value for value in column if value is not None]
    return work(values) if values else None


def verdict(
    values: Values, *, periods: int, to_alarm: int, breaches: Callable[[float], bool], missing: str, state: str
) -> str:
    """Returns the alarm's next state. `values` go back EXTRA periods further than `periods`; `missing` is TreatMissingData.

    Older data replaces missing data as long as there is enough of it, so an alarm on silence needs FILL.
    """
    real = [value for value in values if value is not None]
    looked: Values = real[-periods:] if len(real) >= periods else values[-periods:]
    if not real:
        return {"breaching": ALARM, "notBreaching": OK, "ignore": state}.get(missing, NO_DATA)
    breaching = sum(breaches(value) if value is not None else missing == "breaching" for value in looked)
    if breaching >= to_alarm:
        return ALARM
    if missing == "ignore" and None in looked:
        return state
    return OK
