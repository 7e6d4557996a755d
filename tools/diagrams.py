"""Writes pages about the state machines from their synthesised definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.synthesis import ROOT, definition, synthesise_once

PAGE, DRAIN_PAGE, GRID_PAGE, SEARCH_PAGE = (
    ROOT / "docs" / "reference" / f"{name}-machine.md" for name in ("train", "drain", "grid", "search")
)
LAMBDAS = ("Lambda.", "Runtime.", "Sandbox.")
"""Prefixes of Lambda's own errors, which every state retries; the pages show the other errors."""
HEAD = """# The {name} machine

Written by `make docs` from the synthesised definition; edit `stacks/parts/{part}.py` instead.
The numbers are those of the settings in `cdk.json`.

"""


def pages() -> dict[Path, str]:
    deployment = synthesise_once()
    drain, grid, search = (definition(deployment.template(stack)) for stack in ("reaper", "grid", "search"))
    return {
        PAGE: page(deployment.machine),
        DRAIN_PAGE: page(drain, "Drain", "drain_machine"),
        GRID_PAGE: page(grid, "Grid", "grid_machine"),
        SEARCH_PAGE: page(search, "Search", "search_machine"),
    }


def page(machine: Mapping[str, Any], name: str = "Train", part: str = "train_machine") -> str:
    """Returns diagram and table of a definition, as Markdown; `part` is the file of stacks/parts that makes the machine."""
    states = {state: machine["States"][state] for state in _reached(machine)}
    rows = [_row(*state) for state in states.items()]
    arrows = [f"    {line}" for state in states.items() for line in _arrows(*state)]
    return "\n".join(
        (
            HEAD.format(name=name, part=part) + "```mermaid\nstateDiagram-v2",
            f"    [*] --> {machine['StartAt']}",
            *arrows,
            "```\n",
            "| State | What it does | Time-out | Repeats |",
            "|---|---|---|---|",
            *rows,
            f"\nThe machine itself ends after {machine['TimeoutSeconds']} s.\n",
        )
    )


def transitions(state: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields (next state, why) for everything that may follow a state."""
    if "Next" in state:
        yield state["Next"], ""
    for choice in state.get("Choices", []):
        yield choice["Next"], choice.get("Comment", "")
    if "Default" in state:
        yield state["Default"], "otherwise"
    for catch in state.get("Catch", []):
        yield catch["Next"], "error"


def _reached(machine: Mapping[str, Any]) -> Iterator[str]:
    """Yields every state, in the order in which a person meets them."""
    seen, ahead = set(), [machine["StartAt"]]
    while ahead:
        name = ahead.pop(0)
        if name not in seen:
            seen.add(name)
            yield name
            ahead = [*(target for target, why in transitions(machine["States"][name]) if why != "error"), *ahead]
    # Only an error leads to the remaining states.
    yield from sorted(machine["States"].keys() - seen)


def _arrows(name: str, state: Mapping[str, Any]) -> Iterator[str]:
    for target, why in transitions(state):
        yield f"{name} --> {target}" + (f" : {why}" if why else "")
    if state["Type"] in {"Succeed", "Fail"}:
        yield f"{name} --> [*]"


def _row(name: str, state: Mapping[str, Any]) -> str:
    timeout = state.get("TimeoutSeconds", "")
    if isinstance(timeout, str) and timeout:
        timeout = f"`{timeout}`, a heartbeat every {state['HeartbeatSeconds']}"
    repeats = [
        f"{', '.join(names)} every {retry['IntervalSeconds']} s, {retry['MaxAttempts']} times"
        for retry in state.get("Retry", [])
        if retry["MaxAttempts"] and (names := [name for name in retry["ErrorEquals"] if not name.startswith(LAMBDAS)])
    ]
    return f"| {name} | {state['Comment']} | {f'{timeout} s' if timeout else ''} | {'; '.join(repeats)} |"
