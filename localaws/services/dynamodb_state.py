"""The state of DynamoDB in one region: its tables, the age of what a read shows, and the units that calls use."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from localaws.model import Clock, Refused
from localaws.services.dynamodb_language import Chance, Language
from localaws.services.dynamodb_table import Partition, Schema, Table

THROTTLES = ("ThrottlingException", "ProvisionedThroughputExceededException")
"""An on-demand table throttles with either."""


@dataclass(kw_only=True)
class Knobs:
    """How rude DynamoDB is. Durations are in seconds of the clock; shares lie between 0 and 1."""

    lag_s: float = 1.0
    """The greatest age of what a read shows that is not strongly consistent. AWS: "usually one second or less"."""
    short_pages: float = 0.2
    """Share of queries whose page ends early; the last page may then be empty."""
    unprocessed: float = 0.1
    """Share of a batch's keys that the answer leaves in UnprocessedKeys, never all."""
    throttled: float = 0.0
    """Share of calls that are throttled."""
    conflicts: int = 0
    """So many writes meet a transaction on their item, and nothing is written."""
    contested: set[bytes] = field(default_factory=set)
    """Partition keys whose items always have a transaction under way."""
    expiry_s: tuple[float, float] = (60.0, 48 * 3600.0)
    """From an item's expiry to its deletion: "within a few days", formerly "typically within 48 hours"."""
    partition_read: float = 3000.0
    """Read units a second of one partition key."""
    partition_written: float = 1000.0

    @staticmethod
    def plain() -> Knobs:
        """Returns knobs for whoever measures: no lag, full pages, no throttles; the limits of a partition remain."""
        return Knobs(lag_s=0.0, short_pages=0.0, unprocessed=0.0)


@dataclass(slots=True)
class Spent:
    """What calls of one kind used."""

    calls: int = 0
    read: float = 0.0
    """Read request units."""
    written: float = 0.0


class DynamoDbState(ABC):
    """One region, without its API. A subclass says which tables there are."""

    def __init__(
        self, region: str, clock: Clock, chance: Chance, language: Language, knobs: Knobs | None = None
    ) -> None:
        self.region, self.clock, self.chance, self.language = region, clock, chance, language
        self.knobs = knobs or Knobs()
        self.spent: dict[tuple[str, str], Spent] = defaultdict(Spent)
        """By operation and kind of key: the partition key up to its first `#`."""
        self.lock = threading.RLock()
        self._tables: dict[str, Table] = {}

    @abstractmethod
    def schema(self, name: str) -> Schema | None:
        """Returns the table of that name."""

    # for tests and benchmarks

    def items(self, name: str, sort: Any = None) -> list[dict[str, Any]]:
        """Returns what the table truly holds, in DynamoDB's form; under one sort key alone, if it is given as `order` has it."""
        with self.lock:
            return [dict(one) for one in self.table(self.found(name)).items(sort)]

    def total(self) -> Spent:
        """Returns what all calls used together."""
        with self.lock:
            every = list(self.spent.values())
        return Spent(sum(one.calls for one in every), sum(one.read for one in every), sum(one.written for one in every))

    # what calls see, and what they use

    def found(self, name: str) -> Schema:
        """Returns the schema of a table, by its name or ARN. Raises Refused."""
        schema = self.schema(name.rpartition("/")[2])
        if schema is None:
            raise Refused("ResourceNotFoundException", "Requested resource not found")
        return schema

    def table(self, schema: Schema) -> Table:
        table = self._tables.get(schema.name)
        if table is None or table.made != schema.made:
            table = self._tables[schema.name] = Table(schema.made)
        return table

    def sight(self, consistent: bool) -> float:
        """Returns the time whose state a read shows."""
        now = self.clock.time()
        return now if consistent or not self.knobs.lag_s else now - self.chance.uniform(0, self.knobs.lag_s)

    def spend(self, operation: str, key: Any, partition: Partition, *, read: float = 0.0, written: float = 0.0) -> None:
        """Counts the units of a call, or of a part of one. Raises Refused if the call is throttled."""
        second = int(self.clock.time())
        if partition.second != second:
            partition.second, partition.read, partition.written = second, 0.0, 0.0
        most = (
            partition.read + read > self.knobs.partition_read,
            partition.written + written > self.knobs.partition_written,
        )
        if any(most) or (self.knobs.throttled and self.chance.random() < self.knobs.throttled):
            raise Refused(
                self.chance.choice(THROTTLES), "Throughput exceeds the current capacity of your table or index."
            )
        partition.read += read
        partition.written += written
        one = self.spent[operation, _kind(key)]
        one.calls += 1
        one.read += read
        one.written += written

    def consumed(self, schema: Schema, params: Mapping[str, Any], units: float) -> dict[str, Any]:
        if params.get("ReturnConsumedCapacity", "NONE") == "NONE":
            return {}
        return {"ConsumedCapacity": {"TableName": schema.name, "CapacityUnits": units}}


def _kind(key: Any) -> str:
    text = key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)
    return text.partition("#")[0]
