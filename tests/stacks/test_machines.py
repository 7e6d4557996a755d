"""What holds for every state machine: its name, its language, its time-outs, and its page in the docs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contract import names
from tests.stacks.synth import only
from tools.diagrams import DRAIN_PAGE, GRID_PAGE, PAGE, page
from tools.synthesis import Synthesised, definition

MACHINES: dict[str, Callable[[str], str]] = {
    "workflow": names.machine,
    "reaper": names.drain_machine,
    "builds": names.build_machine,
    "images": names.image_machine,
    "grid": names.grid_machine,
}
"""Stack to its machine's name."""
OF_JSONPATH = ("$$.", '.$"', "ResultPath", "TimeoutSecondsPath", "InputPath", "OutputPath")
every_machine = pytest.mark.parametrize("stack", MACHINES)


def tasks(states: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Those inside of a Map too."""
    for name, state in states.items():
        if state["Type"] == "Task":
            yield name, state
        yield from tasks(state.get("ItemProcessor", {}).get("States", {}))


@every_machine
def test_a_machine_has_the_contracts_name(deployment: Synthesised, stack: str) -> None:
    machine = only(deployment.template(stack), "AWS::StepFunctions::StateMachine")
    assert (machine["StateMachineName"], machine["StateMachineType"]) == (MACHINES[stack]("trainyard"), "STANDARD")


@every_machine
def test_no_expression_is_of_the_other_query_language(deployment: Synthesised, stack: str) -> None:
    machine = definition(deployment.template(stack))
    assert machine["QueryLanguage"] == "JSONata"
    assert [word for word in OF_JSONPATH if word in json.dumps(machine)] == []


@every_machine
def test_no_task_and_no_machine_waits_for_ever(deployment: Synthesised, stack: str) -> None:
    machine = definition(deployment.template(stack))
    assert machine["TimeoutSeconds"]
    assert [name for name, state in tasks(machine["States"]) if not state.get("TimeoutSeconds")] == []


@pytest.mark.parametrize(
    ("stack", "file", "words"),
    [
        ("workflow", PAGE, ()),
        ("reaper", DRAIN_PAGE, ("Drain", "drain_machine")),
        ("grid", GRID_PAGE, ("Grid", "grid_machine")),
    ],
)
def test_the_page_in_the_docs_is_the_machine_that_is_deployed(
    deployment: Synthesised, stack: str, file: Path, words: tuple[str, ...]
) -> None:
    assert file.read_text() == page(definition(deployment.template(stack)), *words), "run `make docs`"
