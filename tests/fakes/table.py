"""DynamoDB on a virtual clock, and the stream that feeds functions: late, doubled, and out of order between keys."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from localaws.services import dynamodb_expressions
from localaws.services.dynamodb_mapping import Failed, Mapping, Record, Settings
from localaws.services.dynamodb_model import DynamoDb
from localaws.services.dynamodb_state import Knobs
from localaws.services.dynamodb_table import Schema
from tests.fakes.clock import Clock

ACCOUNT = "123456789012"
Weather = Callable[[Record], Iterable[float]]
"""A record to the delays, in seconds, after which it is delivered: two when it is doubled. A stream loses nothing."""
Target = Callable[[dict[str, Any]], Any]
"""Takes {"Records": [...]}. A batch for which it raises comes again."""


def fair(_: Record) -> Iterable[float]:
    """The usual: once, within a second."""
    return (0.3,)


@dataclass
class Rude:
    """Late by up to `late_s`; a share of the records comes twice, perhaps after newer ones."""

    late_s: float = 5.0
    doubled: float = 0.1
    chance: random.Random = field(default_factory=lambda: random.Random(0))

    def __call__(self, _: Record) -> Iterable[float]:
        times = 2 if self.chance.random() < self.doubled else 1
        return [self.chance.uniform(0.1, self.late_s) for _ in range(times)]


@dataclass
class _Around:
    """What a mapping needs of the fake."""

    table: FakeTable
    target: Target
    begin: Callable[[Callable[[], None]], None]

    @property
    def clock(self) -> Clock:
        return self.table.clock

    def at(self, when: float, action: Callable[[], None]) -> None:
        self.clock.at(when, lambda: self.begin(action))

    def delays(self, record: Record) -> Iterable[float]:
        return self.table.weather(record)

    def invoke(self, event: dict[str, Any]) -> Any:
        try:
            return self.target(event)
        except Exception as problem:
            raise Failed(str(problem)) from problem

    def bury(self, letter: dict[str, Any]) -> None:
        self.table.letters.append(letter)


class FakeTable(DynamoDb):
    """All tables of a region. `knobs` and `weather` may be changed at any time."""

    clock: Clock

    def __init__(self, region: str, clock: Clock, *, knobs: Knobs | None = None, seed: int = 0) -> None:
        super().__init__(region, clock, random.Random(seed), dynamodb_expressions, knobs)
        self.tables: dict[str, Schema] = {}
        self.weather: Weather = Rude()
        self.letters: list[dict[str, Any]] = []
        """What mappings have given up, as their on-failure destination receives it."""
        self._mappings: list[Mapping] = []

    def open(self, name: str, *, ttl: str = "expires", view: str = "NEW_IMAGE") -> Schema:
        """Makes a table with the keys `pk` and `sk`."""
        arn = f"arn:aws:dynamodb:{self.region}:{ACCOUNT}:table/{name}"
        stream = f"{arn}/stream/2026-01-01T00:00:00.000"
        self.tables[name] = Schema(name=name, arn=arn, ttl=ttl, view=view, stream=stream)
        return self.tables[name]

    def feed(
        self,
        name: str,
        target: Target,
        *,
        begin: Callable[[Callable[[], None]], None] = lambda action: action(),
        **settings: Any,
    ) -> None:
        """Maps the stream of a table to a function: `settings` are those of the mapping (fits, batch, window_s, retries ...). `begin`
        starts a delivery that is due, perhaps in a process of its own."""
        given = Settings(function="fake", stream=self.tables[name].stream, **settings)
        self._mappings.append(Mapping(given, _Around(self, target, begin)))

    def schema(self, name: str) -> Schema | None:
        return self.tables.get(name)

    def tell(self, schema: Schema, record: dict[str, Any]) -> None:
        for mapping in self._mappings:
            if mapping.settings.stream == schema.stream:
                mapping.take(record)

    def expires(self, when: float) -> None:
        self.clock.at(when, self.sweep)
