"""JSON for the frozen dataclasses of the contract: `encode` writes, `decode` reads and names the field that does not fit."""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union

T = TypeVar("T")


MOST = 10**18
"""The largest whole number: one that no float can hold fails where it meets one."""


class Garbled(ValueError):
    """A document does not have the contract's shape; the message names the field."""


def encode(value: Any) -> bytes:
    """Writes a dataclass as JSON with sorted keys, so that equal values give equal bytes."""
    return json.dumps(dataclasses.asdict(value), sort_keys=True, ensure_ascii=False, allow_nan=False).encode()


def compact(value: Any) -> bytes:
    """As `encode`, without spaces and without the fields that `decode` fills in: those that have their defaults."""
    return json.dumps(
        _to_plain(value), sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    ).encode()


def _to_plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        fields = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {field.name: _to_plain(given) for field, given in fields if given != _default(field)}
    if isinstance(value, tuple):
        return [_to_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _to_plain(one) for key, one in value.items()}
    return value


def _default(field: dataclasses.Field[Any]) -> Any:
    """MISSING, which equals nothing else, where the field has none."""
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def decode(kind: type[T], document: bytes | str) -> T:
    """Reads `document` as `kind`. Unknown keys are ignored: an older reader meets a newer writer during a deploy.

    Raises Garbled when the document is not JSON, a field is missing without a default, or has the wrong type.
    """
    try:
        raw = json.loads(document, parse_constant=_no_number, parse_float=_number)
    except (ValueError, RecursionError) as problem:
        raise Garbled(f"{kind.__name__} is not JSON: {problem}") from None
    return typing.cast(T, build(kind, raw, kind.__name__))


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a finite number")


def _number(word: str) -> float:
    """Rejects numbers such as 1e999, which Python reads as infinity."""
    return number if math.isfinite(number := float(word)) else _no_number(word)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def build(kind: Any, raw: Any, where: str) -> Any:
    """Converts `raw` (parsed JSON) to `kind`: a dataclass, an Enum, a tuple, a dict, an optional or a plain type."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return raw
    if origin in (Union, types.UnionType):
        return None if raw is None else build(next(one for one in inner if one is not type(None)), raw, where)
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, raw, where)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum(kind, raw, where)
    if origin is tuple:
        items = _typed(raw, list, where)
        return tuple(build(inner[0], item, f"{where}[{place}]") for place, item in enumerate(items))
    if origin is dict:
        return {key: build(inner[1], item, f"{where}.{key}") for key, item in _typed(raw, dict, where).items()}
    if kind is float and isinstance(raw, int) and not isinstance(raw, bool):
        return _float(raw, where)
    return _typed(raw, kind, where)


def _float(raw: int, where: str) -> float:
    try:
        return float(raw)
    except OverflowError:
        raise Garbled(f"{where} has {len(str(raw))} digits, wanted float") from None


def _dataclass(kind: Any, raw: Any, where: str) -> Any:
    fields, values = _typed(raw, dict, where), {}
    for field in dataclasses.fields(kind):
        if field.name in fields:
            values[field.name] = build(_hints(kind)[field.name], fields[field.name], f"{where}.{field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise Garbled(f"{where}.{field.name} is missing")
    return kind(**values)


def _enum(kind: type[Enum], raw: Any, where: str) -> Enum:
    # Only text is ever quoted: Python's words for lists in lists may need a deeper stack than reading them did.
    word = _typed(raw, str, where)
    try:
        return kind(word)
    except ValueError:
        allowed = ", ".join(str(member.value) for member in kind)
        raise Garbled(f"{where} is {raw!r}; allowed: {allowed}") from None


def _typed(raw: Any, kind: Any, where: str) -> Any:
    if not isinstance(raw, kind) or (isinstance(raw, bool) and kind is not bool):
        raise Garbled(f"{where} is {type(raw).__name__}, wanted {kind.__name__}")
    if isinstance(raw, str) and not is_text(raw):
        raise Garbled(f"{where} has half of a surrogate pair, wanted Unicode text")
    if isinstance(raw, int) and abs(raw) > MOST:
        raise Garbled(f"{where} has {len(str(raw))} digits, wanted at most {len(str(MOST))}")
    return raw


def is_text(raw: str) -> bool:
    """Whether it can be written as UTF-8: JSON can escape halves of pairs, and names of files may be any bytes."""
    try:
        raw.encode()
    except UnicodeEncodeError:
        return False
    return True
