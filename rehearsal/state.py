"""What the table of state holds, read past the API: people and faults look at it without being throttled."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from contract import items
from contract.codec import Garbled, decode
from contract.reports import NodeReport
from localaws.services import dynamodb
from localaws.services.dynamodb_values import order


def kept(sort: str = "") -> list[dict[str, Any]]:
    """Every item, in DynamoDB's own form; those under one sort key alone, if it is given."""
    key = order({"S": sort}) if sort else None
    return [item for region in list(dynamodb.items().regions.values()) for item in region.every(key)]


def reports() -> Iterator[NodeReport]:
    """The report of every node that has written one which can be read."""
    for item in kept(items.REPORT):
        if report := _read(frozenset(item.get(items.DOCUMENT, {}).items())):
            yield report


@lru_cache(maxsize=1024)
def _read(document: frozenset[tuple[str, Any]]) -> NodeReport | None:
    """Decodes a report once: faults and scenarios look at all of them many times a second, and most have not changed."""
    try:
        return decode(NodeReport, items.unpacked({items.DOCUMENT: dict(document)}))
    except Garbled:
        return None


def written_at(instance: str) -> float:
    """When the instance wrote its report, by AWS's clock as the node reckons it; UTC epoch seconds."""
    found = [item for item in kept(items.REPORT) if item[items.PARTITION]["S"].endswith(f":{instance}")]
    return max(float(item[items.WRITTEN_AT]["N"]) for item in found)
