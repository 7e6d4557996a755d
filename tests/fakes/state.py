"""What tests and nodes of the fake read and write in the table of state, past the functions' clients."""

from __future__ import annotations

from typing import Any

from contract import items, names
from contract.codec import encode
from contract.items import ItemKey
from contract.reports import NodeReport
from localaws.services.dynamodb_state import Knobs
from tests.builders import JOB, NODE_ROLE
from tests.fakes.aws import Aws
from tests.fakes.wire import Call

TABLE = names.state_table(JOB.deployment)


def stored(aws: Aws, key: ItemKey) -> bytes | None:
    """The document of an item; None where there is no such item."""
    found = stored_item(aws, key)
    return None if found is None else items.unpacked(found)


def stored_item(aws: Aws, key: ItemKey) -> dict[str, Any] | None:
    """The whole item, in DynamoDB's own form."""
    rude, aws.table.knobs = aws.table.knobs, Knobs.plain()
    try:
        return aws.table.answer("GetItem", {"TableName": TABLE, "Key": _key(key), "ConsistentRead": True}).get("Item")
    finally:
        aws.table.knobs = rude


def store(
    aws: Aws, key: ItemKey, document: bytes, *, urgent: bool = False, at: float | None = None, as_text: bool = False
) -> None:
    """Writes an item, whatever is there, as its next version; `as_text` even where our code would compress the document."""
    before = stored_item(aws, key) or {items.VERSION: {"N": "0"}}
    item = {
        **_key(key),
        items.DOCUMENT: {"S": document.decode()} if as_text else items.packed(document),
        items.VERSION: {"N": str(int(before[items.VERSION]["N"]) + 1)},
        items.WRITTEN_AT: {"N": str(aws.clock.now if at is None else at)},
        **({items.URGENT: {"N": "1"}} if urgent else {}),
    }
    aws.table.answer("PutItem", {"TableName": TABLE, "Item": item})


def remove(aws: Aws, key: ItemKey) -> None:
    """A person deletes an item."""
    aws.table.answer("DeleteItem", {"TableName": TABLE, "Key": _key(key)})


def kept(aws: Aws) -> list[dict[str, Any]]:
    """Every item of the table, in DynamoDB's own form."""
    return aws.table.items(TABLE)


def report(aws: Aws, told: NodeReport, *, urgent: bool = False, at: float | None = None) -> None:
    """The node writes its report, and dates it `at`: now, if it is not said otherwise."""
    store(aws, items.node_report(NODE_ROLE, told.instance), encode(told), urgent=urgent, at=at)


def place(call: Call) -> str:
    """The key of the object, or of the item as `partition/sort`, that the call writes."""
    if call.service == "s3":
        return str(call.params["Key"])
    key = call.params.get("Item") or call.params["Key"]
    return f"{key[items.PARTITION]['S']}/{key[items.SORT]['S']}"


def _key(key: ItemKey) -> dict[str, Any]:
    return {items.PARTITION: {"S": key.partition}, items.SORT: {"S": key.sort}}
