"""Words what is wrong with the settings: one line per problem, with the setting's full name, its value, and what is allowed."""

from __future__ import annotations

import dataclasses
import difflib
import json
import types
from collections.abc import Iterator, Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError

ALIKE, RELATED = 0.8, 0.5
"""Ratios of difflib: for a typing error, and for a word that may have been meant."""
PLAIN = {
    "a valid array": "a list",
    "a valid boolean": "true or false",
    "a valid integer": "a whole number",
    "a valid number": "a number",
}
"""What pydantic calls a type, in the words of a person who writes JSON."""


def lines(block: str, model: type, raw: Mapping[str, Any], problem: ValidationError) -> Iterator[str]:
    """Yields lines about settings of that model, which are under the key `block`."""
    known = tree(model)
    for error in problem.errors(include_url=False):
        path = [part for part in error["loc"] if part != "[key]"]
        where = ".".join((block, *map(str, path)))
        if error["type"] == "too_short" and error["input"]:
            continue  # pydantic counts only the good entries here, and the others have lines of their own
        if error["type"] in {"extra_forbidden", "unexpected_keyword_argument"}:
            yield f"{where} is not a setting; {_nearest(path, known)}"
        elif error["type"] == "missing":
            yield f"{where} is missing"
        elif error["type"] == "value_error" and isinstance(error["input"], dict):
            yield from (f"{where}.{line}" for line in str(error["ctx"]["error"]).splitlines())
        else:
            because, may_be = _allowed(error)
            is_key = error["loc"][-1:] == ("[key]",)
            given = "not a key of this block" if is_key else json.dumps(_value(raw, path))
            yield f"{where} is {given}{because and f' ({because})'}; allowed: {may_be}"


def tree(model: type) -> dict[tuple[str, ...], type | None]:
    """Returns every setting's path, with the model of its block, or None where it is a value."""
    found: dict[tuple[str, ...], type | None] = {}
    for name, hint in hints(model).items():
        inner = block_of(hint)
        found[(name,)] = inner
        found |= {(name, *path): kind for path, kind in tree(inner).items()} if inner else {}
    return found


def hints(model: Any) -> dict[str, Any]:
    """Returns the settings of a block with their types, in their order."""
    known = get_type_hints(model, include_extras=True)
    names = getattr(model, "model_fields", None) or [one.name for one in dataclasses.fields(model)]
    return {name: known[name] for name in names}


def block_of(hint: Any) -> type | None:
    """Returns the block that a setting is, or that its entries are."""
    if isinstance(hint, type) and (issubclass(hint, BaseModel) or dataclasses.is_dataclass(hint)):
        return hint
    if get_origin(hint) in (tuple, list, dict, Union, types.UnionType):
        return next((found for inner in get_args(hint) if (found := block_of(inner))), None)
    return None


def _allowed(error: Any) -> tuple[str, str]:
    """Says why a value is wrong, where its type and bounds do not say it, and what is allowed."""
    context = error.get("ctx", {})
    if error["type"] == "form":
        return context["objection"], context["allowed"]
    for key in ("expected", "error"):
        if key in context:
            return "", str(context[key])
    told = str(error["msg"]).partition(" should ")[2].removeprefix("be ").removeprefix("have ") or str(error["msg"])
    may_be = told.partition(" after validation")[0]
    return "", next(
        (f"{plain}{may_be[len(words) :]}" for words, plain in PLAIN.items() if may_be.startswith(words)), may_be
    )


def _nearest(path: list[str | int], known: Mapping[tuple[str, ...], type | None]) -> str:
    """Finds the setting that was meant: one of the same block, or one of another block."""
    *parts, key = (part for part in path if isinstance(part, str))
    above: tuple[str, ...] = ()
    for part in parts:
        above = (*above, part) if (*above, part) in known else above  # else it is the name of one of several blocks
    here = [one[-1] for one in known if one[:-1] == above]
    names = sorted({one[-1] for one in known})
    if close := difflib.get_close_matches(key, here, n=1, cutoff=ALIKE):
        return f"did you mean {close[0]}?"
    if close := difflib.get_close_matches(key, names, n=1, cutoff=ALIKE):
        elsewhere = sorted(".".join(one) for one in known if one[-1] == close[0])
        return f"did you mean {' or '.join(elsewhere)}?"
    if close := difflib.get_close_matches(key, here, n=1, cutoff=RELATED):
        return f"did you mean {close[0]}?"
    return f"there are {', '.join(sorted(here))}"


def _value(raw: Any, path: list[str | int]) -> Any:
    for part in path:
        raw = raw[part]
    return raw
