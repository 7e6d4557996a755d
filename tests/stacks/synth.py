"""Reads templates the way a person would."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from contract import names
from tools.synthesis import ROOT, Synthesised

LOOKED_UP = re.compile(re.escape(names.zone_attribute(0)).replace("0", r"(\d)"))
ZONES = "abcdef"


def stacks(deployment: str, *regions: str) -> set[str]:
    """The names of all of a deployment's stacks: one for each file of stacks/ that has a stack, a region's once for each region."""
    files = {file.stem for file in (ROOT / "stacks").glob("*.py") if "(cdk.Stack):" in file.read_text()}
    kinds = {f"{deployment}-{stack}" for stack in files - {"region"}}
    return kinds | {names.region_stack(deployment, region) for region in regions}


def resources(template: Mapping[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """Logical id to properties of all resources of a type."""
    return {name: one.get("Properties", {}) for name, one in template["Resources"].items() if one["Type"] == kind}


def plain(value: Any) -> str:
    """A string of a template with its references resolved to readable stand-ins."""
    if isinstance(value, str):
        return value
    ((kind, inner),) = value.items()
    if kind == "Fn::Join":
        return str(inner[0]).join(map(plain, inner[1]))
    if kind == "Fn::GetAtt" and (zone := LOOKED_UP.fullmatch(inner[1])):
        return f"eu-central-1{ZONES[int(zone[1]) - 1]}"
    if kind == "Fn::Sub":
        return str(inner).replace("${AWS::AccountId}", "111122223333")
    known = {"AWS::AccountId": "111122223333", "AWS::Partition": "aws", "AWS::Region": "eu-central-1"}
    return (
        known.get(inner, f"<{inner}>") if kind == "Ref" else f"<{inner if isinstance(inner, str) else '.'.join(inner)}>"
    )


@dataclass(frozen=True, slots=True)
class Right:
    """One Allow of an identity policy."""

    stack: str
    policy: str
    name: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: dict[str, dict[str, Any]]


def rights(deployment: Synthesised) -> Iterator[Right]:
    """Every statement of every role's policies."""
    for stack, template in deployment.stacks.items():
        for policy, properties in resources(template, "AWS::IAM::Policy").items():
            for statement in properties["PolicyDocument"]["Statement"]:
                assert statement["Effect"] == "Allow"
                assert not {"NotAction", "NotResource"} & statement.keys()
                yield Right(
                    stack=stack,
                    policy=policy,
                    name=statement.get("Sid", ""),
                    actions=tuple(_listed(statement["Action"])),
                    resources=tuple(plain(one) for one in _listed(statement["Resource"])),
                    conditions=statement.get("Condition", {}),
                )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
