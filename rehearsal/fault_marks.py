"""Reads the marks by which faults choose their targets: tags of machines and trainings, variables of containers, executions."""

from __future__ import annotations

from collections.abc import Mapping

from contract import sessions, tags
from contract.environments import VARIABLE_PREFIX
from localaws.conditions import EXECUTION, Fault
from rehearsal.fault_keys import ALL

MANY = 2**31
"""Nodes of a job of which nothing is known."""


def nodes_of(marks: Mapping[str, str]) -> int:
    """Returns how many nodes the job of a node has."""
    return int(marks.get(tags.NODES, MANY))


def choose_rank(fault: Fault, nodes: int) -> str:
    """Returns which rank the fault strikes in a job of so many nodes, or `all`: a default that the job lacks becomes its last rank."""
    text = fault.text("rank")
    return text if "rank" in fault.given or text == ALL else str(min(int(text), max(nodes, 1) - 1))


def rank_of(marks: Mapping[str, str]) -> int:
    """Returns the rank of a node, which is that of the first of its launch and its index there; -1 for what is no node."""
    return int(marks["rank"]) + int(marks.get(tags.FIRST_RANK, "0")) if "rank" in marks else -1


def job_of(marks: Mapping[str, str]) -> str:
    """Returns the job of an instance, a training, a session, a grid's child or an execution."""
    return next(
        (
            marks[key]
            for key in (tags.JOB, tags.GRID, sessions.TAG, f"{VARIABLE_PREFIX}GRID", EXECUTION)
            if key in marks
        ),
        "",
    )


def line_of(marks: Mapping[str, str]) -> str:
    """Returns the line of a training, by its tag, or of a grid's child, by its place in the array, which begins at a line."""
    place = int(marks.get(f"{VARIABLE_PREFIX}FIRST", "0")) + int(marks.get("AWS_BATCH_JOB_ARRAY_INDEX", "0"))
    return marks.get(tags.LINE, str(place))
