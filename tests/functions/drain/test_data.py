"""What a drain does with data that is not to be kept."""

from __future__ import annotations

import pytest

from contract.errors import StillRunning
from tests.builders import JOB, PLACE
from tests.fakes.executions import GRID_MACHINE, MACHINE, SEARCH_MACHINE
from tests.fakes.faults import Kind, Mishap
from tests.functions.drain.draining import AGAIN_S, Yard


def test_data_is_kept_unless_the_settings_say_otherwise(yard: Yard) -> None:
    yard.aws.s3.write(PLACE.bucket, "jobs/job-1/artifacts/model.pt", b"model")
    yard.train()
    before = yard.versions(JOB.home_bucket)
    assert yard.destroy()["Status"] == "SUCCESS"
    yard.without_machines()  # so that nothing but the settings keeps it
    assert yard.destroy()["Status"] == "SUCCESS"
    assert yard.versions(PLACE.bucket) == 1
    assert yard.versions(JOB.home_bucket) > before


@pytest.fixture
def removing(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> Yard:
    """The settings do not keep data."""
    monkeypatch.setenv("TRAINYARD_KEEP_DATA", "false")
    return yard


def test_where_data_is_not_kept_every_version_in_every_bucket_goes(removing: Yard) -> None:
    for number in range(1200):
        removing.aws.s3.write(PLACE.bucket, f"jobs/job-1/checkpoints/{number % 1000}", b"")
    removing.train()
    assert removing.destroy()["Status"] == "SUCCESS"
    removing.without_machines()
    assert removing.destroy()["Status"] == "SUCCESS"
    assert removing.versions(JOB.home_bucket) == removing.versions(PLACE.bucket) == 0


@pytest.mark.parametrize(
    "gone", [set(), {GRID_MACHINE, MACHINE}, {MACHINE, SEARCH_MACHINE}, {GRID_MACHINE, SEARCH_MACHINE}]
)
def test_no_drain_takes_data_while_a_machine_exists_that_uses_it(removing: Yard, gone: set[str]) -> None:
    removing.aws.states.executions.machines -= gone
    removing.aws.s3.write(PLACE.bucket, "jobs/job-1/artifacts/model.pt", b"model")
    removing.train()
    before = removing.versions(JOB.home_bucket)
    assert removing.destroy()["Status"] == "SUCCESS"
    assert not removing.left()
    assert removing.versions(PLACE.bucket) == 1
    assert removing.versions(JOB.home_bucket) >= before


def test_nothing_is_emptied_where_step_functions_does_not_say_which_machines_there_are(removing: Yard) -> None:
    removing.aws.s3.write(PLACE.bucket, "jobs/job-1/artifacts/model.pt", b"model")
    removing.without_machines()
    given = {"request": removing.request("Delete"), "since": removing.aws.clock.now - 100}
    for fault in (Kind.DENIED, Kind.UNREACHABLE):
        removing.aws.faults.add(fault, "stepfunctions:ListExecutions", times=50)
        assert removing.run_drain(given).error == StillRunning.__name__
        removing.aws.faults.waiting.clear()
    assert removing.versions(PLACE.bucket) == 1


def test_nothing_is_emptied_while_anything_runs(removing: Yard) -> None:
    removing.again_s = 600.0
    removing.train()
    removing.without_machines()
    removing.left()[0].stuck = True
    assert removing.destroy()["Status"] == "FAILED"
    assert removing.versions(JOB.home_bucket) > 0


def test_a_bucket_too_large_for_one_look_is_emptied_by_several(removing: Yard) -> None:
    for number in range(3000):
        removing.aws.s3.write(PLACE.bucket, f"{number:05}", b"")
    given = {"request": removing.request("Delete"), "since": removing.aws.clock.now - 100}
    removing.without_machines()
    slow = Mishap("s3:DeleteObjects", meanwhile=lambda: removing.aws.clock.spend(275.0))
    first = removing.run_drain(given, slow)
    assert first.error == StillRunning.__name__
    assert "1000 versions were deleted" in first.cause
    assert removing.versions(PLACE.bucket) == 2000
    while removing.run_drain(given).error:
        removing.aws.clock.run(AGAIN_S)
    assert removing.versions(PLACE.bucket) == 0


def test_what_nobody_may_delete_is_named(removing: Yard) -> None:
    removing.again_s = 600.0
    removing.without_machines()
    removing.aws.s3.write(PLACE.bucket, "held/model.pt", b"")
    removing.aws.s3.buckets[PLACE.bucket].locked = ("held/",)
    answer = removing.destroy()
    assert answer["Status"] == "FAILED"
    assert f"- bucket {PLACE.bucket}: held/model.pt could not be deleted: AccessDenied" in answer["Reason"]


def test_a_bucket_that_is_gone_is_empty(removing: Yard) -> None:
    removing.without_machines()
    del removing.aws.s3.buckets[PLACE.bucket]
    assert removing.destroy()["Status"] == "SUCCESS"
