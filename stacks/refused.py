"""Words what is wrong with the settings: one line per problem, with the setting's full name, its value, and what is allowed."""

from __future__ import annotations

import dataclasses
import difflib
import json
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError

from contract.text import plain

ALIKE, RELATED = 0.8, 0.5
"""Ratios of difflib: for a typing error, and for a word that may have been meant."""
PLAIN = {
    "a valid array": "a list",
    "a valid dictionary": "an object",
    "a valid boolean": "true or false",
    "a valid integer": "a whole number",
    "a valid number": "a number",
}
"""What pydantic calls a type, in the words of a person who writes JSON."""
MOST_SHOWN = 200
"""The most characters of a value that a line repeats."""
DEEPEST = 100
"""How deep objects and lists may lie in each other: what reads the settings later takes one call for each."""
DEEP_ENOUGH = f"up to {DEEPEST} objects and lists in each other"
NAMED = 3
"""Keys that say which setting is too deep, as in campaigns.digits.input."""


def find_too_deep(block: str, raw: Mapping[str, Any]) -> str:
    """Returns the line about a setting that is nested too deep; empty where none is."""
    level: list[tuple[tuple[str, ...], Any]] = [((block,), raw)]
    for _ in range(DEEPEST):
        level = [((*path, key)[: NAMED + 1], inner) for path, one in level for key, inner in _inner(one)]
    where = next((".".join(path) for path, one in level if isinstance(one, (dict, list))), "")
    return where and f"{where} is nested more than {DEEPEST} deep; allowed: {DEEP_ENOUGH}"


def _inner(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (dict, list)):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        yield from ((str(key), one) for key, one in pairs)


def lines(block: str, model: type, raw: Mapping[str, Any], problem: ValidationError) -> Iterator[str]:
    """Yields lines about settings of that model, which are under the key `block`."""
    for error in problem.errors(include_url=False):
        path = [part for part in error["loc"] if part != "[key]"]
        where = ".".join((block, *(plain(str(part)) for part in path)))
        if error["type"] == "too_short" and error["input"]:
            continue  # pydantic counts only the good entries here, and the others have lines of their own
        if error["type"] in {"extra_forbidden", "unexpected_keyword_argument"}:
            yield f"{where} is not a setting{_nearest(model, path)}"
        elif error["type"] == "missing":
            yield f"{where} is missing; allowed: {_describe(hint_at(model, path))}"
        elif error["type"] == "value_error" and isinstance(error["input"], dict):
            yield from (f"{where}.{line}" for line in str(error["ctx"]["error"]).splitlines())
        else:
            because, may_be = _allowed(error)
            is_key = error["loc"][-1:] == ("[key]",)
            given = "is not a key of this block" if is_key else _show(_value(raw, path))
            yield f"{where} {given}{because and f' ({because})'}; allowed: {may_be}"


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
        (f"{word}{may_be[len(words) :]}" for words, word in PLAIN.items() if may_be.startswith(words)), may_be
    )


def hint_at(model: type, path: Sequence[str | int]) -> Any:
    """Returns the type of what lies at that path: of a setting, or of an entry of one."""
    hint: Any = model
    for part in path:
        hint = _bare(hint)
        is_block, of = block_of(hint) is hint, get_origin(hint)
        hint = hints(hint)[str(part)] if is_block else get_args(hint)[1 if of is dict else 0]
    return hint


def _bare(hint: Any) -> Any:
    """Returns a type without what annotates it, and without None beside it."""
    if get_origin(hint) is Annotated:
        return _bare(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        return _bare(next(one for one in get_args(hint) if one is not type(None)))
    return hint


def _describe(hint: Any) -> str:
    """Says what a setting of that type may be."""
    bare = _bare(hint)
    if block_of(bare) is bare:
        return f"an object of {', '.join(sorted(hints(bare)))}"
    try:
        TypeAdapter(hint).validate_python(object(), strict=True)
    except ValidationError as problem:
        return _allowed(problem.errors(include_url=False)[0])[1]
    return "any value"


def _show(value: Any) -> str:
    """Says what was given. A long list or object is only counted, a long text shortened."""
    text = json.dumps(value)
    if len(text) <= MOST_SHOWN:
        return f"is {text}"
    if isinstance(value, (dict, list)):
        return f"has {len(value):,} entries"
    return f"is {text[:MOST_SHOWN]}... ({len(text):,} characters)"


def _nearest(model: type, path: Sequence[str | int]) -> str:
    """Finds the setting that was meant: one of the same block, or one of another block, unless it is an entry of several."""
    *above, key = path
    here, known = sorted(hints(_bare(hint_at(model, above)))), tree(model)
    allowed = f"; allowed: {', '.join(here)}"
    names = sorted({one[-1] for one in known}) if tuple(above) in {(), *known} else []
    if close := difflib.get_close_matches(str(key), here, n=1, cutoff=ALIKE):
        return f" (did you mean {close[0]}?){allowed}"
    if close := difflib.get_close_matches(str(key), names, n=1, cutoff=ALIKE):
        elsewhere = sorted(".".join(one) for one in known if one[-1] == close[0])
        return f" (did you mean {' or '.join(elsewhere)}?){allowed}"
    if close := difflib.get_close_matches(str(key), here, n=1, cutoff=RELATED):
        return f" (did you mean {close[0]}?){allowed}"
    return allowed


def _value(raw: Any, path: list[str | int]) -> Any:
    for part in path:
        raw = raw[part]
    return raw
