"""Deployments that tests of several files look at, each synthesised once."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from contract.timing import Timing
from tests.stacks.synth import only
from tests.stacks.variations import AGAIN_SOON, FAST_DISKS, MOST_GRID, RESERVED, SPEED
from tools.configurations import EVERYTHING, GIT_HOSTS, READER_ACCOUNT, READER_ORGANIZATION, THREE
from tools.synthesis import Synthesised, definition, synthesise_once


@pytest.fixture(scope="session")
def deployment() -> Synthesised:
    """The deployment that cdk.json describes."""
    return synthesise_once()


@pytest.fixture(scope="session")
def complete() -> Synthesised:
    """That deployment with every stack that a setting brings."""
    return synthesise_once(**EVERYTHING)


@pytest.fixture(scope="session")
def varied() -> Synthesised:
    """That deployment with settings changed that have nothing to do with each other: one synthesis serves the test of each."""
    return synthesise_once(
        git_hosts=GIT_HOSTS,
        grid={"limits": asdict(MOST_GRID)},
        limits=FAST_DISKS,
        reserved_concurrency=RESERVED,
        timing=asdict(Timing()) | AGAIN_SOON,
    )


@pytest.fixture(scope="session")
def passing() -> Synthesised:
    """A deployment that keeps nothing."""
    return synthesise_once(keep_data=False)


@pytest.fixture(scope="session")
def faster() -> Synthesised:
    """A deployment whose every duration is divided by SPEED."""
    return synthesise_once(timing=asdict(Timing().divided(SPEED)))


@pytest.fixture(scope="session")
def complying() -> Synthesised:
    """A deployment with customer keys, flow logs and access logs."""
    return synthesise_once(compliance=True)


@pytest.fixture(scope="session")
def three() -> Synthesised:
    """Home, a region where nodes run, and one for the grid alone."""
    readers = {"accounts": [READER_ACCOUNT], "organizations": [READER_ORGANIZATION]}
    return synthesise_once(regions=THREE, repositories=["images", "grid-child"], image_readers=readers)


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
