"""Synthesises the app for tests, and reads templates the way a person would."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from app import build
from contract import names
from stacks.diagram import definition
from stacks.settings import BLOCK, Settings

ROOT = Path(__file__).parents[2]
CONTEXT: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
HASH = re.compile(r"\b[0-9a-f]{64}\b|(?<=grid-child-)[0-9a-f]{32}\b")
"""Of an asset, and of what the child's image is built from."""
LOOKED_UP = re.compile(re.escape(names.zone_attribute(0)).replace("0", r"(\d)"))
ZONES = "abcdef"


@dataclass(frozen=True, slots=True)
class Synthesised:
    """The templates of one deployment."""

    folder: Path

    def text(self, stack: str) -> str:
        """`stack` is the end of a stack's name."""
        (file,) = self.folder.glob(f"*-{stack}.template.json")
        return file.read_text()

    def template(self, stack: str) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.text(stack))
        return parsed

    @property
    def stacks(self) -> dict[str, dict[str, Any]]:
        """Stack name to template."""
        files = sorted(self.folder.glob("*.template.json"))
        return {file.name.removesuffix(".template.json"): json.loads(file.read_text()) for file in files}

    @property
    def machine(self) -> dict[str, Any]:
        return definition(self.template("workflow"))


def synthesise(folder: Path, **changes: object) -> Synthesised:
    """The deployment of cdk.json with some settings replaced. Assets stay where they are, which is all that saves time."""
    context = CONTEXT | {"aws:cdk:disable-asset-staging": True}
    app = cdk.App(context=context, outdir=str(folder))
    build(app, Settings.parse(CONTEXT[BLOCK] | changes))
    app.synth()
    return Synthesised(folder)


def masked(text: str) -> str:
    """Asset hashes replaced: they change with every line of the functions."""
    return HASH.sub("<hash>", text)


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
