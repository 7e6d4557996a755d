"""An upgrade and a rollback under running jobs: each job ends well, whichever version it was admitted by, and so does its recovery."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from contract import names
from localaws.conditions import Conditions
from localaws.testing.waiting import until
from rehearsal.checkout import check_out
from rehearsal.deployment import ROOT
from rehearsal.versions import Versions
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import AGAIN, ENDLESS, HAPPY, TWO, instances, path, succeeded, train

pytestmark = [pytest.mark.rehearsal, pytest.mark.upgrade, pytest.mark.timeout(1200)]
BEFORE = os.environ.get("BEFORE") or "HEAD~20"
"""The other version: a commit."""
SPEED = 10
STEPS, A_STEP_S, INTERVAL_S = 240, 0.25, 2.0


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    with Yard(tmp_path_factory.mktemp("versions"), Conditions(speed=SPEED)) as opened:
        yield opened


@pytest.fixture(scope="module")
def versions(yard: Yard) -> Versions:
    return Versions(yard, check_out(BEFORE, yard.work / "before"))


@pytest.fixture(scope="module")
def code(yard: Yard) -> str:
    return yard.upload(ROOT / "tests" / "rehearsal" / "trainer", "trainer")


def begin(yard: Yard, code: str, name: str, **more: str) -> StartedJob:
    """Starts a job, and returns once it has closed a checkpoint, from which a next attempt goes on."""
    asked = {"code": code, "command": train(STEPS, A_STEP_S), "checkpoint_minutes": INTERVAL_S / 60}
    job = yard.start({**TWO, **asked, "environment": {"WRITES": "rank0", **more}}, name)
    until(lambda: is_saved(job))
    return job


def is_saved(job: StartedJob) -> bool:
    stream = names.log_stream(job.name, 1, 0)
    return stream in job.log_streams() and any("is closed" in line for line in job.log(stream))


def lose(yard: Yard, job: StartedJob) -> None:
    """AWS takes a node away."""
    yard.client("ec2").terminate_instances(InstanceIds=[instances(job)[0]["InstanceId"]])


def test_an_upgrade_under_running_jobs(yard: Yard, versions: Versions, code: str) -> None:
    this = versions.read_code("Attendant")
    versions.deploy_other()
    assert versions.read_code("Attendant") != this
    losing, whole = begin(yard, code, "upgraded-and-lost", **ENDLESS["environment"]), begin(yard, code, "upgraded")
    versions.deploy_this()
    assert versions.read_code("Attendant") == this
    lose(yard, losing)
    succeeded(losing)
    succeeded(whole)
    assert path(losing) == AGAIN
    assert path(whole) == HAPPY


def test_a_rollback_under_running_jobs(yard: Yard, versions: Versions, code: str) -> None:
    losing, whole = (
        begin(yard, code, "rolled-back-and-lost", **ENDLESS["environment"]),
        begin(yard, code, "rolled-back"),
    )
    versions.deploy_other()
    lose(yard, losing)
    succeeded(losing)
    succeeded(whole)
    assert path(losing) == AGAIN
    assert path(whole) == HAPPY
    versions.deploy_this()
    succeeded(begin(yard, code, "after-both"))
