"""One table: its rows with what they were a moment ago, in the order of their keys."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from localaws.services.dynamodb_values import KEY_BYTES, Item, Value, invalid, order

Place = tuple[Any, Any]
"""A row's partition and sort key, by their order."""
MISMATCH = "The provided key element does not match the schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """What a table is."""

    name: str
    arn: str
    keys: tuple[str, ...] = ("pk", "sk")
    """Names of the partition key and, where there is one, of the sort key."""
    kinds: tuple[str, ...] = ("S", "S")
    stream: str = ""
    """ARN of the stream, empty for none."""
    view: str = "NEW_IMAGE"
    ttl: str = ""
    """Attribute with the time when an item expires; empty for none."""
    made: Any = None
    """Tells a table from an earlier one of its name."""


@dataclass(slots=True)
class State:
    """An item since a time; no item at all after a deletion."""

    since: float
    item: Item | None
    size: int = 0


@dataclass(slots=True)
class Row:
    """A key and its states, the newest last."""

    states: list[State] = field(default_factory=list)

    @property
    def newest(self) -> State:
        return self.states[-1] if self.states else State(0.0, None)

    def at(self, when: float) -> State:
        """Returns the state that somebody sees whose sight ends at `when`."""
        return next((one for one in reversed(self.states) if one.since <= when), State(0.0, None))

    def add(self, state: State, horizon: float) -> None:
        """States that ended before `horizon` are forgotten."""
        while len(self.states) > 1 and self.states[1].since <= horizon:
            del self.states[0]
        self.states.append(state)


@dataclass(slots=True)
class Partition:
    """Rows with the same partition key, and the units of the current second."""

    sorts: list[Any] = field(default_factory=list)
    rows: dict[Any, Row] = field(default_factory=dict)
    second: int = 0
    read: float = 0.0
    written: float = 0.0

    def between(self, first: Any, fits: Callable[[Any], bool]) -> list[Any]:
        """Returns the sort keys from `first` (None: from the beginning) for as long as they fit."""
        start = 0 if first is None else bisect_left(self.sorts, first)
        if first is not None and start < len(self.sorts) and self.sorts[start] == first and not fits(first):
            start += 1
        end = start
        while end < len(self.sorts) and fits(self.sorts[end]):
            end += 1
        return self.sorts[start:end]


class Table:
    """The rows of a table."""

    def __init__(self, made: Any) -> None:
        self.made = made
        self.partitions: dict[Any, Partition] = {}

    def row(self, place: Place) -> Row:
        """Returns the row of a key; it is a new one, which the table does not keep, if there is none."""
        partition = self.partitions.get(place[0])
        row = partition.rows.get(place[1]) if partition else None
        return row or Row()

    def partition(self, key: Any) -> Partition:
        if key not in self.partitions:
            self.partitions[key] = Partition()
        return self.partitions[key]

    def put(self, place: Place, state: State, horizon: float) -> None:
        partition = self.partition(place[0])
        row = partition.rows.get(place[1])
        if row is None:
            row = partition.rows[place[1]] = Row()
            insort(partition.sorts, place[1])
        row.add(state, horizon)
        if state.item is None and len(partition.rows) > 64:
            self._forget(partition, horizon)

    @staticmethod
    def _forget(partition: Partition, horizon: float) -> None:
        """Drops rows whose deletion everybody sees, once they are the larger part."""
        gone = {key for key, row in partition.rows.items() if row.newest.item is None and row.newest.since <= horizon}
        if 2 * len(gone) > len(partition.rows):
            partition.rows = {key: row for key, row in partition.rows.items() if key not in gone}
            partition.sorts = [key for key in partition.sorts if key not in gone]

    def items(self, sort: Any = None) -> Iterator[Item]:
        """Yields what is true, in the order of keys within each partition; only what has that sort key, if one is given."""
        for partition in self.partitions.values():
            for key in partition.sorts if sort is None else partition.rows.keys() & {sort}:
                if (item := partition.rows[key].newest.item) is not None:
                    yield item


def place(schema: Schema, given: Mapping[str, Value], *, alone: bool) -> Place:
    """Returns the place of an item, or (`alone`) of a key that has nothing else. Raises Refused for one that has none."""
    if alone and len(given) != len(schema.keys):
        raise invalid(MISMATCH)
    found = [_part(schema, number, given, alone) for number in range(len(schema.keys))]
    return found[0], found[1] if len(found) > 1 else b""


def _part(schema: Schema, number: int, given: Mapping[str, Value], alone: bool) -> Any:
    name, kind = schema.keys[number], schema.kinds[number]
    value = given.get(name)
    if value is None:
        raise invalid(
            MISMATCH if alone else f"One or more parameter values were invalid: Missing the key {name} in the item"
        )
    if kind not in value:
        found = next(iter(value), "")
        wrong = (
            f"One or more parameter values were invalid: Type mismatch for key {name} expected: {kind} actual: {found}"
        )
        raise invalid(MISMATCH if alone else wrong)
    if value[kind] in ("", b""):
        kinds = "string" if kind == "S" else "binary"
        raise invalid(
            "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty "
            f"{kinds} value. Key: {name}"
        )
    part = order(value)
    if kind != "N" and len(part) > KEY_BYTES[number]:
        which = ("hashkey has exceeded the maximum size limit of", "rangekey has exceeded the maximum size limit of ")
        raise invalid(f"One or more parameter values were invalid: Size of {which[number]}{KEY_BYTES[number]} bytes")
    return part
