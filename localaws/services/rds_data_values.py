"""How the Data API writes parameters into a statement, and a result into fields; PostgreSQL's types and texts on the other side."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from psycopg import Connection, adapters
from psycopg.pq import Format
from psycopg.types.string import TextLoader

from localaws.model import Refused

TOKENS = re.compile(
    r"""[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | (?P<tag>\$\w*\$).*?(?P=tag)
    | --[^\n]* | /\*.*?\*/ | :: | :(?P<name>[A-Za-z_]\w*)""",
    re.DOTALL | re.VERBOSE,
)
"""Where a name after a colon is a parameter: neither in a text, a quoted name or a comment, nor in a cast."""
HINTS = {"JSON": "json", "UUID": "uuid", "TIMESTAMP": "timestamp", "DATE": "date", "TIME": "time", "DECIMAL": "numeric"}
PLAIN = {
    "booleanValue": "bool",
    "longValue": "int8",
    "doubleValue": "float8",
    "stringValue": "text",
    "blobValue": "bytea",
}
"""The type of a parameter without a hint. PostgreSQL casts a text to a column's type only if the hint says so."""
AS_TEXT = (
    *("numeric", "date", "time", "timetz", "timestamp", "interval", "uuid", "json", "jsonb", "inet", "cidr", "record"),
    *("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"),
)
"""Types whose values are texts in the Data API, as PostgreSQL writes them."""
JDBC = {"bool": -7, "int2": 5, "int4": 4, "int8": -5, "float4": 7, "float8": 8, "numeric": 2, "bytea": -2}
JDBC |= {"text": 12, "varchar": 12, "bpchar": 1, "name": 12, "date": 91, "time": 92, "timestamp": 93, "timestamptz": 93}
"""java.sql.Types, which columnMetadata has; those of arrays are 2003, and of all others 1111."""
NUMERIC = adapters.types["numeric"].oid
NUMBERS = frozenset({"int2", "int4", "int8", "float4", "float8", "numeric"})
Field = dict[str, Any]


class MomentLoader(TextLoader):
    """A time with a zone comes in UTC, without the zone."""

    def load(self, data: Any) -> str:
        return re.sub(r"\+00$", "", str(super().load(data)))


def prepare(connection: Connection[Any]) -> None:
    """Makes the connection's results those of the Data API."""
    for name in AS_TEXT:
        connection.adapters.register_loader(name, TextLoader)
    connection.adapters.register_loader("timestamptz", MomentLoader)


def loader(connection: Connection[Any], oid: int) -> Callable[[bytes], Any]:
    """Returns what makes a Python value of PostgreSQL's text of this type; a type that nobody knows stays a text."""
    found = connection.adapters.get_loader(oid, Format.TEXT) or TextLoader
    return found(oid, connection).load


def bind(sql: str, parameters: Sequence[Mapping[str, Any]]) -> tuple[str, list[bytes | None], list[int]]:
    """Numbers the named parameters: returns the statement, the values that it uses and their types. Raises Refused.

    A name that was not given stays as it is, and PostgreSQL refuses the colon.
    """
    given = {one.get("name", ""): one for one in parameters}
    used: list[str] = []

    def number(token: re.Match[str]) -> str:
        name = token["name"]
        if name not in given:
            return token[0]
        if name not in used:
            used.append(name)
        return f"${used.index(name) + 1}"

    text = TOKENS.sub(number, sql)
    values = [_write(given[name]) for name in used]
    return text, [value for value, _ in values], [kind for _, kind in values]


def _write(parameter: Mapping[str, Any]) -> tuple[bytes | None, int]:
    ((kind, value),) = (parameter.get("value") or {"isNull": True}).items()
    if kind == "arrayValue":
        raise Refused("BadRequestException", "Array parameters are not supported.")
    hint = HINTS.get(parameter.get("typeHint", ""))
    if kind == "isNull":
        return None, _oid(hint) if hint else 0
    text = "\\x" + value.hex() if kind == "blobValue" else str(value)
    return text.encode(), _oid(hint if hint and kind == "stringValue" else PLAIN[kind])


def _oid(name: str) -> int:
    return adapters.types[name].oid


def field(value: Any, options: Mapping[str, str]) -> Field:
    """Returns a value as the Data API gives it; `options` are the call's resultSetOptions."""
    if value is None:
        return {"isNull": True}
    if isinstance(value, bool):
        return {"booleanValue": value}
    if isinstance(value, int):
        return {"stringValue": str(value)} if options.get("longReturnType") == "STRING" else {"longValue": value}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, bytes):
        return {"blobValue": value}
    return {"arrayValue": _array(value)} if isinstance(value, list) else {"stringValue": str(value)}


def _array(values: list[Any]) -> dict[str, Any]:
    if any(isinstance(one, list) for one in values):
        raise Refused("UnsupportedResultException", "The result contains a multidimensional array.")
    (kind,) = {next(iter(field(one, {}))) for one in values if one is not None} or {"stringValue"}
    if None in values or kind == "blobValue":
        raise Refused("UnsupportedResultException", "The result contains an unsupported array.")
    return {kind + "s": values}


def number(value: Any, options: Mapping[str, str]) -> Any:
    """Returns the text of a decimal as a number if the call wants one."""
    if options.get("decimalReturnType") != "DOUBLE_OR_LONG" or not isinstance(value, str):
        return value
    return float(value) if set(value) - set("-0123456789") else int(value)


def describe(name: str, oid: int, table: str = "") -> dict[str, Any]:
    """Returns a column's metadata. Whether it may be null is 2, "unknown": that takes the table's own description."""
    info = adapters.types.get(oid)
    kind = info.name if info else "unknown"
    array = bool(info and oid == info.array_oid)
    return {
        "name": name,
        "label": name,
        "typeName": "_" + kind if array else kind,
        "type": 2003 if array else JDBC.get(kind, 1111),
        "arrayBaseColumnType": JDBC.get(kind, 1111) if array else 0,
        "nullable": 2,
        "isSigned": kind in NUMBERS and not array,
        "isCaseSensitive": kind not in NUMBERS,
        "isAutoIncrement": False,
        "isCurrency": kind == "money",
        "precision": 0,
        "scale": 0,
        "schemaName": "",
        "tableName": table,
    }


def format_records(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Returns rows as `formatRecordsAs=JSON` has them: an object a row, by the columns' labels."""
    return json.dumps([dict(zip(names, row, strict=True)) for row in rows], default=lambda one: one.hex())
