"""DynamoDB's expressions: moto parses and evaluates them; here each is parsed once, and calls only fill in their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.dynamodb.comparisons import (
    AttributeValue,
    ConditionExpressionParser,
    Func,
    IncorrectOperandType,
    Op,
    get_comparison_func,
)
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.parsing.key_condition_expression import parse_expression

from localaws.services.dynamodb_language import Names, Values
from localaws.services.dynamodb_values import Item, invalid, order

KINDS = tuple[tuple[str, str], ...]


class _Attributes:
    """An item as moto's expressions read it."""

    def __init__(self, item: Item | None) -> None:
        self._item = item or {}
        self.attrs = self

    def __contains__(self, name: object) -> bool:
        return name in self._item

    def __getitem__(self, name: str) -> Any:
        return DynamoType(dict(self._item[name]))


@dataclass(frozen=True)
class Condition:
    """A condition or filter, parsed. Whoever evaluates it holds the table's lock: the values are set into the tree."""

    tree: Any
    places: tuple[tuple[Any, str], ...]
    """The tree's values, and the names that the call gives them."""
    values: frozenset[str]
    names: frozenset[str]

    def holds(self, item: Item | None, values: Values) -> bool:
        for place, name in self.places:
            place.value = values[name][place.type]
        return bool(self.tree.expr(_Attributes(item)))


def condition(expression: str, names: Names, values: Values, what: str) -> Condition:
    """Raises Refused for an expression that DynamoDB does not take."""
    return _condition(expression, tuple(sorted(names.items())), _kinds(values), what)


def _kinds(values: Values) -> KINDS:
    for name, value in values.items():
        if len(value) != 1:
            raise invalid(
                f"ExpressionAttributeValues contains invalid value: Supplied AttributeValue is empty, must contain exactly one "
                f"of the supported datatypes for key {name}"
            )
    return tuple((name, next(iter(values[name]))) for name in sorted(values))


@lru_cache(maxsize=1024)
def _condition(expression: str, names: tuple[tuple[str, str], ...], kinds: KINDS, what: str) -> Condition:
    given = {name: {kind: name} for name, kind in kinds}
    parser = ConditionExpressionParser(expression, dict(names), given)  # type: ignore[arg-type,unused-ignore]
    tree = _parsed(what, parser.parse)
    places = tuple((one, one.value) for one in _values_in(tree))
    return Condition(
        tree, places, frozenset(parser.expr_attr_values_found), frozenset(map(str, parser.expr_attr_names_found))
    )


def _values_in(node: Any) -> Iterator[Any]:
    if isinstance(node, AttributeValue):
        yield node
    parts = (node.lhs, node.rhs) if isinstance(node, Op) else node.arguments if isinstance(node, Func) else ()
    for part in parts:
        yield from _values_in(part)


def _parsed(what: str, parse: Callable[[], Any]) -> Any:
    try:
        return parse()
    except JsonRESTError as problem:
        raise invalid(str(problem.message)) from None
    except KeyError as missing:
        name = missing.args[0]
        kind = "value" if str(name).startswith(":") else "name"
        raise invalid(
            f"Invalid {what}: An expression attribute {kind} used in expression is not defined; attribute {kind}: {name}"
        ) from None
    except (ValueError, IncorrectOperandType) as problem:
        raise invalid(f"Invalid {what}: Syntax error; {problem}") from None


@dataclass(frozen=True)
class KeyCondition:
    """What a query asks of keys, parsed."""

    partition: str
    """Name of the value that the partition key has."""
    comparison: str
    """How the sort key is compared, as moto names it; empty if it is not."""
    sorts: tuple[str, ...]
    """Names of the values that the sort key is compared with."""

    def range(self, values: Values) -> tuple[Callable[[Any], bool], Any]:
        """Returns what a sort key (by its order) has to fulfil, and the least one that can, None if there is no least one."""
        if not self.comparison:
            return lambda _: True, None
        wanted = [order(values[name]) for name in self.sorts]
        compare = get_comparison_func(self.comparison)
        return lambda sort: bool(compare(sort, *wanted)), None if self.comparison[0] == "<" else wanted[0]


def key_condition(expression: str, names: Names, values: Values, keys: tuple[str, ...]) -> KeyCondition:
    """Raises Refused for a condition that is not one on the keys of the table."""
    return _key_condition(expression, tuple(sorted(names.items())), _kinds(values), keys)


@lru_cache(maxsize=1024)
def _key_condition(
    expression: str, names: tuple[tuple[str, str], ...], kinds: KINDS, keys: tuple[str, ...]
) -> KeyCondition:
    given: dict[str, Any] = {name: {"S": name} for name, _ in kinds}
    schema = [{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)]

    def parse() -> Any:
        return parse_expression(" ".join(expression.split()), given, dict(names), schema)

    partitions, sorts, _ = _parsed("KeyConditionExpression", parse)
    comparison, compared = (sorts[0][1], sorts[0][2]) if sorts else ("", [])
    found = [partitions[0][1], *compared]
    for one in found:  # moto takes a word that is no value's name for a value of its own
        name = one["S"] if isinstance(one, dict) else one
        if name not in given:
            raise invalid(
                "Invalid KeyConditionExpression: An expression attribute value used in expression is not defined; "
                f"attribute value: {name}"
            )
    return KeyCondition(found[0]["S"], comparison, tuple(one["S"] for one in found[1:]))
