"""DynamoDB: the model (dynamodb_model) answers for items; moto keeps tables, and here CloudFormation's properties are completed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.table import Table

from localaws.api import Service
from localaws.recorder import Answer
from localaws.services import dynamodb_expressions
from localaws.services.dynamodb_model import TAKEN, DynamoDb
from localaws.services.dynamodb_state import Knobs
from localaws.services.dynamodb_table import Schema

if TYPE_CHECKING:
    from localaws.recorder import Call, Environ
    from localaws.server import LocalAws

OF_ITEMS = frozenset(TAKEN) | {
    *("UpdateItem", "Scan", "BatchWriteItem", "TransactWriteItems", "TransactGetItems"),
    *("ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"),
}
"""Calls about items. The model refuses those that it does not have; moto would answer them from tables without items."""
WRITES = ("PutItem", "DeleteItem")
CONFLICT = "TransactionConflictException"
SWEEP_S = 0.5
"""How often expired items are looked for."""
Hear = Callable[[Schema, dict[str, Any]], None]
_current: list[Items] = []


class Region(DynamoDb):
    """The tables of moto in one region."""

    def __init__(self, aws: LocalAws, region: str, hear: Hear) -> None:
        speed, conditions = aws.conditions.speed, aws.conditions
        knobs = Knobs(
            lag_s=conditions.table_lag_s / speed,
            short_pages=conditions.table_short_pages,
            unprocessed=conditions.table_unprocessed,
            expiry_s=(conditions.expiry_delay_s[0] / speed, conditions.expiry_delay_s[1] / speed),
            partition_read=Knobs.partition_read * speed,
            partition_written=Knobs.partition_written * speed,
        )
        super().__init__(region, time, aws.chance, dynamodb_expressions, knobs)
        self._account, self._hear = aws.account, hear

    def schema(self, name: str) -> Schema | None:
        table = dynamodb_backends[self._account][self.region].tables.get(name)
        return None if table is None else schema_of(table)

    def every(self, sort: Any = None) -> list[dict[str, Any]]:
        """Every item of every table, or those under one sort key."""
        tables = list(dynamodb_backends[self._account][self.region].tables)
        return [item for name in tables for item in self.items(name, sort)]

    def tell(self, schema: Schema, record: dict[str, Any]) -> None:
        self._hear(schema, record)

    def expires(self, when: float) -> None:
        """Does nothing: `Items` sweeps all the time."""


def schema_of(table: Any) -> Schema:
    keys = [one["AttributeName"] for one in sorted(table.schema, key=lambda one: str(one["KeyType"]))]  # HASH, RANGE
    kinds = {one["AttributeName"]: one["AttributeType"] for one in table.attr}
    streams = bool(table.stream_specification and table.stream_specification.get("StreamEnabled"))
    return Schema(
        name=table.name,
        arn=table.table_arn,
        keys=tuple(keys),
        kinds=tuple(kinds[key] for key in keys),
        stream=f"{table.table_arn}/stream/{table.latest_stream_label}" if streams else "",
        view=table.stream_specification["StreamViewType"] if streams else "",
        ttl=table.ttl.get("AttributeName", "") if table.ttl["TimeToLiveStatus"] == "ENABLED" else "",
        made=id(table),
    )


class Items(Service[Region]):
    """The calls that the model answers; moto answers all others."""

    def __init__(self, aws: LocalAws) -> None:
        super().__init__(
            aws,
            "dynamodb",
            lambda region: Region(aws, region, self._hear),
            invalid="ValidationException",
            only=OF_ITEMS,
        )
        self._aws = aws
        self.hearers: list[Hear] = []
        """Take the records of all streams, in the order of the changes of a table."""

    def _hear(self, schema: Schema, record: dict[str, Any]) -> None:
        for hear in self.hearers:
            hear(schema, record)

    def answer(self, call: Call, environ: Environ) -> Answer | None:
        """Writes of functions and nodes sometimes meet a transaction on their item, as if somebody else had one."""
        writes = call.throttled and call.action in WRITES and self.takes(call)
        if writes and self._aws.chance.random() < self._aws.conditions.table_conflicts:
            told = {
                "__type": f"com.amazonaws.dynamodb.v20120810#{CONFLICT}",
                "message": "Transaction is ongoing for the item",
            }
            return Answer(400, json.dumps(told).encode(), {"Content-Type": "application/x-amz-json-1.0"}, CONFLICT)
        return super().answer(call, environ)

    def sweep(self) -> None:
        while not self._aws.stopping.wait(SWEEP_S):
            for region in list(self.regions.values()):
                region.sweep()


def install(aws: LocalAws) -> None:
    items = Items(aws)
    _current[:] = [items]
    aws.later(0, items.sweep)
    _complete(aws)


def items() -> Items:
    """Returns the tables' items of the local AWS that was installed last; raises LookupError if there is none."""
    if not _current:
        raise LookupError("localaws.services.dynamodb is not installed")
    return _current[-1]


def _complete(aws: LocalAws) -> None:
    """Makes CloudFormation set all of a table's properties, and change those that can change."""
    create = Table.create_from_cloudformation_json

    def part(resource: Mapping[str, Any]) -> dict[str, Any]:
        properties = dict(resource["Properties"])
        if encryption := properties.get("SSESpecification"):
            named = {name: value for name, value in encryption.items() if name != "SSEEnabled"}
            properties["SSESpecification"] = named | {"Enabled": _true(encryption.get("SSEEnabled"))}
        properties["DeletionProtectionEnabled"] = _true(properties.get("DeletionProtectionEnabled"))
        return {**resource, "Properties": properties}

    def created(resource_name: str, cloudformation_json: Any, account_id: str, region_name: str, **rest: Any) -> Any:
        made = create(resource_name, part(cloudformation_json), account_id, region_name, **rest)
        _set(aws.client("dynamodb", region_name), made, cloudformation_json["Properties"])
        return made

    def updated(
        original_resource: Any, new_resource_name: str, cloudformation_json: Any, account_id: str, region_name: str
    ) -> Any:
        properties = cloudformation_json["Properties"]
        if properties.get("TableName", original_resource.name) != original_resource.name or (
            properties["KeySchema"] != original_resource.schema
        ):
            original_resource.delete(account_id, region_name)
            return created(new_resource_name, cloudformation_json, account_id, region_name)
        original_resource.deletion_protection_enabled = _true(properties.get("DeletionProtectionEnabled"))
        original_resource.tags = properties.get("Tags") or []
        view = (original_resource.stream_specification or {}).get("StreamViewType")
        if (wanted := properties.get("StreamSpecification") or {}).get("StreamViewType") != view:
            original_resource.latest_stream_label = None  # another view is another stream
            original_resource.set_stream_specification(dict(wanted))
        _set(aws.client("dynamodb", region_name), original_resource, properties)
        return original_resource

    def delete(self: Any, account_id: str, region_name: str) -> None:
        dynamodb_backends[account_id][region_name].delete_table(self.name)

    aws.patch(Table, "create_from_cloudformation_json", staticmethod(created))
    aws.patch(Table, "update_from_cloudformation_json", staticmethod(updated))
    aws.patch(Table, "delete", delete)


def _set(client: Any, table: Any, properties: Mapping[str, Any]) -> None:
    """Sets what moto's CloudFormation drops."""
    recovery = properties.get("PointInTimeRecoverySpecification") or {}
    wanted: dict[str, Any] = {"PointInTimeRecoveryEnabled": _true(recovery.get("PointInTimeRecoveryEnabled"))}
    if wanted["PointInTimeRecoveryEnabled"] and "RecoveryPeriodInDays" in recovery:
        wanted["RecoveryPeriodInDays"] = int(recovery["RecoveryPeriodInDays"])
    client.update_continuous_backups(TableName=table.name, PointInTimeRecoverySpecification=wanted)
    if expiry := properties.get("TimeToLiveSpecification"):
        given = {"AttributeName": expiry["AttributeName"], "Enabled": _true(expiry["Enabled"])}
        client.update_time_to_live(TableName=table.name, TimeToLiveSpecification=given)


def _true(value: Any) -> bool:
    return value is True or str(value).lower() == "true"
