"""DynamoDB's values: which are allowed, how many bytes an item has, how keys are ordered, and what a call costs."""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any

from localaws.model import Refused

ITEM_BYTES = 400 * 1024
KEY_BYTES = (2048, 1024)
"""Of a partition key, of a sort key."""
READ_BYTES, WRITE_BYTES = 4096, 1024
"""Bytes of one unit."""
DIGITS = 38
EXACT = Context(prec=1000)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
Value = Mapping[str, Any]
"""One value with its type: {"S": "text"}."""
Item = Mapping[str, Value]
SETS = frozenset({"SS", "NS", "BS"})


def invalid(message: str) -> Refused:
    return Refused("ValidationException", message)


def checked(item: Item) -> tuple[Item, int]:
    """Returns the item as DynamoDB keeps it, and its size. Raises Refused for a value that DynamoDB does not take."""
    kept, size = {}, 0
    for name, value in item.items():
        kept[name] = _kept(value)
        size += len(name.encode()) + _size(kept[name])
    if size > ITEM_BYTES:
        raise invalid("Item size has exceeded the maximum allowed size")
    return kept, size


def _kept(value: Value) -> Value:
    if len(value) != 1:
        told = "has more than one datatypes set, must contain exactly one of the supported datatypes"
        raise invalid(
            f"Supplied AttributeValue {told if value else 'is empty, must contain exactly one of the supported datatypes'}"
        )
    ((kind, one),) = value.items()
    if kind == "N":
        return {kind: number(one)}
    if kind == "M":
        return {kind: {name: _kept(part) for name, part in one.items()}}
    if kind == "L":
        return {kind: [_kept(part) for part in one]}
    if kind in SETS:
        parts = [number(part) for part in one] if kind == "NS" else one
        if not parts:
            raise invalid("One or more parameter values were invalid: An number set  may not be empty")
        if len(set(parts)) < len(parts):
            raise invalid(f"One or more parameter values were invalid: Input collection {parts} contains duplicates.")
        return {kind: parts}
    if kind == "NULL" and one is not True:
        raise invalid("Null attribute value types must have the value of true")
    return {kind: one}


def number(text: str) -> str:
    """Returns a number as DynamoDB keeps it: without the zeros that say nothing."""
    if text.isascii() and text.isdecimal() and (text[0] != "0" or text == "0") and len(text) <= DIGITS:
        return text
    if not NUMBER.fullmatch(text):
        raise invalid(f"The parameter cannot be converted to a numeric value: {text}")
    value = EXACT.normalize(Decimal(text))
    if value and not -130 <= value.adjusted() <= 125:
        size, flow = ("larger", "overflow") if value.adjusted() > 0 else ("smaller", "underflow")
        raise invalid(f"Number {flow}. Attempting to store a number with magnitude {size} than supported range")
    if len(value.as_tuple().digits) > DIGITS:
        raise invalid("Attempting to store more than 38 significant digits in a Number")
    return format(value, "f") if value else "0"


def _size(value: Value) -> int:
    """Returns the bytes that DynamoDB's guide counts; it says of numbers that the count is approximate."""
    ((kind, one),) = value.items()
    if kind == "S":
        return len(one) if one.isascii() else len(one.encode())
    if kind == "B":
        return len(one)
    if kind == "N":
        digits = one.lstrip("-").replace(".", "").strip("0")
        return (len(digits) + 1) // 2 + (2 if one.startswith("-") else 1)
    if kind == "M":
        return 3 + sum(1 + len(name.encode()) + _size(part) for name, part in one.items())
    if kind == "L":
        return 3 + sum(1 + _size(part) for part in one)
    if kind in SETS:
        return sum(_size({kind[0]: part}) for part in one)
    return 1


def order(value: Value) -> Any:
    """Returns what keys of this type are sorted by: a string by its bytes in UTF-8, a number by its value."""
    ((kind, one),) = value.items()
    return Decimal(one) if kind == "N" else one.encode() if kind == "S" else one


def read_units(size: int, *, consistent: bool) -> float:
    units = max(1, math.ceil(size / READ_BYTES))
    return float(units) if consistent else units / 2


def write_units(size: int) -> float:
    return float(max(1, math.ceil(size / WRITE_BYTES)))


def write_image(item: Item) -> dict[str, Any]:
    """Returns an item in the JSON of a stream's records."""
    return {name: _write_value(value) for name, value in item.items()}


def _write_value(value: Value) -> dict[str, Any]:
    ((kind, one),) = value.items()
    if kind == "B":
        return {kind: b64encode(one).decode()}
    if kind == "BS":
        return {kind: [b64encode(part).decode() for part in one]}
    if kind == "M":
        return {kind: write_image(one)}
    return {kind: [_write_value(part) for part in one] if kind == "L" else one}
