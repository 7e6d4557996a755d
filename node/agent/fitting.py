"""Makes a report fit into its item, whatever the job prints."""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Any, TypeVar

from contract import items
from contract.codec import compact
from contract.reports import NodeReport

T = TypeVar("T")
MOST = 300_000
"""Bytes of a report; its item may have 409,600."""
LONGEST = 50_000
"""Characters of one text, at most: the last 50 lines of an output have at most 1,000 each."""
MOMENTS = 50
"""Entries of a mapping, at most; an honest timeline has ten."""


def document_of(report: NodeReport, nodes: int) -> bytes:
    """The report of one of so many nodes, as JSON. Of one that is too long the oldest lines of output and the middle of long sentences are
    left out."""
    document, most = compact(report), LONGEST
    while most and len(document) > min(MOST, items.most_report(nodes)):
        document, most = compact(bounded(report, most)), most // 2
    return document


def bounded(value: T, most: int = LONGEST) -> T:
    """The dataclass with at most `most` characters of each text, and about as many of the last lines of an output.

    Of a longer text the beginning and the end are kept, which says most where a program has spoken.
    """
    return _bounded(value, most)  # type: ignore[no-any-return]


def _bounded(value: Any, most: int) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        told = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **{name: _bounded(one, most) for name, one in told.items()})
    if isinstance(value, dict):
        return {_bounded(name, most // MOMENTS): one for name, one in list(value.items())[:MOMENTS]}
    if isinstance(value, tuple):
        return _last(value, most)
    if isinstance(value, str) and not isinstance(value, Enum) and len(value) > most:
        return f"{value[: most // 2]} [...] {value[len(value) - most // 2 :]}"
    return value


def _last(lines: tuple[str, ...], most: int) -> tuple[str, ...]:
    first, left = len(lines), most
    while first and (left := left - len(lines[first - 1]) - 1) >= 0:
        first -= 1
    return lines[first:]
