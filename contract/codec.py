"""JSON for the frozen dataclasses of the contract: `encode` writes, `decode` reads and names the field that does not fit."""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Callable
from enum import Enum
from functools import cache, partial
from typing import Any, TypeVar, Union

T = TypeVar("T")


MOST = 10**18
"""The largest whole number: one that no float can hold fails where it meets one."""


UNWRITTEN = {"unwritten": True}
"""Metadata of a field that no document has while it has its default: documents without it stay as they were before there was one."""


class Garbled(ValueError):
    """A document does not have the contract's shape; the message names the field."""


def encode(value: Any) -> bytes:
    """Writes a dataclass as JSON with sorted keys, so that equal values give equal bytes."""
    return json.dumps(value, default=_as_dict, sort_keys=True, ensure_ascii=False, allow_nan=False).encode()


def _as_dict(value: Any) -> dict[str, Any]:
    """Returns the fields of a dataclass, as they are: `asdict` copies all that is in them, which takes longer than to write it."""
    found = {name: getattr(value, name) for name in _names(type(value))}
    for name, default in _unwritten(type(value)):
        if found[name] == default:
            del found[name]
    return found


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


@cache
def _unwritten(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Lists the fields that are not written with their default, and that default."""
    return tuple((field.name, default_of(field)) for field in dataclasses.fields(kind) if "unwritten" in field.metadata)


def compact(value: Any) -> bytes:
    """As `encode`, without spaces and without the fields that `decode` fills in: those that have their defaults."""
    return json.dumps(
        _to_plain(value), sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    ).encode()


def _to_plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        fields = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {field.name: _to_plain(given) for field, given in fields if given != default_of(field)}
    if isinstance(value, tuple):
        return [_to_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _to_plain(one) for key, one in value.items()}
    return value


@cache
def read_hints(kind: Any) -> dict[str, Any]:
    """Returns the types of a dataclass' fields. Do not change the dict: it is read once a process."""
    return typing.get_type_hints(kind)


def default_of(field: dataclasses.Field[Any]) -> Any:
    """Returns the default of a field: MISSING, which equals nothing else, where it has none."""
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def decode(kind: type[T], document: bytes | str) -> T:
    """Reads `document` as `kind`. An older reader meets a newer writer during a deploy and after a rollback: unknown keys are ignored, and
    an unknown word of an Enum becomes what the Enum's `of_later_version` returns.

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
def _fields(kind: Any) -> list[tuple[str, Callable[[Any, str], Any], bool]]:
    """Lists the names of a dataclass' fields, what converts to each, and whether it has no default."""
    hints = read_hints(kind)
    return [
        (
            field.name,
            _reader(hints[field.name]),
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
        )
        for field in dataclasses.fields(kind)
    ]


def build(kind: Any, raw: Any, where: str) -> Any:
    """Converts `raw` (parsed JSON) to `kind`: a dataclass, an Enum, a tuple, a dict, an optional or a plain type."""
    return _reader(kind)(raw, where)


@cache
def _reader(kind: Any) -> Callable[[Any, str], Any]:
    """Returns what converts to `kind`; to find out what a type is takes longer than to convert to it."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return lambda raw, _: raw
    if origin in (Union, types.UnionType):
        read = _reader(next(one for one in inner if one is not type(None)))
        return lambda raw, where: None if raw is None else read(raw, where)
    if dataclasses.is_dataclass(kind):
        return partial(_dataclass, kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return partial(_enum, kind)
    if origin is tuple:
        return partial(_tuple, _reader(inner[0]))
    if origin is dict:
        return partial(_dict, _reader(inner[1]))
    return _float if kind is float else partial(_typed, kind)


def _tuple(read: Callable[[Any, str], Any], raw: Any, where: str) -> tuple[Any, ...]:
    return tuple(read(item, f"{where}[{place}]") for place, item in enumerate(_typed(list, raw, where)))


def _dict(read: Callable[[Any, str], Any], raw: Any, where: str) -> dict[str, Any]:
    return {key: read(item, f"{where}.{key}") for key, item in _typed(dict, raw, where).items()}


def _float(raw: Any, where: str) -> Any:
    if not isinstance(raw, int) or isinstance(raw, bool):
        return _typed(float, raw, where)
    try:
        return float(raw)
    except OverflowError:
        raise Garbled(f"{where} has {len(str(raw))} digits, wanted float") from None


def _dataclass(kind: Any, raw: Any, where: str) -> Any:
    fields, values = _typed(dict, raw, where), {}
    for name, read, needed in _fields(kind):
        if name in fields:
            values[name] = read(fields[name], f"{where}.{name}")
        elif needed:
            raise Garbled(f"{where}.{name} is missing")
    return kind(**values)


def _enum(kind: type[Enum], raw: Any, where: str) -> Enum:
    # Only text is ever quoted: Python's words for lists in lists may need a deeper stack than reading them did.
    word = _typed(str, raw, where)
    try:
        return kind(word)
    except ValueError:
        if (later := getattr(kind, "of_later_version", None)) is not None:
            return typing.cast(Enum, later())
        allowed = ", ".join(str(member.value) for member in kind)
        raise Garbled(f"{where} is {raw!r}; allowed: {allowed}") from None


def _typed(kind: Any, raw: Any, where: str) -> Any:
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
