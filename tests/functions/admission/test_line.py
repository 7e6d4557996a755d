"""A request is judged in a line of steps: none knows one that comes after it, and none asks AWS."""

from __future__ import annotations

import pytest

from tests.architecture.sources import ROOT, below, import_graph, imports, python_files

STEPS = ("resolve", "ladder", "reservations", "role_ladder", "volumes", "money", "judge")
RESOLVED = (
    "accelerators",
    "access",
    "code",
    "containers",
    "efa",
    "image_names",
    "machines",
    "mounts",
    "regions",
    "resume",
)
"""What `resolve` brings together; none of them knows another step."""
ASKING = frozenset({"lookups", "once", "region_facts", "registries", "sources"})
GRAPH = import_graph(python_files("lambda/job_checks"))


def known_by(module: str) -> set[str]:
    """Modules of the room that a module imports, directly or by way of others."""
    return {one.removeprefix("job_checks.") for one in below(GRAPH, f"job_checks.{module}")}


@pytest.mark.parametrize("step", STEPS)
def test_a_step_knows_no_later_one(step: str) -> None:
    assert known_by(step) & {*STEPS[STEPS.index(step) + 1 :]} == set()


@pytest.mark.parametrize("part", RESOLVED)
def test_a_part_that_is_resolved_knows_no_later_step(part: str) -> None:
    assert known_by(part) & {*STEPS} == set()


@pytest.mark.parametrize("module", [*STEPS, *RESOLVED])
def test_what_decides_neither_asks_aws_nor_reads_a_clock(module: str) -> None:
    assert known_by(module) & ASKING == set()
    file = ROOT / "lambda" / "job_checks" / f"{module}.py"
    assert imports(file) & {"boto3", "botocore", "os", "time", "datetime", "subprocess"} <= {"datetime"}


def test_what_reads_a_request_knows_no_step_and_asks_nothing() -> None:
    room = python_files("lambda/job_requests")
    forbidden = {"admission", "job_checks", "boto3", "botocore", "os", "time", "datetime", "subprocess"}
    assert {file.stem: found for file in room if (found := imports(file) & forbidden)} == {}


def test_what_makes_a_job_of_a_request_decides_nothing_itself() -> None:
    graph = import_graph(python_files("lambda/admission"))
    known = {one.removeprefix("admission.") for one in below(graph, "admission.policy")}
    assert known & {"lookups", "fetching", "trial", "handler"} == set()
    for module in ("job", "policy"):
        file = ROOT / "lambda" / "admission" / f"{module}.py"
        assert imports(file) & {"boto3", "botocore", "os", "time", "datetime", "subprocess"} == set()


def test_only_the_judge_calls_the_steps() -> None:
    callers = {module.removeprefix("job_checks.") for module, known in GRAPH.items() if "job_checks.resolve" in known}
    assert callers <= {*STEPS}
