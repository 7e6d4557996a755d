"""What IAM checks before a call to DynamoDB: the tables, the partition keys that the call names, and who calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from localaws.services.dynamodb_expressions import key_condition

if TYPE_CHECKING:
    from localaws.iam.account import Account
    from localaws.iam.parameters import Context
    from localaws.recorder import Call

OF_TABLE = frozenset({"DescribeTable", "DescribeTimeToLive", "DescribeContinuousBackups"})
"""Calls about a table that touch none of its items."""
PARTS = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}
"""The right that a part of a transaction needs."""
Question = tuple[str, str, "Context"]


def questions(call: Call, account: Account) -> list[Question] | None:
    """Returns (action, resource, context) of everything that IAM checks; None for a call that nobody taught."""
    given = call.parameters
    match call.action:
        case "PutItem":
            return [_about(call, account, call.action, given["TableName"], [given["Item"]])]
        case "GetItem" | "DeleteItem" | "UpdateItem":
            return [_about(call, account, call.action, given["TableName"], [given["Key"]])]
        case "Query":
            return [_query(call, account)]
        case "BatchGetItem":
            wanted: Mapping[str, Any] = given["RequestItems"]
            return [_about(call, account, call.action, table, one["Keys"]) for table, one in wanted.items()]
        case "TransactWriteItems":
            return list(_transaction(call, account))
        case "ListStreams":
            return [(call.name, "*", {})]
        case "DescribeStream" | "GetShardIterator":
            return [(call.name, given["StreamArn"], {})]
        case "GetRecords":
            return [(call.name, given["ShardIterator"].partition("|")[0], {})]
    return [(call.name, _arn(call, given["TableName"]), {})] if call.action in OF_TABLE else None


def _about(call: Call, account: Account, action: str, table: str, items: list[Mapping[str, Any]]) -> Question:
    key = account.table_keys(call.region, _name(table))[0]
    return _build_question(call, account, action, table, [item[key] for item in items])


def _query(call: Call, account: Account) -> Question:
    given = call.parameters
    values, names = given["ExpressionAttributeValues"], given.get("ExpressionAttributeNames", {})
    keys = account.table_keys(call.region, _name(given["TableName"]))
    wanted = key_condition(given["KeyConditionExpression"], names, values, keys)
    return _build_question(call, account, call.action, given["TableName"], [values[wanted.partition]])


def _transaction(call: Call, account: Account) -> Iterator[Question]:
    for part in call.parameters["TransactItems"]:
        ((kind, one),) = part.items()
        yield _about(call, account, PARTS[kind], one["TableName"], [one.get("Item") or one["Key"]])


def _build_question(call: Call, account: Account, action: str, table: str, keys: list[Mapping[str, Any]]) -> Question:
    """A key that is no text is shown to IAM as its text."""
    leading = sorted({str(value) for key in keys for value in key.values()})
    context: Context = {"dynamodb:LeadingKeys": leading}
    if call.session:  # otherwise a policy that names the caller lets nobody in
        context["aws:userid"] = f"{account.role_id(call.role)}:{call.session}"
    return f"dynamodb:{action}", _arn(call, table), context


def _name(table: str) -> str:
    return table.rpartition("/")[2]


def _arn(call: Call, table: str) -> str:
    return f"arn:aws:dynamodb:{call.region}:{call.role.split(':')[4]}:table/{_name(table)}"
