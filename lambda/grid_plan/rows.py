"""Turns the rows of a query into lines of a manifest in its JSON form."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from aws.data_api import Column
from grid_plan import cells, strict
from grid_plan.cell_values import Wrong
from refusals.wording import plain

NAMELESS = "?column?"
"""What PostgreSQL calls the column of an expression to which the query gives no name."""
BYTES = frozenset({"bytea", "_bytea"})
JSON_TYPES = frozenset({"json", "jsonb"})
NUMBERS = frozenset({"numeric", "float4", "float8"})
WHOLE = re.compile(r"-?[0-9]{1,40}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Target:
    """Where the values of a column go."""

    field: str
    entry: str
    """Name of the field's entry, as for the column `hp.lr`; empty where the column is the field itself."""
    type: str
    """PostgreSQL's name of its type."""

    def __str__(self) -> str:
        return f"{self.field}.{plain(self.entry)}" if self.entry else self.field


def find_targets(columns: Sequence[Column]) -> tuple[list[Target], list[str]]:
    """Returns where each column goes, those with an entry last, or what is wrong with the columns."""
    if not columns:
        return [], ["gives no column; allowed: a column for each field of a manifest's line"]
    if any(one.name == NAMELESS for one in columns):
        return [], ['gives a column without a name; allowed: a name for each column, as in `select 0.1 as "hp.lr"`']
    names, problems = cells.check_names([one.name for one in columns])
    problems += [
        f"the column {plain(name)} of the type {one.type}; allowed: text, numbers, true and false, times, JSON, and lists of them"
        for name, one in zip(names, columns, strict=False)
        if one.type in BYTES
    ]
    targets = [Target(*cells.split_name(name), one.type) for name, one in zip(names, columns, strict=False)]
    return targets, [f"gives {problem}" for problem in problems]


def write_line(targets: Sequence[Target], row: Sequence[Any]) -> tuple[bytes, list[str]]:
    """Returns a row as a line of JSON with its line end, and what is wrong with its values. A null sets nothing."""
    fields, problems, entries = dict[str, Any](), list[str](), list[tuple[Target, Any]]()
    for target, given in zip(targets, row, strict=True):
        try:
            value = read_value(target.type, given)
        except Wrong as wrong:
            problems.append(f"{target}: {wrong}")
            continue
        if value is None:
            continue
        if target.entry:
            entries.append((target, _keep_digits(target, given, value)))
        else:
            fields[target.field] = value
    for target, value in entries:  # after the fields, so that a column of JSON is not overwritten by one of its entries
        whole = fields.setdefault(target.field, {})
        if not isinstance(whole, dict) or target.entry in whole:
            problems.append(f"{target}: appears twice; allowed: once")
            continue
        whole[target.entry] = value if target.field == cells.TYPED or isinstance(value, str) else json.dumps(value)
    return (json.dumps(fields, ensure_ascii=False) + "\n").encode(), problems


def _keep_digits(target: Target, given: Any, value: Any) -> Any:
    """Returns what the database wrote of a number where its digits would get lost: 3.10 in a text, and more digits than a float has in a
    hyperparameter."""
    if target.type not in NUMBERS or not isinstance(given, str):
        return value
    is_exact = target.field == cells.TYPED and Decimal(given) == Decimal(repr(value))
    return value if is_exact else given


def read_value(kind: str, value: Any) -> Any:
    """Returns a value as JSON has it; `kind` is PostgreSQL's name of its type. Raises Wrong."""
    if isinstance(value, list):
        return [read_value(kind.removeprefix("_"), one) for one in value]
    if kind in JSON_TYPES and isinstance(value, str):
        return _parse(value)
    if kind in NUMBERS and isinstance(value, str):
        value = int(value) if WHOLE.fullmatch(value) else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise Wrong(f"{value} is not a finite number; allowed: numbers that JSON has")
    return value


def _parse(text: str) -> Any:
    try:
        return strict.loads(text)
    except ValueError as problem:
        raise Wrong(f"{plain(text)} is not JSON ({plain(str(problem))}); allowed: JSON") from None
