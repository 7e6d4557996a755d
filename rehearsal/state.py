"""What nodes have written to the table of state, read past the API: people and faults look at it without being throttled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from contract import items
from contract.codec import Garbled, decode
from contract.reports import NodeReport
from localaws.services import dynamodb


def reports() -> Iterator[NodeReport]:
    """The report of every node that has written one which can be read."""
    for region in list(dynamodb.items().regions.values()):
        for item in region.every():
            if item[items.SORT]["S"] == items.REPORT:
                with suppress(Garbled):
                    yield decode(NodeReport, items.unpacked(item))
