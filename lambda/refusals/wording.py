"""Words refusals: one line per problem, with the field, what is wrong with it, and what is allowed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from contract.errors import InvalidRequest
from contract.items import ADMISSION_CLOSED
from contract.text import plain
from refusals.synonyms import suggest

MOST = 16_000
"""The most characters of a whole refusal: Step Functions keeps 32,768 of a cause, and escapes double some of them."""
MOST_UNKNOWN = 20
"""The most unknown fields that are named."""

_WRONG = {
    "string_type": "is not a string",
    "string_unicode": "is not valid Unicode (it holds half of a surrogate pair)",
    "list_type": "is not a list",
    "dict_type": "is not an object",
    "model_type": "is not an object",
    "bool_type": "is neither true nor false",
    "int_type": "is not a whole number",
    "float_type": "is not a number",
    "enum": "is not one of them",
    "finite_number": "is not a finite number",
    "greater_than": "is too small",
    "greater_than_equal": "is too small",
    "less_than_equal": "is too large",
    "string_pattern_mismatch": "does not have the right form",
}
"""Pydantic's error types that a request can meet, in words for a person who has not read its documentation."""


def shown(value: object) -> str:
    """Returns a value as JSON, shortened, with everything escaped that a console would hide or show from right to left."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):  # JSON cannot hold it, or it is a number of thousands of digits
        text = f"a {type(value).__name__}"
    return plain(text)


def lines(
    errors: Sequence[Mapping[str, Any]],
    fields: Mapping[str, str],
    entries: Mapping[str, str] = MappingProxyType({}),
    *,
    word: Callable[[Mapping[str, Any]], str] = lambda _: "",
) -> list[str]:
    """Words pydantic's errors; `word` gives the caller's own words, or none. All unknown fields share one line."""
    own = {place: said for place, error in enumerate(errors) if (said := word(error))}
    unknown = [str(one["loc"][0]) for place, one in enumerate(errors) if place not in own and _is_unknown(one)]
    together = _describe_unknown(unknown, fields) if unknown else ""
    each = (
        own.get(place) or (together if _is_unknown(error) else line(error, fields, entries))
        for place, error in enumerate(errors)
    )
    return list(dict.fromkeys(each))


def _is_unknown(error: Mapping[str, Any]) -> bool:
    return error["type"] == "extra_forbidden" and len(error["loc"]) == 1


def _describe_unknown(names: Sequence[str], fields: Mapping[str, str]) -> str:
    """Names fields that are not there, each with the one that it may mean."""
    each = [f"{plain(name)}{suggest(name, fields)}" for name in names[:MOST_UNKNOWN]]
    if len(names) == 1:
        return f"{plain(names[0])}: there is no such field{suggest(names[0], fields)}; allowed: {', '.join(fields)}"
    more = f" and {len(names) - MOST_UNKNOWN:,} more" if len(names) > MOST_UNKNOWN else ""
    return f"{', '.join(each)}{more}: there are no such fields; allowed: {', '.join(fields)}"


def line(error: Mapping[str, Any], fields: Mapping[str, str], entries: Mapping[str, str] = MappingProxyType({})) -> str:
    """Words one of pydantic's errors; `fields` says what each may be, `entries` what the entries of a list or an object may be."""
    path = [plain(str(part)) for part in error["loc"] if part != "[key]"]
    field, where = (path[0], ".".join(path)) if path else ("request", "request")
    if error["type"] == "extra_forbidden" and len(path) > 1:
        return f"{where}: there is no such field; allowed: {entries.get(field, fields[field])}"
    if error["type"] == "extra_forbidden":
        return _describe_unknown([str(error["loc"][0])], fields)
    problem = _problem(error)
    may_be = fields.get(field) or f"an object of the fields {', '.join(fields)}"
    if len(path) > 1:
        may_be = entries.get(field, may_be)
    return f"{where}: {problem}" if "allowed: " in problem else f"{where}: {problem}; allowed: {may_be}"


def _problem(error: Mapping[str, Any]) -> str:
    kind, given = error["type"], error["input"]
    if kind == "is_instance_of":
        return f"{what(given)} is not a {error['ctx']['class'].lower()}"
    if kind == "missing":
        return "is missing"
    if kind in ("too_short", "string_too_short"):
        return "is empty"
    if kind == "too_long":
        return f"has {len(given):,} entries"
    if kind == "string_too_long":
        return f"has {len(given):,} characters"
    if kind == "value_error":
        return str(error["ctx"]["error"])
    hint = " (numbers have no quotes)" if kind in ("int_type", "float_type") and isinstance(given, str) else ""
    return f"{what(given)} {_WRONG.get(kind, error['msg'])}{hint}"


def what(given: object) -> str:
    """Shows a value of the wrong type: lists and objects are only named, because they may be long."""
    return "a list" if isinstance(given, list) else "an object" if isinstance(given, dict) else shown(given)


def refusal(problems: Iterable[str]) -> InvalidRequest:
    """Returns one error for all problems, a line each; if there are very many, the last ones are only counted."""
    lines = [f"- {problem}" for problem in dict.fromkeys(problems)]
    told, left = list[str](), MOST
    for one in lines:
        left -= len(one) + 1
        if left < 0:
            told.append(f"- and {len(lines) - len(told)} more")
            break
        told.append(one)
    reasons = "" if len(lines) == 1 else f" for {len(lines)} reasons"
    return InvalidRequest("\n".join([f"The request was refused{reasons}; nothing was started.", *told]))


def denial(code: str) -> str:
    """Says by S3's error code why the deployment may not read something."""
    if code in {"NoSuchBucket", "404"}:
        return "there is no such bucket"
    if code in {"403", "AccessDenied"}:
        return f"S3 answers {code}, so the bucket belongs to another account, or its policy or key denies the deployment access"
    return f"S3 answers {code}"


def shut(reason: str, table: str) -> str:
    """Says why no request is admitted."""
    again = (
        f"any request, after a person has deleted the item {ADMISSION_CLOSED.partition}/{ADMISSION_CLOSED.sort} of the table "
        f"{table}, or after a destroy has ended and a deploy has created the stacks again"
    )
    return f"request: admission is closed: {plain(reason)}; allowed: {again}"
