"""Turns the cells of a CSV manifest into the fields of its JSON form: which column is which field, and how its text is read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import Any

from grid_plan import strict
from refusals.fields import REGION
from refusals.wording import plain

PLAIN_COLUMNS = ("region", "data")
"""Columns of a file without a header."""
SYNONYMS = {"s3_location": "data", "command": "entrypoint"}
FOLDERS = {"hp.": "hyperparameters", "env.": "environment", "tag.": "tags", "metric.": "metrics"}
"""Prefixes of columns that each hold one entry of a field, by that field."""
WHOLE = re.compile(r"-?[0-9]{1,12}", re.ASCII)
NUMBER = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,12})?", re.ASCII)


class Wrong(ValueError):
    """A cell holds something that its column does not take; the message is a problem's second half."""


def _text(cell: str) -> str:
    return cell.strip()


def _whole(cell: str) -> int:
    if not WHOLE.fullmatch(cell.strip()):
        raise Wrong(f"{plain(cell)} is not a whole number")
    return int(cell)


def _number(cell: str) -> float:
    if not NUMBER.fullmatch(cell.strip()):
        raise Wrong(f"{plain(cell)} is not a number")
    return float(cell)


def _flag(cell: str) -> bool:
    if cell.strip().lower() not in ("true", "false"):
        raise Wrong(f"{plain(cell)} is neither true nor false")
    return cell.strip().lower() == "true"


def _words(cell: str) -> list[str]:
    return cell.split()


def _json(kind: type) -> Callable[[str], Any]:
    what = "object" if kind is dict else "list"

    def read(cell: str) -> Any:
        try:
            found = strict.loads(cell)
        except ValueError as problem:
            raise Wrong(f"{plain(cell)} is not JSON ({plain(str(problem))})") from None
        if not isinstance(found, kind):
            raise Wrong(f"{plain(cell)} is JSON, and no {what}")
        return found

    return read


READERS: dict[str, Callable[[str], Any]] = {
    "region": _text,
    "data": _text,
    "channel": _text,
    "mode": _text,
    "channels": _json(dict),
    "image": _text,
    "code": _text,
    "program": _text,
    "entrypoint": _json(list),
    "arguments": _json(list),
    "hyperparameters": _json(dict),
    "environment": _json(dict),
    "sweep": _json(dict),
    "instance_type": _text,
    "instance_count": _whole,
    "volume_gb": _whole,
    "market": _text,
    "max_hours": _number,
    "max_wait_hours": _number,
    "checkpoint": _text,
    "distribution": _text,
    "processes_per_host": _whole,
    "mpi_options": _text,
    "tags": _json(dict),
    "metrics": _json(dict),
    "subnets": _words,
    "security_groups": _words,
    "kms_key": _text,
    "volume_kms_key": _text,
    "network_isolation": _flag,
    "encrypt_traffic": _flag,
}
"""How the text of each column is read; texts of FOLDERS keep everything, including spaces and line ends."""


def is_data(row: list[str]) -> bool:
    """Whether a file's first record is data and not a header: it has a region, or an address in S3."""
    first = row[0].strip()
    return first == "auto" or re.match(REGION, first) is not None or any(_is_address(cell) for cell in row)


def _is_address(cell: str) -> bool:
    return cell.strip().startswith("s3://")


def columns(row: list[str]) -> tuple[list[str], list[str]]:
    """Returns the column names of the first record, and what is wrong with it."""
    if len(row) == 1 and (found := next((one for one in (";", "\t", "|") if one in row[0]), "")):
        named = {";": "semicolons", "\t": "tabs", "|": "bars"}[found]
        return [], [f"columns separated by {named}; allowed: commas"]
    if is_data(row):
        if len(row) == len(PLAIN_COLUMNS):
            return list(PLAIN_COLUMNS), []
        return [], [
            f"{len(row)} column{'s' if len(row) > 1 else ''} and no names for them; "
            "allowed: region,s3_location, or a first line that names the columns"
        ]
    names = [_name(cell) for cell in row]
    unknown = [name for name in names if name not in READERS and not _folder(name)]
    if unknown:
        return [], [_unknown(unknown)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        return [], [f"the column {plain(twice[0])} twice; allowed: each column once ({_synonyms()})"]
    return names, []


def _name(cell: str) -> str:
    stripped = cell.strip()
    if _folder(stripped):
        return stripped
    return SYNONYMS.get(stripped.lower(), stripped.lower())


def _synonyms() -> str:
    return ", ".join(f"{one} is {name}" for one, name in SYNONYMS.items())


def _folder(name: str) -> str:
    """Returns the prefix of a column that holds one entry of a field; empty for any other column."""
    return next((one for one in FOLDERS if name.startswith(one) and name != one), "")


def _unknown(names: list[str]) -> str:
    known = [*SYNONYMS, *READERS]
    near = difflib.get_close_matches(names[0], known, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    entries = ", ".join(f"{one}<name>" for one in FOLDERS)
    return f"the column {plain(names[0])}, which is unknown{hint}; allowed: {', '.join(known)}, {entries}"


def fields(names: list[str], row: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Returns one record as fields, and what is wrong with its cells. An empty cell sets nothing."""
    if len(row) != len(names):
        return {}, [f"has {len(row)} cells; allowed: {len(names)}, as many as columns"]
    found, problems = dict[str, Any](), list[str]()
    for name, cell in zip(names, row, strict=True):
        folder = _folder(name)
        if not (cell if folder else cell.strip()):
            continue
        field, value = (FOLDERS[folder], {name.removeprefix(folder): cell}) if folder else (name, None)
        if value is None:
            try:
                value = READERS[name](cell)
            except Wrong as wrong:
                problems.append(f"{name}: {wrong}")
                continue
        if isinstance(value, dict):
            entries = found.setdefault(field, {})
            problems += [
                f"{field}.{plain(one)}: is there twice; allowed: once" for one in value.keys() & entries.keys()
            ]
            entries.update(value)
        else:
            found[field] = value
    return found, problems
