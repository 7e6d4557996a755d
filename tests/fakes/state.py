"""What tests and nodes of the fake read and write in the table of state, past the functions' clients."""

from __future__ import annotations

import zlib
from typing import Any

from contract import items, names
from contract.codec import encode
from contract.items import ItemKey
from contract.reports import NodeReport
from tests.builders import JOB, NODE_ROLE
from tests.fakes.aws import Aws

TABLE = names.state_table(JOB.deployment)


def stored(aws: Aws, key: ItemKey) -> bytes | None:
    """The document of an item; None where there is no such item."""
    found = stored_item(aws, key)
    if found is None:
        return None
    document = found[items.DOCUMENT]
    return document["S"].encode() if "S" in document else zlib.decompress(document["B"])


def stored_item(aws: Aws, key: ItemKey) -> dict[str, Any] | None:
    """The whole item, in DynamoDB's own form."""
    return aws.table.answer("GetItem", {"TableName": TABLE, "Key": _key(key), "ConsistentRead": True}).get("Item")


def store(aws: Aws, key: ItemKey, document: bytes, *, urgent: bool = False, at: float | None = None) -> None:
    """Writes an item, whatever is there."""
    item = {
        **_key(key),
        items.DOCUMENT: {"S": document.decode()},
        items.VERSION: {"N": "1"},
        items.WRITTEN_AT: {"N": str(aws.clock.now if at is None else at)},
        **({items.URGENT: {"N": "1"}} if urgent else {}),
    }
    aws.table.answer("PutItem", {"TableName": TABLE, "Item": item})


def kept(aws: Aws) -> list[dict[str, Any]]:
    """Every item of the table, in DynamoDB's own form."""
    return aws.table.items(TABLE)


def report(aws: Aws, told: NodeReport, *, urgent: bool = False) -> None:
    """The node writes its report."""
    store(aws, items.node_report(NODE_ROLE, told.instance), encode(told), urgent=urgent)


def _key(key: ItemKey) -> dict[str, Any]:
    return {items.PARTITION: {"S": key.partition}, items.SORT: {"S": key.sort}}
