"""Short ways to ask the fake DynamoDB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3

from tests.fakes.aws import Aws
from tests.fakes.faked import ONCE, connected

TABLE = "yard"


@contextmanager
def with_table() -> Iterator[Aws]:
    """A deployment on the fake with one table."""
    with connected() as fake:
        fake.table.open(TABLE)
        yield fake


def table() -> Any:
    return boto3.client("dynamodb", config=ONCE)


def key(sk: str = "s", pk: str = "job#a") -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def put(sk: str = "s", pk: str = "job#a", *, version: int = 1, **rest: Any) -> Any:
    fields = {name: rest.pop(name) for name in ("doc", "expires") if name in rest}
    return table().put_item(TableName=TABLE, Item={**key(sk, pk), "version": {"N": str(version)}, **fields}, **rest)


def get(sk: str = "s", pk: str = "job#a", *, consistent: bool = True) -> Any:
    return table().get_item(TableName=TABLE, Key=key(sk, pk), ConsistentRead=consistent).get("Item")


def ask(prefix: str = "", pk: str = "job#a", **more: Any) -> Any:
    condition, values = "pk = :pk", {":pk": {"S": pk}}
    if prefix:
        condition, values = "pk = :pk AND begins_with(sk, :s)", values | {":s": {"S": prefix}}
    given = {"KeyConditionExpression": condition, "ExpressionAttributeValues": values, "ConsistentRead": True}
    return table().query(TableName=TABLE, **(given | more))


def every(prefix: str = "", **more: Any) -> list[str]:
    """The sort keys on all pages."""
    found, start = [], dict[str, Any]()
    while True:
        page = ask(prefix, **more, **start)
        found += [one["sk"]["S"] for one in page["Items"]]
        if "LastEvaluatedKey" not in page:
            return found
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
