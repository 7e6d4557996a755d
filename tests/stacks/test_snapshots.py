"""Every change of a template is seen by somebody."""

from __future__ import annotations

from tools.snapshots import FOLDER
from tools.synthesis import Synthesised, masked


def test_no_template_changes_unseen(deployment: Synthesised) -> None:
    changed = [
        stack
        for stack in deployment.stacks
        if (FOLDER / f"{stack}.json").read_text() != masked(deployment.text(stack.removeprefix("trainyard-"))) + "\n"
    ]
    assert changed == [], "look at the difference after `make snapshots`"


def test_no_snapshot_is_of_a_stack_that_is_gone(deployment: Synthesised) -> None:
    assert {file.stem for file in FOLDER.glob("*.json")} == deployment.stacks.keys()
