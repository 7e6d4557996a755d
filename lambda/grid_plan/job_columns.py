"""Columns that only lines with the backend ec2 have, which are the fields of a request; how the text of their cells is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from grid_plan.cell_values import read_flag, read_json, read_number, read_text, read_whole, read_words
from grid_plan.columns import TrainingSpec
from job_requests.request import JobRequest

OF_THE_GRID = ("owner", "dry_run", "grid_line", "workbench")
"""Fields of a request that the grid sets, or has no use for."""
SYNONYM = "command"
"""Field of a request that a line calls entrypoint as well."""
JOB_ONLY = tuple(
    name for name in JobRequest.model_fields if name not in {*TrainingSpec.model_fields, *OF_THE_GRID, SYNONYM}
)


def _read_list(cell: str) -> Any:
    """Reads a list in JSON, or words with spaces between them; one word that is no list is what stands for it, as auto does."""
    if cell.startswith("["):
        return read_json(list)(cell)
    return cell if cell == "auto" else read_words(cell)


def _read_number_or_word(cell: str) -> Any:
    return cell if cell.isalpha() else read_whole(cell)


def _read_flag_or_word(cell: str) -> Any:
    return cell if cell == "auto" else read_flag(cell)


def _list_types(shape: Mapping[str, Any]) -> set[str]:
    """Returns the JSON types that a field takes."""
    found = {str(shape["type"])} if "type" in shape else set[str]()
    for one in shape.get("anyOf", ()):
        found |= _list_types(one)
    if "$ref" in shape:
        found |= _list_types(_SCHEMA["$defs"][str(shape["$ref"]).rpartition("/")[2]])
    if "const" in shape:
        found.add("string")
    for value in shape.get("enum", ()):
        found.add("boolean" if isinstance(value, bool) else "string")
    return found - {"null"}


def _reader_of(shape: Mapping[str, Any]) -> Callable[[str], Any]:
    kinds = _list_types(shape)
    if "array" in kinds:
        return _read_list
    if "object" in kinds:
        return read_json(dict)
    if "boolean" in kinds:
        return _read_flag_or_word
    if "integer" in kinds:
        return _read_number_or_word
    return read_number if "number" in kinds else read_text


_SCHEMA: Mapping[str, Any] = JobRequest.model_json_schema()
JOB_READERS: dict[str, Callable[[str], Any]] = {name: _reader_of(_SCHEMA["properties"][name]) for name in JOB_ONLY}


def schema() -> dict[str, Any]:
    """JSON Schema of a line, for `docs/reference/manifest.schema.json`."""
    found = TrainingSpec.model_json_schema()
    add_job_fields(found, found)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def add_job_fields(line: dict[str, Any], whole: dict[str, Any]) -> None:
    """Adds the fields of jobs to the schema of a line, which stands in the schema `whole`. Only lines with the backend ec2 have them."""
    own, jobs = line["properties"], _SCHEMA["properties"]
    line["properties"] = (
        own | {name: jobs[name] for name in JOB_ONLY} | {"code": {"anyOf": [own["code"], jobs["code"]]}}
    )
    whole["$defs"] = whole.get("$defs", {}) | _SCHEMA.get("$defs", {})
