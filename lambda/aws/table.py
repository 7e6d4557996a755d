"""Every DynamoDB call of the functions: items of the table of state by exact key, and conditional writes by version."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError

from aws.clients import PATIENT, client
from aws.errors import Raced
from contract.aws_errors import code_of
from contract.items import (
    ADMISSION_CLOSED,
    DOCUMENT,
    EXPIRES,
    MOST_READ,
    PARTITION,
    SORT,
    VERSION,
    WRITTEN_AT,
    ItemKey,
    packed,
    unpacked,
)

NO_TABLE = "ResourceNotFoundException"
NOT_MET = "ConditionalCheckFailedException"
CONFLICT = "TransactionConflictException"
"""A transaction is under way on the item. We have none, but a person may; botocore does not try such a write again."""
HELD_UP = frozenset({CONFLICT, "ThrottlingException", "ProvisionedThroughputExceededException"})
"""What whoever may write an item can make others' writes of it end with: transactions, or so many writes that DynamoDB throttles them."""
BATCH, BATCH_ALONE = 16, 100
"""Keys of a BatchGetItem. 100 are the most that DynamoDB takes, and one thread of an invocation at a time asks for so many: an answer
may be long, and takes about five times its length until it is read, while eight looks at once have 512 MB."""
LONGEST_ANSWER = 16 << 20
"""Bytes of items that DynamoDB puts into an answer to BatchGetItem, at most."""
AGAIN_S = (0.05, 0.2, 0.8, 2.0, 4.0)
"""Pauses before a write is sent again that met a transaction, and before keys are asked for again that a BatchGetItem left out; these
begin anew once it gives any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item as it was read or written."""

    key: ItemKey
    document: bytes
    version: int
    at: float
    """When it was written, UTC epoch seconds, as its writer says."""


class Table:
    """The table of state. Every read is consistent, because decisions depend on it."""

    def __init__(self, name: str, config: Config = PATIENT) -> None:
        self.name = name
        self._client: Any = client("dynamodb", None, config)
        self._alone = threading.Lock()

    def exists(self) -> bool:
        """Whether there is such a table."""
        try:
            self._client.get_item(TableName=self.name, Key=_key(ADMISSION_CLOSED))
        except ClientError as problem:
            if code_of(problem) == NO_TABLE:
                return False
            raise
        return True

    def get(self, key: ItemKey) -> Item | None:
        """None where there is no such item."""
        answer = self._client.get_item(TableName=self.name, Key=_key(key), ConsistentRead=True)
        return _item(answer["Item"]) if "Item" in answer else None

    def batch(self, keys: Sequence[ItemKey], *, most: int) -> Generator[tuple[list[Item], float], None, None]:
        """The items that exist, in any order, some at a time, with documents of at most so many bytes; beside them the time of the first
        answer by AWS's clock."""
        # No thread waits for the lock: one that does not get it asks for fewer at a time.
        alone = len(keys) > BATCH and self._alone.acquire(blocking=False)
        try:
            yield from self._batches(keys, BATCH_ALONE if alone else BATCH, most)
        finally:
            if alone:
                self._alone.release()

    def _batches(self, keys: Sequence[ItemKey], size: int, most: int) -> Iterator[tuple[list[Item], float]]:
        now = None
        for start in range(0, len(keys), size):
            wanted: Any = {"Keys": [_key(key) for key in keys[start : start + size]], "ConsistentRead": True}
            pauses = iter(AGAIN_S)
            while wanted:
                answer = self._client.batch_get_item(RequestItems={self.name: wanted})
                now = now or _date(answer)
                found, wanted = answer["Responses"].get(self.name, []), answer.get("UnprocessedKeys", {}).get(self.name)
                yield [_item(one, most) for one in found], now
                if found:
                    pauses = iter(AGAIN_S)
                if wanted:
                    time.sleep(_next(pauses, len(wanted["Keys"])))

    def query(self, partition: str, begins: str = "", *, newest_first: bool = False) -> Iterator[Item]:
        """The items of a partition whose sort key begins with `begins`, in the order of that key."""
        return self._queried(partition, f"begins_with({SORT}, :b)" if begins else "", newest_first, b=begins)

    def between(self, partition: str, first: str, last: str) -> Iterator[Item]:
        """The items of a partition from one sort key to another, both included."""
        return self._queried(partition, f"{SORT} BETWEEN :f AND :l", f=first, l=last)

    def _queried(self, partition: str, condition: str, newest_first: bool = False, **values: str) -> Iterator[Item]:
        wanted = {name: one for name, one in {"p": partition, **values}.items() if one}
        pages = self._client.get_paginator("query").paginate(
            TableName=self.name,
            ConsistentRead=True,
            ScanIndexForward=not newest_first,
            KeyConditionExpression=f"{PARTITION} = :p" + (f" AND {condition}" if condition else ""),
            ExpressionAttributeValues={f":{name}": {"S": one} for name, one in wanted.items()},
        )
        for page in pages:
            yield from map(_item, page["Items"])

    def put(self, key: ItemKey, document: bytes, *, expires: float | None = None) -> None:
        """Writes the item, whatever is there."""
        self._written(self._client.put_item, Item=_stored(key, document, 1, expires))

    def create(self, key: ItemKey, document: bytes, *, expires: float | None = None) -> Item:
        """Raises Raced where there is such an item."""
        return self._conditional(
            _stored(key, document, 1, expires), ConditionExpression=f"attribute_not_exists({PARTITION})"
        )

    def ensure(self, key: ItemKey, document: bytes) -> None:
        """Creates the item unless it exists."""
        try:
            self.create(key, document)
        except Raced:
            return

    def replace(self, item: Item, document: bytes, *, expires: float | None = None) -> Item:
        """Replaces the item; raises Raced where it is no longer this version."""
        return self._conditional(
            _stored(item.key, document, item.version + 1, expires),
            ConditionExpression=f"{VERSION} = :v",
            ExpressionAttributeValues={":v": {"N": str(item.version)}},
        )

    def delete(self, key: ItemKey) -> None:
        """Deletes the item; one that does not exist counts as deleted."""
        self._written(self._client.delete_item, Key=_key(key))

    def _written(self, write: Callable[..., object], **arguments: Any) -> None:
        """One write, sent again where it meets a transaction."""
        for pause in (*AGAIN_S, None):
            try:
                write(TableName=self.name, **arguments)
            except ClientError as problem:
                if pause is None or code_of(problem) != CONFLICT:
                    raise
                time.sleep(pause)
            else:
                return

    def _conditional(self, stored: Mapping[str, Any], **condition: Any) -> Item:
        """Where an answer is lost botocore sends the write again, and it meets itself: the error shows what is there."""
        try:
            self._written(
                self._client.put_item, Item=stored, ReturnValuesOnConditionCheckFailure="ALL_OLD", **condition
            )
        except ClientError as problem:
            if code_of(problem) != NOT_MET:
                raise
            there: Any = problem.response.get("Item")
            if not there or {**there, WRITTEN_AT: None} != {**stored, WRITTEN_AT: None}:
                raise Raced(f"{stored[PARTITION]['S']} {stored[SORT]['S']}") from None
        return _item(stored)


class HeldUp(Exception):
    """Items of nodes could not be read, or written, for seconds. The code of their job can bring that about, so it counts as no error of
    the function; where the whole table is short of throughput, its own alarms tell."""


def _next(pauses: Iterator[float], left: int) -> float:
    """The next pause. Raises HeldUp after the last one."""
    for pause in pauses:
        return pause
    raise HeldUp(f"DynamoDB left {left} keys of a batch out again and again")


def _key(key: ItemKey) -> dict[str, Any]:
    return {PARTITION: {"S": key.partition}, SORT: {"S": key.sort}}


def _stored(key: ItemKey, document: bytes, version: int, expires: float | None) -> dict[str, Any]:
    return {
        **_key(key),
        DOCUMENT: packed(document),
        VERSION: {"N": str(version)},
        WRITTEN_AT: {"N": f"{time.time():.3f}"},
        **({} if expires is None else {EXPIRES: {"N": str(round(expires))}}),
    }


def _item(stored: Mapping[str, Any], most: int = MOST_READ) -> Item:
    """Reads what this class, or a node, wrote. What a node wrote may lack anything but the key: it then counts as empty and old."""
    return Item(
        key=ItemKey(stored[PARTITION]["S"], stored[SORT]["S"]),
        document=unpacked(stored, most),
        version=int(_number(stored, VERSION)),
        at=_number(stored, WRITTEN_AT),
    )


def _number(stored: Mapping[str, Any], name: str) -> float:
    return float(stored.get(name, {}).get("N", 0))


def _date(answer: Mapping[str, Any]) -> float:
    """When AWS answered, by its own clock; whole seconds."""
    return parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"]).timestamp()
