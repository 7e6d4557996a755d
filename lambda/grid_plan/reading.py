"""Reads a line, or the defaults of all lines, and says for every wrong field what it may be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from grid_plan.cells import SYNONYMS
from grid_plan.columns import Channel, TrainingSpec
from grid_plan.job_columns import JOB_ONLY
from refusals.wording import line, plain

ENTRIES = {"data": "addresses, as in s3://bucket/folder/"}
"""What the entries of a field may be, where this differs from the field itself."""


def read(fields: Mapping[str, Any], may_be: Mapping[str, str]) -> tuple[TrainingSpec, list[str]]:
    """Returns the fields that are right, and a line for every problem; wrong fields are left out."""
    known, problems = rename(fields)
    try:
        return TrainingSpec.model_validate(known), problems
    except ValidationError as refused:
        errors = refused.errors(include_url=False)
    problems += describe_errors(errors, may_be)
    wrong = {str(error["loc"][0]) for error in errors if error["loc"]}
    return TrainingSpec.model_validate({name: value for name, value in known.items() if name not in wrong}), problems


def rename(fields: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Replaces synonyms by the field's own name, and drops fields that are null."""
    known, problems = {name: value for name, value in fields.items() if value is not None}, list[str]()
    for other, name in SYNONYMS.items():
        if other in known:
            value = known.pop(other)
            if name in known:
                problems.append(f"{other}: is another name of {name}, and the line has both; allowed: one of them")
            else:
                known[name] = value
    return known, problems


def describe_errors(errors: Iterable[Any], may_be: Mapping[str, str]) -> list[str]:
    """Puts pydantic's errors into words."""
    return list(dict.fromkeys(_describe_error(error, may_be) for error in errors))


def _describe_error(error: Mapping[str, Any], may_be: Mapping[str, str]) -> str:
    path = [str(part) for part in error["loc"] if part != "[key]"]
    if error["type"] == "extra_forbidden" and len(path) > 1:
        near = difflib.get_close_matches(path[-1], Channel.model_fields, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        where = ".".join(plain(part) for part in path)
        return f"{where}: there is no such field{hint}; allowed: {', '.join(Channel.model_fields)}"
    if error["type"] == "extra_forbidden" and path[0] in JOB_ONLY:
        return f"{path[0]}: is a field of jobs on clusters of our own; allowed: with the backend ec2, or left out"
    if error["type"] == "extra_forbidden":
        error = {**error, "loc": (path[0],)}
    if error["type"] == "string_too_short":
        error = {**error, "type": "too_short"}
    return line(error, may_be, ENTRIES)
