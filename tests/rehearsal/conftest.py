"""One deployment for all rehearsed jobs of a test run, and jobs with faults of their own that run beside all others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.conditions import Conditions
from rehearsal.faults import parse_faults
from rehearsal.yard import Job, Yard
from tests.rehearsal.jobs import ONE, train

BESIDE = {
    "slow": "slow-boot:seconds=600",
    "killed": "agent-crash:at=15",
    "broken": "user-data-fails:line=2",
    "cut": "no-network:at=10",
    "full": "disk-full:at=10",
    "skewed": "clock-skew:seconds=300",
    "untagged": "late-tags:seconds=300",
}
"""Jobs that meet a fault while other tests run, and the fault, which is theirs alone."""
MAIN = [
    "no-capacity:rungs=1,job=recovering",
    "node-lost:rank=1,step=15,job=recovering",
    "response-lost:job=unanswered",
]
"""The same for jobs of test_main_job.py."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share the deployment come last: a process has one local AWS at a time."""
    items.sort(key=shares_the_yard)


def shares_the_yard(item: pytest.Item) -> bool:
    """A module may have a yard of its own, of the same name."""
    return "yard" in getattr(item, "fixturenames", ()) and not hasattr(getattr(item, "module", None), "yard")


@pytest.fixture(scope="session")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """The product, deployed by the real CDK command line, under the conditions of `make rehearse`."""
    faults = [f"{fault},job={job}" for job, fault in BESIDE.items()]
    conditions = Conditions(speed=10.0, faults=parse_faults([*faults, *MAIN]))
    with Yard(tmp_path_factory.mktemp("yard") / "work", conditions) as deployed:
        yield deployed


@pytest.fixture(scope="session")
def trainer(yard: Yard) -> str:
    """Address of the uploaded trainer without a framework."""
    return yard.upload(Path(__file__).with_name("trainer"), "trainer")


@pytest.fixture(scope="session")
def beside(yard: Yard, trainer: str) -> dict[str, Job]:
    """Started by the first test that asks for it; the last ones see how they ended."""
    request = {**ONE, "code": trainer, "command": train(40, 0.2), "checkpoint_minutes": 0.02}
    return {name: yard.start(request, name) for name in BESIDE}
