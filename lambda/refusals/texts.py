"""Finds texts of an input that nothing behind its reader can hold: UTF-8 has no halves of surrogate pairs, a process no NUL characters."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

NUL = "holds a NUL character; allowed: all others"
Model = TypeVar("Model", bound=BaseModel)
_HALF = re.compile("[\ud800-\udfff]")


def validate(model: type[Model], given: object) -> tuple[Model | None, list[Any]]:
    """Returns the input as the model has it, None where it is wrong, and pydantic's errors, with one in their form for each such text of
    which pydantic says nothing: where a field may have any value, it looks at no text of it."""
    try:
        found, errors = model.model_validate(given), list[Any]()
    except ValidationError as refused:
        found, errors = None, list[Any](refused.errors(include_url=False))
    known = [_strip(one["loc"]) for one in errors]
    fields = {one.alias or name for name, one in model.model_fields.items()}
    errors += [one for one in list_errors(given, fields) if not any(_meet(_strip(one["loc"]), at) for at in known)]
    return (None if errors else found), errors


def find_half(given: object) -> str | None:
    """Returns where a value has half of a surrogate pair, as in `hyperparameters.lr`, empty where it is such a text itself; None where it
    has none."""
    places = (path for path, text, _ in _list_texts(given) if _HALF.search(text))
    return next((".".join(map(str, path)) for path in places), None)


def list_errors(given: object, fields: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yields an error in pydantic's form for each such text of an input's fields. A name of no field can be refused as such, unless no
    document can hold the refusal."""
    if not isinstance(given, Mapping):
        return
    for path, text, is_name in _list_texts(given):
        is_field = not (is_name and len(path) == 1)
        if not _HALF.search(text) and ("\0" not in text or not is_field):
            continue
        if is_field and path[0] not in fields:
            continue
        loc = (*path, "[key]") if is_name else path
        error = {"loc": loc if is_field else (), "input": text, "msg": ""}
        is_half = _HALF.search(text) is not None
        yield error | (
            {"type": "string_unicode"} if is_half else {"type": "value_error", "ctx": {"error": ValueError(NUL)}}
        )


def _list_texts(given: object) -> Iterator[tuple[tuple[Any, ...], str, bool]]:
    """Yields the path and the text of every text and every name, in their order, and whether it is a name. Inputs may be nested deeper than
    Python calls."""
    left: list[tuple[tuple[Any, ...], object, bool]] = [((), given, False)]
    while left:
        path, one, is_name = left.pop()
        if isinstance(one, str):
            yield path, one, is_name
        elif isinstance(one, Mapping):
            for name, inner in reversed([*one.items()]):
                left += [((*path, name), inner, False), ((*path, name), str(name), True)]
        elif isinstance(one, list):
            left += [((*path, place), inner, False) for place, inner in reversed([*enumerate(one)])]


def _strip(loc: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(part for part in loc if part != "[key]")


def _meet(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether one place is in the other, or the other in it."""
    return one[: len(other)] == other[: len(one)]
