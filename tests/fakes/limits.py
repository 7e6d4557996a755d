"""What botocore lets through though the service's model forbids it: lengths, patterns and values out of a closed list."""

from __future__ import annotations

import re
from functools import cache
from typing import Any


def beyond(shape: Any, value: Any, where: str = "") -> str:
    """The first value beyond its limits, as a sentence; empty when there is none. botocore checks minima and types itself."""
    if shape is None:
        return ""
    if shape.type_name == "structure":
        parts = ((shape.members[name], one, f"{where}.{name}") for name, one in value.items())
    elif shape.type_name == "list":
        parts = ((shape.member, one, f"{where}[{number}]") for number, one in enumerate(value))
    elif shape.type_name == "map":
        parts = ((shape.value, one, f"{where}.{name}") for name, one in value.items())
    else:
        return _of_one(shape.metadata, value, where.lstrip(".")) if shape.metadata else ""
    most = shape.metadata.get("max")
    if most is not None and shape.type_name != "structure" and len(value) > most:
        return f"{where.lstrip('.')} has {len(value)} members, allowed are {most}"
    return next((problem for part in parts if (problem := beyond(*part))), "")


def _of_one(limits: dict[str, Any], value: Any, where: str) -> str:
    size = value if isinstance(value, int | float) else len(value) if isinstance(value, str | bytes) else 0
    if (most := limits.get("max")) is not None and size > most:
        return f"{where} is {size} long or large, allowed is {most}"
    if isinstance(value, str):
        if limits.get("enum") and value not in limits["enum"]:
            return f"{where} is {value!r}, which is none of the allowed values"
        if limits.get("pattern") and not _pattern(limits["pattern"]).search(value):
            return f"{where} is {value!r}, which does not fit {limits['pattern']}"
    return ""


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """A pattern of the models; the few that Python cannot read forbid nothing here."""
    try:
        return re.compile(text)
    except re.error:
        return re.compile("")
