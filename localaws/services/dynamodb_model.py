"""DynamoDB of one region: conditional writes, reads, streams, and items that expire."""

from __future__ import annotations

import hashlib
import heapq
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from localaws.model import Clock, Refused
from localaws.services.dynamodb_language import Chance, Condition, Language, check_used
from localaws.services.dynamodb_reads import batch_get, query
from localaws.services.dynamodb_state import DynamoDbState, Knobs
from localaws.services.dynamodb_table import Place, Schema, State, place
from localaws.services.dynamodb_values import Item, checked, invalid, read_units, write_image, write_units

FORGOTTEN_S = 5 * 365 * 86400.0
"""TTL does not touch an item that expired longer ago."""
TAKEN: dict[str, frozenset[str]] = {
    "PutItem": frozenset({"Item", "ReturnValues"}),
    "DeleteItem": frozenset({"Key", "ReturnValues"}),
    "GetItem": frozenset({"Key", "ConsistentRead"}),
    "Query": frozenset(
        {
            *("KeyConditionExpression", "FilterExpression", "ConsistentRead", "ScanIndexForward"),
            *("Limit", "ExclusiveStartKey", "ExpressionAttributeNames", "ExpressionAttributeValues"),
        }
    ),
    "BatchGetItem": frozenset({"RequestItems"}),
}
"""Parameters beside the table's name that the model knows; others are refused, not ignored."""
CONDITIONS = frozenset(
    {
        *("ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"),
        "ReturnValuesOnConditionCheckFailure",
    }
)
EXPIRY = {"principalId": "dynamodb.amazonaws.com", "type": "Service"}
"""Who deletes what has expired, as the stream names it."""


class DynamoDb(DynamoDbState):
    """One region. Whoever creates one says which tables there are, and receives their streams' records."""

    def __init__(
        self, region: str, clock: Clock, chance: Chance, language: Language, knobs: Knobs | None = None
    ) -> None:
        super().__init__(region, clock, chance, language, knobs)
        self._expiring: list[tuple[float, int, str, Place]] = []
        self._number = 0

    @abstractmethod
    def tell(self, schema: Schema, record: dict[str, Any]) -> None:
        """Takes a record of a table's stream, in the form in which functions receive it, in the order of the changes."""

    @abstractmethod
    def expires(self, when: float) -> None:
        """Takes the time at which an item is to be deleted; `sweep` deletes it then, as does any later call."""

    # what AWS's API does

    def answer(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        with self.lock:
            self.sweep()
            if operation not in TAKEN:
                raise Refused("UnknownOperationException", f"The model has no {operation}")
            known = TAKEN[operation] | {"TableName", "ReturnConsumedCapacity"}
            if extra := params.keys() - (known | CONDITIONS if operation in {"PutItem", "DeleteItem"} else known):
                raise Refused("UnknownOperationException", f"The model's {operation} has no {', '.join(sorted(extra))}")
            if operation == "BatchGetItem":
                return batch_get(self, params)
            schema = self.found(params["TableName"])
            match operation:
                case "PutItem":
                    return self._put(schema, params)
                case "DeleteItem":
                    return self._write(schema, operation, params, place(schema, params["Key"], alone=True), None, 0)
                case "GetItem":
                    return self._get(schema, params)
            return query(self, schema, params)

    def _get(self, schema: Schema, params: Mapping[str, Any]) -> dict[str, Any]:
        where, consistent = place(schema, params["Key"], alone=True), params.get("ConsistentRead", False)
        table = self.table(schema)
        state = table.row(where).at(self.sight(consistent))
        units = read_units(state.size, consistent=consistent)
        self.spend("GetItem", where[0], table.partition(where[0]), read=units)
        return {"Item": state.item} | self.consumed(schema, params, units)

    def _put(self, schema: Schema, params: Mapping[str, Any]) -> dict[str, Any]:
        item, size = checked(params["Item"])
        return self._write(schema, "PutItem", params, place(schema, item, alone=False), item, size)

    def _write(
        self, schema: Schema, operation: str, params: Mapping[str, Any], where: Place, item: Item | None, size: int
    ) -> dict[str, Any]:
        """A call whose condition fails uses the units of the item that is there."""
        wanted, values = _wanted(self.language, params), params.get("ExpressionAttributeValues", {})
        table = self.table(schema)
        old, partition = table.row(where).newest, table.partition(where[0])
        if self.knobs.conflicts or where[0] in self.knobs.contested:
            self.knobs.conflicts = max(0, self.knobs.conflicts - 1)
            raise Refused("TransactionConflictException", "Transaction is ongoing for the item")
        holds = wanted is None or wanted.holds(old.item, values)
        units = write_units(max(size, old.size) if holds else old.size)
        self.spend(operation, where[0], partition, written=units)
        if not holds:
            shown = old.item if params.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" else None
            raise Refused(
                "ConditionalCheckFailedException", "The conditional request failed", details={"Item": shown or None}
            )
        self._change(schema, where, old, State(self.clock.time(), item, size))
        before = old.item if params.get("ReturnValues") == "ALL_OLD" else None
        return {"Attributes": before} | self.consumed(schema, params, units)

    def _change(
        self, schema: Schema, where: Place, old: State, new: State, by: Mapping[str, str] | None = None
    ) -> None:
        """A write that changes nothing leaves no record in the stream."""
        if old.item == new.item:
            return
        self.table(schema).put(where, new, new.since - self.knobs.lag_s)
        until = _expiry(schema, new.item)
        if until is not None:
            due = max(new.since, until) + self.chance.uniform(*self.knobs.expiry_s)
            self._number += 1
            heapq.heappush(self._expiring, (due, self._number, schema.name, where))
            self.expires(due)
        if schema.stream:
            self.tell(schema, self._record(schema, old, new, by))

    def _record(self, schema: Schema, old: State, new: State, by: Mapping[str, str] | None) -> dict[str, Any]:
        self._number += 1
        either: Any = new.item if new.item is not None else old.item
        changed: dict[str, Any] = {
            "ApproximateCreationDateTime": int(new.since),
            "Keys": write_image({name: either[name] for name in schema.keys}),
            "SequenceNumber": str(1100000000017454423009 + self._number),
            "SizeBytes": old.size + new.size,
            "StreamViewType": schema.view,
        }
        if new.item is not None and schema.view in {"NEW_IMAGE", "NEW_AND_OLD_IMAGES"}:
            changed["NewImage"] = write_image(new.item)
        if old.item is not None and schema.view in {"OLD_IMAGE", "NEW_AND_OLD_IMAGES"}:
            changed["OldImage"] = write_image(old.item)
        record = {
            "eventID": hashlib.md5(f"{schema.stream} {self._number}".encode(), usedforsecurity=False).hexdigest(),
            "eventName": "REMOVE" if new.item is None else "INSERT" if old.item is None else "MODIFY",
            "eventVersion": "1.1",
            "eventSource": "aws:dynamodb",
            "awsRegion": self.region,
            "dynamodb": changed,
            "eventSourceARN": schema.stream,
        }
        return record | ({"userIdentity": dict(by)} if by else {})

    def sweep(self) -> None:
        """Deletes what expired long enough ago. An item that was given more time meanwhile stays."""
        now = self.clock.time()
        with self.lock:
            while self._expiring and self._expiring[0][0] <= now:
                _, _, name, where = heapq.heappop(self._expiring)
                if schema := self.schema(name):
                    old = self.table(schema).row(where).newest
                    until = _expiry(schema, old.item)
                    if until is not None and now - FORGOTTEN_S < until <= now:
                        self._change(schema, where, old, State(now, None), EXPIRY)


def _wanted(language: Language, params: Mapping[str, Any]) -> Condition | None:
    names, values = params.get("ExpressionAttributeNames", {}), params.get("ExpressionAttributeValues", {})
    text = params.get("ConditionExpression")
    if text is None:
        if names or values:
            given = "ExpressionAttributeNames" if names else "ExpressionAttributeValues"
            raise invalid(f"{given} can only be specified when using expressions: ConditionExpression is null")
        return None
    found = language.condition(text, names, values, "ConditionExpression")
    check_used(values, found.values, "ExpressionAttributeValues")
    check_used(names, found.names, "ExpressionAttributeNames")
    return found


def _expiry(schema: Schema, item: Item | None) -> float | None:
    """Only a number of seconds is a time; an item with anything else never expires."""
    text = (item or {}).get(schema.ttl, {}).get("N") if schema.ttl else None
    return None if text is None else float(text)
