"""What CloudFormation's registry says of a resource type: cfn-lint has its schemas.

A schema names the properties that only a new resource can get; all others are updated in place."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any

from cfnlint.schema import PROVIDER_SCHEMA_MANAGER, ResourceNotFoundError

from tools.synth_diff.values import ValuePath

REGION = "us-east-1"
"""Has every resource type."""
IMAGES = "AWS::ECR::Repository"
"""Holds images, and is not among cfn-lint's types that hold data."""


class Update(str, Enum):
    """What CloudFormation does to a resource when a property changes."""

    REPLACED = "replaced"
    MAY_BE_REPLACED = "may be replaced"
    IN_PLACE = "updated in place"
    UNKNOWN = "updated in a way that no schema tells"


WORST = tuple(Update)
"""The worst first."""


def find_update(kind: str, path: ValuePath, values: Iterable[Any]) -> Update:
    """Returns what a change below `path`, of a resource's properties, does to the resource; `values` are the value before and after."""
    schema = _read_schema(kind)
    if schema is None:
        return Update.UNKNOWN
    for field, update in (
        ("createOnlyProperties", Update.REPLACED),
        ("conditionalCreateOnlyProperties", Update.MAY_BE_REPLACED),
    ):
        pointers = [tuple(pointer.split("/")[2:]) for pointer in schema.get(field, [])]
        if any(_concerns(pointer, path, values) for pointer in pointers):
            return update
    return Update.IN_PLACE


def find_name(kind: str) -> str | None:
    """Returns the property with which a template gives a resource its physical name, or None: `QueueName` of a queue, `Name` of a rule."""
    schema = _read_schema(kind) or {}
    own = kind.rpartition("::")[2]
    for pointer in schema.get("createOnlyProperties", []):
        name: str = pointer.removeprefix("/properties/")
        for suffix in ("Name", "Identifier"):
            if name.endswith(suffix) and own.endswith(name.removesuffix(suffix)):
                return name
    return None


def is_deleted_first(kind: str) -> bool:
    """Returns whether CloudFormation deletes the old resource before it creates the one that replaces it."""
    return (_read_schema(kind) or {}).get("replacementStrategy") == "delete_then_create"


@cache
def find_stateful() -> frozenset[str]:
    """Returns the types whose resources hold data."""
    table = files("cfnlint.data.AdditionalSpecs").joinpath("StatefulResources.json").read_text("utf-8")
    return frozenset(json.loads(table)["ResourceTypes"]) | {IMAGES}


@cache
def _read_schema(kind: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, kind).schema
    except ResourceNotFoundError:
        return None
    return found


def _concerns(pointer: ValuePath, path: ValuePath, values: Iterable[Any]) -> bool:
    """Returns whether a change below the path changes what the pointer names."""
    shared = min(len(pointer), len(path))
    if any(a not in ("*", b) and not b.startswith("[") for a, b in zip(pointer[:shared], path[:shared], strict=True)):
        return False
    return shared == len(pointer) or any(_has(value, pointer[shared:]) for value in values)


def _has(value: Any, pointer: ValuePath) -> bool:
    if not pointer:
        return value is not None
    if isinstance(value, list):
        return any(_has(one, pointer[1:] if pointer[0] == "*" else pointer) for one in value)
    return isinstance(value, dict) and _has(value.get(pointer[0]), pointer[1:])
