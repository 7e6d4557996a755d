"""Synthesises the app of cdk.json, and reads the templates."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from app import build
from stacks.settings import BLOCK, Settings

ROOT = Path(__file__).parents[1]
CONTEXT: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
HASH = re.compile(r"\b[0-9a-f]{64}\b|(?<=grid-child-)[0-9a-f]{32}\b")
"""Matches the hash of an asset, and of the files of the child's image."""
_KNOWN: dict[str, Synthesised] = {}


@dataclass(frozen=True, slots=True)
class Synthesised:
    """The templates of one deployment."""

    folder: Path

    def text(self, stack: str) -> str:
        """Returns a template's text; `stack` is the end of a stack's name."""
        (file,) = self.folder.glob(f"*-{stack}.template.json")
        return file.read_text()

    def template(self, stack: str) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.text(stack))
        return parsed

    @property
    def stacks(self) -> dict[str, dict[str, Any]]:
        """Returns templates by stack name."""
        files = sorted(self.folder.glob("*.template.json"))
        return {file.name.removesuffix(".template.json"): json.loads(file.read_text()) for file in files}

    @property
    def machine(self) -> dict[str, Any]:
        return definition(self.template("workflow"))


def synthesise(folder: Path, **changes: object) -> Synthesised:
    """Synthesises cdk.json's deployment with some settings replaced. Assets stay in place, and are put together only where nothing is
    replaced: settings change no file of them, so that everything but their hashes is as deployed."""
    context = CONTEXT | {"aws:cdk:disable-asset-staging": True}
    if changes:
        context["aws:cdk:bundling-stacks"] = []
    app = cdk.App(context=context, outdir=str(folder))
    build(app, Settings.parse(CONTEXT[BLOCK] | changes))
    app.synth()
    return Synthesised(folder)


def synthesise_once(**changes: object) -> Synthesised:
    """Synthesises as `synthesise` does, once a process for the same changes. The folder goes with the process: write nothing into it."""
    key = json.dumps(changes, sort_keys=True)
    if key not in _KNOWN:
        _KNOWN[key] = synthesise(Path(_folder().name) / str(len(_KNOWN)), **changes)
    return _KNOWN[key]


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="trainyard-synthesised-")


def masked(text: str) -> str:
    """Replaces asset hashes, which change with every line of the functions."""
    return HASH.sub("<hash>", text)


def definition(template: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    """Returns the state machine of this name, or the one of a template, with references replaced by their names."""
    machines = (one for one in template["Resources"].values() if one["Type"] == "AWS::StepFunctions::StateMachine")
    (machine,) = (one for one in machines if name in ("", one["Properties"]["StateMachineName"]))
    parsed: dict[str, Any] = json.loads(_plain(machine["Properties"]["DefinitionString"]))
    return parsed


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    ((kind, inner),) = value.items()
    if kind == "Fn::Join":
        return str(inner[0]).join(map(_plain, inner[1]))
    return f"<{inner if isinstance(inner, str) else '.'.join(inner)}>"
