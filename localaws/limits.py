"""Checks what botocore does not, although the service's model forbids it: lengths, patterns and values of closed lists."""

from __future__ import annotations

import re
from functools import cache
from typing import Any


def beyond(shape: Any, value: Any, where: str = "") -> str:
    """Returns the first value beyond its limits, in AWS's words; empty when there is none. botocore itself checks minima and types."""
    if shape is None:
        return ""
    if shape.type_name == "structure":
        parts = [(shape.members[name], one, f"{where}.{name[:1].lower()}{name[1:]}") for name, one in value.items()]
    elif shape.type_name == "list":
        parts = [(shape.member, one, f"{where}.{number}.member") for number, one in enumerate(value, 1)]
    elif shape.type_name == "map":
        parts = [(shape.key, name, f"{where}.{name}.key") for name in value]
        parts += [(shape.value, one, f"{where}.{name}.member") for name, one in value.items()]
    else:
        return _of_one(shape.metadata, value, where) if shape.metadata else ""
    most = shape.metadata.get("max")
    if most is not None and shape.type_name != "structure" and len(value) > most:
        return _said(f"{len(value)} members", where, f"length less than or equal to {most}")
    return next((problem for part in parts if (problem := beyond(*part))), "")


def _of_one(limits: dict[str, Any], value: Any, where: str) -> str:
    number = isinstance(value, int | float)
    size = value if isinstance(value, int | float) else len(value) if isinstance(value, str | bytes) else 0
    if (most := limits.get("max")) is not None and size > most:
        return _said(value, where, f"{'value' if number else 'length'} less than or equal to {most}")
    if isinstance(value, str):
        if limits.get("enum") and value not in limits["enum"]:
            return _said(value, where, f"enum value set: {limits['enum']}", "satisfy")
        if limits.get("pattern") and not _pattern(limits["pattern"]).search(value):
            return _said(value, where, f"regular expression pattern: {limits['pattern']}", "satisfy")
    return ""


def _said(value: Any, where: str, wanted: str, verb: str = "have") -> str:
    place = where.lstrip(".")
    return f"1 validation error detected: Value '{value}' at '{place}' failed to satisfy constraint: Member must {verb} {wanted}"


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Compiles a pattern of a model; the few that Python cannot read forbid nothing here."""
    try:
        return re.compile(text)
    except re.error:
        return re.compile("")
