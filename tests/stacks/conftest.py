"""Synthesises once for all tests of this folder."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stacks.synth import only
from tools.synthesis import Synthesised, definition, synthesise


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """The deployment that cdk.json describes."""
    return synthesise(tmp_path_factory.mktemp("default"))


@pytest.fixture(scope="session")
def machine(deployment: Synthesised) -> dict[str, Any]:
    return deployment.machine


@pytest.fixture(scope="session")
def grid(deployment: Synthesised) -> dict[str, Any]:
    """The template of the Grid stack."""
    return deployment.template("grid")


@pytest.fixture(scope="session")
def grid_machine(grid: dict[str, Any]) -> dict[str, Any]:
    return definition(grid)


@pytest.fixture(scope="session")
def submissions(grid_machine: dict[str, Any]) -> dict[str, Any]:
    """The states inside of the Grid machine's Submit."""
    states: dict[str, Any] = grid_machine["States"]["Submit"]["ItemProcessor"]["States"]
    return states


@pytest.fixture(scope="session")
def child(grid: dict[str, Any]) -> dict[str, Any]:
    """The job definition of the grid's children."""
    return only(grid, "AWS::Batch::JobDefinition")
