"""Turns the cells of a CSV manifest into the fields of its JSON form: which column is which field, and how its text is read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from typing import Any

from grid_plan.cell_values import Wrong, read_flag, read_json, read_number, read_text, read_whole, read_words
from grid_plan.job_columns import JOB_READERS
from grid_plan.spellings import find_error, find_stand_in, trim
from refusals.fields import REGION
from refusals.wording import plain

PLAIN_COLUMNS = ("region", "data")
"""Columns of a file without a header."""
SYNONYMS = {"s3_location": "data", "command": "entrypoint"}
FOLDERS = {"hp.": "hyperparameters", "env.": "environment", "tag.": "tags", "metric.": "metrics"}
"""Prefixes of columns that each hold one entry of a field, by that field."""
TYPED = "hyperparameters"
"""The one of these fields whose entries may be numbers; those of the others are text."""
READERS: dict[str, Callable[[str], Any]] = {
    "region": read_text,
    "data": read_text,
    "channel": read_text,
    "mode": read_text,
    "channels": read_json(dict),
    "image": read_text,
    "code": read_text,
    "program": read_text,
    "entrypoint": read_json(list),
    "arguments": read_json(list),
    "hyperparameters": read_json(dict),
    "environment": read_json(dict),
    "sweep": read_json(dict),
    "instance_type": read_text,
    "instance_count": read_whole,
    "volume_gb": read_whole,
    "market": read_text,
    "max_hours": read_number,
    "max_wait_hours": read_number,
    "checkpoint": read_text,
    "distribution": read_text,
    "processes_per_host": read_whole,
    "mpi_options": read_text,
    "tags": read_json(dict),
    "metrics": read_json(dict),
    "subnets": read_words,
    "security_groups": read_words,
    "kms_key": read_text,
    "volume_kms_key": read_text,
    "network_isolation": read_flag,
    "encrypt_traffic": read_flag,
    "backend": read_text,
    **JOB_READERS,
}
"""How the text of each column is read, without spaces at its ends; texts of FOLDERS keep everything, including spaces and line ends."""


def is_data(row: list[str]) -> bool:
    """Whether a file's first record is data and not a header: it has a region, or an address in S3."""
    first = trim(row[0])
    return first == "auto" or re.match(REGION, first) is not None or any(_is_address(cell) for cell in row)


def _is_address(cell: str) -> bool:
    return trim(cell).startswith("s3://")


def columns(row: list[str]) -> tuple[list[str], list[str]]:
    """Returns the column names of the first record, and what is wrong with it. Empty cells at its end name nothing: spreadsheets pad lines
    with them."""
    row = _without_padding(row)
    if is_data(row):
        if len(row) == len(PLAIN_COLUMNS):
            return list(PLAIN_COLUMNS), []
        return [], [
            f"{len(row)} column{'s' if len(row) > 1 else ''} and no names for them; "
            "allowed: region,s3_location, or a first line that names the columns"
        ]
    if not all(trim(cell) for cell in row):
        return [], [
            "a column without a name, such as the index that pandas writes; allowed: a name for each column (df.to_csv(index=False))"
        ]
    return check_names(row)


def check_names(columns: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the names that fields have, or entries of them (`hp.lr`), for columns with a name, and what is wrong with them."""
    names = [_name(one) for one in columns]
    if unknown := [name for name in names if not _is_known(name)]:
        return [], [_unknown(unknown)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        return [], [f"the column {plain(twice[0])} twice; allowed: each column once ({_synonyms()})"]
    return names, []


def split_name(name: str) -> tuple[str, str]:
    """Returns the field of a column, and its entry there: `hyperparameters` and `lr` for `hp.lr`, an empty one for a whole field."""
    folder = _folder(name)
    return (FOLDERS[folder], name.removeprefix(folder)) if folder else (name, "")


def count_known(row: list[str]) -> int:
    """Returns how many cells of a first record are a column's name, a region or an address."""
    return sum(_is_known(_name(cell)) or is_data([cell]) for cell in row)


def _is_known(name: str) -> bool:
    return name in READERS or bool(_folder(name))


def _without_padding(row: list[str], least: int = 1) -> list[str]:
    """Returns the record without the empty cells at its end, but at least so many cells."""
    while len(row) > least and not trim(row[-1]):
        row = row[:-1]
    return row


def _name(cell: str) -> str:
    stripped = trim(cell)
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
    why = find_stand_in(names[0]) or "is unknown"
    return f"the column {plain(names[0])}, which {why}{hint}; allowed: {', '.join(known)}, {entries}"


def fields(names: list[str], row: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Returns one record as fields, and what is wrong with its cells. An empty cell sets nothing."""
    row = _without_padding(row, len(names))
    if len(row) != len(names):
        return {}, [f"has {len(row)} cells; allowed: {len(names)}, as many as columns"]
    found, problems = dict[str, Any](), list[str]()
    for name, cell in zip(names, row, strict=True):
        try:
            field, value = _entry(name, cell) if _folder(name) else _field(name, trim(cell))
        except Wrong as wrong:
            problems.append(str(wrong))
            continue
        if value is None:
            continue
        if isinstance(value, dict):
            entries = found.setdefault(field, {})
            problems += [f"{field}.{plain(one)}: appears twice; allowed: once" for one in value.keys() & entries.keys()]
            entries.update(value)
        else:
            found[field] = value
    return found, problems


def _field(name: str, cell: str) -> tuple[str, Any]:
    """Reads the cell of a column that is a field itself; None for an empty one. Raises Wrong."""
    if not cell:
        return name, None
    if why := find_stand_in(cell):
        raise Wrong(f"{name}: {plain(cell)} {why}")
    try:
        return name, READERS[name](cell)
    except Wrong as wrong:
        raise Wrong(f"{name}: {wrong}") from None


def _entry(name: str, cell: str) -> tuple[str, Any]:
    """Reads the cell of a column that holds one entry of a field; None for an empty one. Raises Wrong.

    The text travels unchanged, whatever it is: `nan` is what XGBoost takes for `missing`, and `None` is a depth. A warning says what it
    looks like. Only the error of a formula is refused, which is never meant; JSON Lines has such a text as well.
    """
    field, entry = split_name(name)
    if not cell:
        return field, None
    if why := find_error(cell):
        raise Wrong(f"{field}.{plain(entry)}: {plain(cell)} {why}; allowed: a value")
    return field, {entry: cell}
