"""A look at an attempt reads, judges and acts, in this order: no policy reaches what reads or acts, and one module has the clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.sources import below, import_graph, imports, name, python_files

ATTENDANT = python_files("lambda/attendant")
GRAPH = import_graph(ATTENDANT)
POLICIES = ("policy", "silence", "stalls", "unhealthy", "ages", "costs", "words", "notices", "console")
OUTSIDE = {"boto3", "botocore", "os", "random", "time"}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_reaches_nothing_that_reads_or_acts(policy: str) -> None:
    actors = {
        "acting",
        "attempt",
        "ends",
        "handler",
        "invocation",
        "passes",
        "reading",
        "sessions",
        "telling",
        "triggers",
    }
    assert below(GRAPH, f"attendant.{policy}") & {f"attendant.{one}" for one in actors} == set()


def test_what_reads_knows_nothing_of_what_acts() -> None:
    assert "attendant.acting" not in below(GRAPH, "attendant.reading")
    assert "attendant.reading" not in below(GRAPH, "attendant.acting")


def test_only_the_look_itself_knows_both() -> None:
    both = {"attendant.reading", "attendant.acting"}
    assert {module for module, known in GRAPH.items() if both <= known} == {"attendant.attempt"}


def test_the_handler_alone_has_a_clock_and_chance() -> None:
    found = {name(file): imports(file) & {"time", "random"} for file in ATTENDANT}
    assert {Path(file).stem: one for file, one in found.items() if one} == {
        "handler": {"time", "random"},
        "invocation": {"random"},  # the type alone
    }


@pytest.mark.parametrize("file", [file for file in ATTENDANT if file.stem in POLICIES], ids=name)
def test_a_policy_needs_nothing_of_the_world_outside(file: Path) -> None:
    assert imports(file) & OUTSIDE == set()
