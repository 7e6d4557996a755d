"""Synthesises two trees of the product in several configurations, side by side."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rehearsal.deployment import DeploymentFailed, synthesise
from tools.synth_diff.changes import StackChange, Template, compare_stacks
from tools.synthesis import masked

BLOCK = "trainyard"
"""The key of cdk.json's context that has the settings."""
WITHOUT_ASSETS = {"aws:cdk:disable-asset-staging": True, "aws:cdk:bundling-stacks": []}
"""Templates name assets by hashes, which are masked."""
PINS = ("requirements.txt", "lambda/requirements.txt", "lambda/search-requirements.txt", "node/requirements.txt")
"""Both trees are synthesised with what is set up for the working tree; a tree with other pins might be deployed otherwise."""
LONGEST = 160
"""Characters of a reason."""


class NotSynthesised(Exception):
    """A tree refuses a configuration, or fails; the message says why in a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What changes in one configuration."""

    changes: Mapping[str, StackChange] = field(default_factory=dict)
    """By stack, without its deployment's name."""
    stacks: frozenset[str] = frozenset()
    """Stacks that either tree has."""
    why_not: str = ""
    """Why the two trees cannot be compared in this configuration."""


def compare_trees(
    before: Path, after: Path, configurations: Mapping[str, Mapping[str, Any]], work: Path
) -> dict[str, Comparison]:
    """Returns what changes from one tree to the other, by configuration. Templates are left below `work`."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        started = {
            name: [
                pool.submit(_synthesise, tree, changes, work / side / name)
                for side, tree in (("before", before), ("after", after))
            ]
            for name, changes in configurations.items()
        }
        return {name: _compare(*(one.exception() or one.result() for one in pair)) for name, pair in started.items()}


def compare_pins(before: Path, after: Path) -> list[str]:
    """Returns the files of pinned packages that differ."""
    return [name for name in PINS if _read(before / name) != _read(after / name)]


def _compare(before: object, after: object) -> Comparison:
    failed = {
        side: found
        for side, found in (("BASE", before), ("the working tree", after))
        if isinstance(found, BaseException)
    }
    for found in failed.values():
        if not isinstance(found, NotSynthesised):
            raise found
    if failed:
        return Comparison(why_not=f"not synthesizable in {' and '.join(failed)}: {next(iter(failed.values()))}")
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    return Comparison(changes=compare_stacks(before, after), stacks=frozenset(before.keys() | after.keys()))


def _synthesise(tree: Path, changes: Mapping[str, Any], out: Path) -> dict[str, Template]:
    """Returns templates by stack, as the tree's own cdk.json has them but for the changes. Raises NotSynthesised."""
    context: dict[str, Any] = json.loads((tree / "cdk.json").read_text("utf-8"))["context"]
    deployment = context[BLOCK]["deployment"]
    try:
        synthesise(context | {BLOCK: context[BLOCK] | changes} | WITHOUT_ASSETS, out, tree)
    except DeploymentFailed as problem:
        raise NotSynthesised(textwrap.shorten(str(problem).splitlines()[0], LONGEST)) from problem
    return {
        file.name.removesuffix(".template.json").removeprefix(f"{deployment}-"): json.loads(
            masked(file.read_text("utf-8"))
        )
        for file in sorted(out.glob("*.template.json"))
    }


def _read(file: Path) -> str:
    return file.read_text("utf-8") if file.exists() else ""
