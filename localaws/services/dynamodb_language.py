"""What the model of DynamoDB needs of its surroundings: chance, and somebody who reads expressions (dynamodb_expressions)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableSequence, Sequence
from typing import Any, Protocol, TypeVar

from localaws.services.dynamodb_values import Item, Value, invalid

Values = Mapping[str, Value]
Names = Mapping[str, str]
T = TypeVar("T")


class Chance(Protocol):
    """A source of randomness: `random.Random`, which tests seed."""

    def random(self) -> float: ...

    def uniform(self, a: float, b: float, /) -> float: ...

    def randint(self, a: int, b: int, /) -> int: ...

    def choice(self, seq: Sequence[T], /) -> T: ...

    def shuffle(self, x: MutableSequence[Any], /) -> None: ...


class Condition(Protocol):
    """A condition or filter. Whoever evaluates it holds the lock of its tables."""

    @property
    def values(self) -> frozenset[str]:
        """Names of the values in it."""

    @property
    def names(self) -> frozenset[str]:
        """Names in it, as they are written."""

    def holds(self, item: Item | None, values: Values, /) -> bool: ...


class KeyCondition(Protocol):
    """What a query asks of keys."""

    @property
    def partition(self) -> str:
        """Name of the value that the partition key has."""

    @property
    def sorts(self) -> tuple[str, ...]:
        """Names of the values that the sort key is compared with."""

    def range(self, values: Values, /) -> tuple[Callable[[Any], bool], Any]:
        """Returns what a sort key (by its order) has to fulfil, and the least one that can, None if there is no least one."""


class Language(Protocol):
    """Reads expressions. Raises Refused for those that DynamoDB does not take."""

    def condition(self, expression: str, names: Names, values: Values, what: str, /) -> Condition: ...

    def key_condition(
        self, expression: str, names: Names, values: Values, keys: tuple[str, ...], /
    ) -> KeyCondition: ...


def check_used(given: Values | Names, used: frozenset[str], what: str) -> None:
    """Raises Refused for a value or name that no expression of the call has."""
    if extra := sorted(set(given) - used):
        word = "Value" if what == "ExpressionAttributeValues" else "Name"
        raise invalid(f"{word} provided in {what} unused in expressions: keys: {{{', '.join(extra)}}}")
