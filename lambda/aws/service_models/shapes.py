"""Parts of botocore's service models: the shapes that something in one refers to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def reached(shapes: dict[str, Any], part: Any) -> dict[str, Any]:
    """Of a model's `shapes`, by name, those that `part` refers to, directly or through others."""
    found: dict[str, Any] = {}
    waiting = list(_named(part))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = shapes[name]
            waiting += _named(shapes[name])
    return found


def _named(part: Any) -> Iterator[str]:
    """Every shape that a part of the model refers to."""
    if isinstance(part, dict):
        if isinstance(part.get("shape"), str):
            yield part["shape"]
        for inner in part.values():
            yield from _named(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _named(inner)
