"""What a refusal says: one line a problem, with the field, what is wrong with it, and what is allowed."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from contract.environments import Limits
from contract.errors import InvalidRequest

SHOWN = 80
"""Characters of a value, or of a name, that a line repeats."""
MOST = 16_000
"""Characters of a whole refusal: Step Functions keeps 32,768 of a cause, and escapes double some of them."""

_WRONG = {
    "string_type": "is no text",
    "string_unicode": "is no Unicode text (it holds half of a surrogate pair)",
    "list_type": "is no list",
    "dict_type": "is no object",
    "model_type": "is no object",
    "bool_type": "is neither true nor false",
    "int_type": "is no whole number",
    "float_type": "is no number",
    "finite_number": "is no finite number",
    "is_instance_of": "is no market",
    "greater_than": "is too small",
    "greater_than_equal": "is too small",
    "less_than_equal": "is too large",
    "string_pattern_mismatch": "does not have the right form",
}
"""Pydantic's types of error that a request can meet, in words for a person who has not read its documentation."""


def allowed(limits: Limits) -> dict[str, str]:
    """Field to what it may be in this deployment."""
    return {
        "code": "s3://bucket/key of an archive whose name ends in .tar.gz, .tgz, .tar or .zip",
        "command": "a list of 1 to 1,000 texts, or one text of such words",
        "instance_types": "a list of 1 to 10 different EC2 types, as in g5.xlarge",
        "region": "a region in which the deployment trains (regions with a cidr in cdk.json), as in eu-central-1",
        "nodes": f"a whole number from 1 to {limits.max_nodes} (limits.max_nodes in cdk.json)",
        "market": "on-demand",
        "max_hours": f"a number from 0.01 to {limits.max_hours:g} (limits.max_hours in cdk.json)",
        "max_cost_usd": "nothing yet; leave it out and limit max_hours",
        "checkpoint_minutes": "a number from 0.01 to 1440",
        "environment": "an object of up to 200 names of variables and their texts",
        "secrets": "an object of up to 50 names of variables and the ARNs of their secrets",
        "data": "a list of up to 100 addresses, as in s3://bucket/folder/",
        "volume_gb": f"a whole number from 1 to {limits.max_volume_gb} (limits.max_volume_gb in cdk.json)",
        "owner": "up to 128 letters, digits, spaces and _.:/=+@- (it becomes a tag), not beginning with aws:",
    }


_ENTRIES = {
    "command": "texts of up to 128,000 bytes",
    "instance_types": "EC2 types, as in g5.xlarge",
    "environment": "texts of up to 128,000 bytes",
    "secrets": "arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME",
    "data": "addresses, as in s3://bucket/folder/",
}
"""What the entries of a list or an object may be."""


def shown(value: object) -> str:
    """A value as JSON, cut, with everything escaped that a console would hide or let run from right to left."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):  # nothing that JSON has; or a number of thousands of digits
        text = f"a {type(value).__name__}"
    return plain(text)


def plain(text: str, most: int = SHOWN) -> str:
    """A text on one line, cut, with everything escaped that cannot be seen; two quotes where there is none."""
    seen = "".join(letter if letter.isprintable() else _escaped(letter) for letter in text[: most + 1])
    return (seen if len(seen) <= most else f"{seen[:most]}...") or '""'


def _escaped(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"


def line(error: Mapping[str, Any], fields: Mapping[str, str]) -> str:
    """One of pydantic's errors; `fields` says what each may be."""
    path = [plain(str(part)) for part in error["loc"] if part != "[key]"]
    field, where = (path[0], ".".join(path)) if path else ("request", "request")
    if error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(field, fields, n=1)
        return f"{where}: there is no such field{f' (did you mean {near[0]}?)' if near else ''}; allowed: {', '.join(fields)}"
    problem = _problem(error)
    may_be = fields.get(field) or f"an object of the fields {', '.join(fields)}"
    if len(path) > 1:
        may_be = _ENTRIES.get(field, may_be)
    return f"{where}: {problem}" if "allowed: " in problem else f"{where}: {problem}; allowed: {may_be}"


def _problem(error: Mapping[str, Any]) -> str:
    kind, given = error["type"], error["input"]
    if kind == "missing":
        return "is missing"
    if kind == "too_short":
        return "is empty"
    if kind == "too_long":
        return f"has {len(given):,} entries"
    if kind == "string_too_long":
        return f"has {len(given):,} characters"
    if kind == "value_error":
        return str(error["ctx"]["error"])
    hint = " (numbers stand without quotes)" if kind in ("int_type", "float_type") and isinstance(given, str) else ""
    return f"{_what(given)} {_WRONG.get(kind, error['msg'])}{hint}"


def _what(given: object) -> str:
    return "a list" if isinstance(given, list) else "an object" if isinstance(given, dict) else shown(given)


def refusal(problems: Iterable[str]) -> InvalidRequest:
    """One error for all problems, a line each; the last ones are counted only where there are very many."""
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
