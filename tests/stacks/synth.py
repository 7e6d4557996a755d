"""Reads templates the way a person would."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from contract import names
from contract.codec import decode
from contract.places import Place
from localaws.model import listed
from tools.synthesis import ROOT, Synthesised

LOOKED_UP = re.compile(re.escape(names.zone_attribute(0)).replace("0", r"(\d)"))
ZONES = "abcdef"
ROLE_CHARACTERS = 10_240
"""IAM's most of all inline policies of a role together, without white space."""
MANAGED_POLICY, MANAGED_CHARACTERS = "AWS::IAM::ManagedPolicy", 6_144
"""A managed policy, and its most without white space; a role may have ten."""


OPTIONAL = {"campaigns", "catalogue", "kubernetes"}
"""Stacks that only a setting brings."""


def stacks(deployment: str, *regions: str) -> set[str]:
    """The names of a deployment's stacks: one for each file of stacks/ that has one and is not optional, a region's once a region."""
    files = {file.stem for file in (ROOT / "stacks").glob("*.py") if "(cdk.Stack):" in file.read_text()}
    kinds = {f"{deployment}-{stack}" for stack in files - {"region"} - OPTIONAL}
    return kinds | {names.region_stack(deployment, region) for region in regions}


def resources(template: Mapping[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """Logical id to properties of all resources of a type."""
    return {name: one.get("Properties", {}) for name, one in template["Resources"].items() if one["Type"] == kind}


def logical_id(template: Mapping[str, Any], kind: str, begin: str = "") -> str:
    """Of the one resource of a type whose logical id begins so."""
    (found,) = (name for name in resources(template, kind) if name.startswith(begin))
    return found


def only(template: Mapping[str, Any], kind: str, begin: str = "") -> dict[str, Any]:
    """Properties of the one resource of a type whose logical id begins so."""
    return resources(template, kind)[logical_id(template, kind, begin)]


def function(template: Mapping[str, Any], package: str) -> dict[str, Any]:
    """Properties of the function of a package of lambda/."""
    found = {one["Handler"]: one for one in resources(template, "AWS::Lambda::Function").values()}
    return found[f"{package}.handler.handler"]


def variables(function: Mapping[str, Any]) -> dict[str, str]:
    """The environment that a function reads."""
    return {name: plain(value) for name, value in function["Environment"]["Variables"].items()}


def place_of(deployment: Synthesised, region: str) -> Place:
    """A region's description of itself."""
    return decode(Place, plain(only(deployment.template(f"region-{region}"), "AWS::SSM::Parameter", "Place")["Value"]))


def artifacts(deployment: Synthesised) -> dict[str, Any]:
    """What is deployed, and after what, as the CDK command line reads it."""
    found: dict[str, Any] = json.loads((deployment.folder / "manifest.json").read_text())["artifacts"]
    return found


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
    role: str
    name: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: dict[str, dict[str, Any]]


def every(deployment: Synthesised, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Properties of a type's resources in all stacks, each under `stack/logical id`."""
    for stack, template in deployment.stacks.items():
        for name, properties in resources(template, kind).items():
            yield f"{stack}/{name}", properties


def outputs_of(deployment: Synthesised) -> dict[str, dict[str, Any]]:
    """What the stacks tell people: their outputs but those for other stacks."""
    return {
        name: one
        for template in deployment.stacks.values()
        for name, one in template.get("Outputs", {}).items()
        if "Export" not in one
    }


def rights(template: Mapping[str, Any], role: str = "", *, stack: str = "") -> Iterator[Right]:
    """Every statement of the policies of the roles whose logical ids begin so."""
    attached = [one for one in resources(template, MANAGED_POLICY).values() if one.get("Roles")]
    for policy in [*resources(template, "AWS::IAM::Policy").values(), *attached]:
        if not policy["Roles"][0]["Ref"].startswith(role):
            continue
        for statement in policy["PolicyDocument"]["Statement"]:
            assert statement["Effect"] == "Allow"
            assert not {"NotAction", "NotResource"} & statement.keys()
            yield Right(
                stack=stack,
                role=policy["Roles"][0]["Ref"],
                name=statement.get("Sid", ""),
                actions=tuple(listed(statement["Action"])),
                resources=tuple(plain(one) for one in listed(statement["Resource"])),
                conditions=statement.get("Condition", {}),
            )


def size(value: Any) -> int:
    """Characters without white space, every reference as long as what it stands for at most."""
    return len(json.dumps(resolved(value), separators=(",", ":")))


def resolved(value: Any) -> Any:
    if isinstance(value, list):
        return [resolved(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() & {"Ref", "Fn::GetAtt", "Fn::Join", "Fn::Sub", "Fn::ImportValue", "Fn::Select"}:
        if "Fn::Join" in value:
            separator, parts = value["Fn::Join"]
            return str(separator).join(str(resolved(one)) for one in parts)
        return {"AWS::AccountId": "1" * 12, "AWS::Partition": "aws"}.get(str(value.get("Ref")), "x" * 90)
    return {name: resolved(inner) for name, inner in value.items()}
