"""What holds for every state machine: its name, its language, its time-outs, and its page in the docs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stacks.machines import MACHINES
from tests.stacks.synth import resources
from tools.diagrams import DRAIN_PAGE, GRID_PAGE, PAGE, SEARCH_PAGE, page
from tools.synthesis import Synthesised, definition

OF_JSONPATH = ("$$.", '.$"', "ResultPath", "TimeoutSecondsPath", "InputPath", "OutputPath")
every_machine = pytest.mark.parametrize(("name", "stack"), MACHINES.items())


def tasks(states: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Those inside of a Map too."""
    for name, state in states.items():
        if state["Type"] == "Task":
            yield name, state
        yield from tasks(state.get("ItemProcessor", {}).get("States", {}))


@every_machine
def test_a_machine_has_the_contracts_name_and_keeps_its_history(deployment: Synthesised, name: str, stack: str) -> None:
    machines = resources(deployment.template(stack), "AWS::StepFunctions::StateMachine").values()
    assert [one["StateMachineType"] for one in machines if one["StateMachineName"] == name] == ["STANDARD"]


def test_each_machine_of_a_deployment_is_looked_at_here(deployment: Synthesised) -> None:
    found = {
        one["StateMachineName"]
        for template in deployment.stacks.values()
        for one in resources(template, "AWS::StepFunctions::StateMachine").values()
    }
    assert found == MACHINES.keys()


@every_machine
def test_no_expression_is_of_the_other_query_language(deployment: Synthesised, name: str, stack: str) -> None:
    machine = definition(deployment.template(stack), name)
    assert machine["QueryLanguage"] == "JSONata"
    assert [word for word in OF_JSONPATH if word in json.dumps(machine)] == []


@every_machine
def test_no_task_and_no_machine_waits_for_ever(deployment: Synthesised, name: str, stack: str) -> None:
    machine = definition(deployment.template(stack), name)
    assert machine["TimeoutSeconds"]
    assert [name for name, state in tasks(machine["States"]) if not state.get("TimeoutSeconds")] == []


@pytest.mark.parametrize(
    ("stack", "file", "words"),
    [
        ("workflow", PAGE, ()),
        ("reaper", DRAIN_PAGE, ("Drain", "drain_machine")),
        ("grid", GRID_PAGE, ("Grid", "grid_machine")),
        ("search", SEARCH_PAGE, ("Search", "search_machine")),
    ],
)
def test_the_page_in_the_docs_is_the_machine_that_is_deployed(
    deployment: Synthesised, stack: str, file: Path, words: tuple[str, ...]
) -> None:
    assert file.read_text() == page(definition(deployment.template(stack)), *words), "run `make docs`"
