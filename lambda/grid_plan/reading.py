"""Reads a line, or the defaults of all lines, and says for every wrong field what it may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from grid_plan.cells import SYNONYMS
from grid_plan.cluster_lines import OF_THE_INPUT
from grid_plan.columns import Channel, TrainingSpec
from grid_plan.job_columns import JOB_ONLY
from refusals.placeholders import find_placeholders
from refusals.synonyms import suggest
from refusals.texts import validate
from refusals.wording import lines, plain

ENTRIES = {"data": "addresses, as in s3://bucket/folder/"}
"""What the entries of a field may be, where this differs from the field itself."""


def read(fields: Mapping[str, Any], may_be: Mapping[str, str]) -> tuple[TrainingSpec, list[str]]:
    """Returns the fields that are right, and a line for every problem; wrong fields are left out."""
    known, problems = rename(fields)
    left = find_placeholders(known)
    known, problems = {name: one for name, one in known.items() if name not in left}, [*problems, *left.values()]
    spec, errors = validate(TrainingSpec, known)
    if spec is not None:
        return spec, problems
    problems += describe_errors(errors, may_be)
    wrong = {str(error["loc"][0]) for error in errors if error["loc"]}
    right = {name: known[name] for name in TrainingSpec.model_fields if name in known and name not in wrong}
    return TrainingSpec.model_validate(right), problems


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
    return lines([_simplify(error) for error in errors], may_be, ENTRIES, word=_describe_own)


def _describe_own(error: Mapping[str, Any]) -> str:
    """Words an error about a field that only a channel, or only a job on clusters, has; empty for any other."""
    path = [str(part) for part in error["loc"] if part != "[key]"]
    if error["type"] != "extra_forbidden":
        return ""
    if len(path) > 1:
        where = ".".join(plain(part) for part in path)
        hint = suggest(path[-1], Channel.model_fields)
        return f"{where}: there is no such field{hint}; allowed: {', '.join(Channel.model_fields)}"
    if path[0] in JOB_ONLY:
        return f"{path[0]}: is a field of jobs on clusters of our own; allowed: with the backend ec2, or left out"
    if path[0] in OF_THE_INPUT:
        return f"{path[0]}: means nothing in a line of a grid; allowed: {OF_THE_INPUT[path[0]]}"
    return ""


def _simplify(error: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**error, "type": "too_short"} if error["type"] == "string_too_short" else error
