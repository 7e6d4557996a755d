"""S3 that answers late, refuses, or fails: trainings go on, work that is not saved is said, and nothing begins from zero because of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import HAPPY, ONE, ended, failed, left, path, train

pytestmark = [pytest.mark.rehearsal]


@pytest.fixture(scope="module")
def jobs(second_wave: dict[str, StartedJob]) -> dict[str, StartedJob]:
    """Each has its own scenario (tests/rehearsal/waves.py)."""
    return {name: second_wave[f"s3-{name}"] for name in ("late", "unsaved", "unread", "refused", "unchecked", "half")}


def why(job: StartedJob) -> str:
    """Of each attempt that failed, the error and its cause."""
    failures = [event["taskFailedEventDetails"] for event in job.history() if "taskFailedEventDetails" in event]
    return "\n".join(f"{one['error']}: {one['cause']}" for one in failures)


def done(job: StartedJob) -> dict[str, Any]:
    execution = ended(job)
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    assert left(job) == []
    output: dict[str, Any] = json.loads(execution["output"])
    return output


def test_where_s3_answers_late_the_training_goes_on_and_its_commits_are_late(jobs: dict[str, StartedJob]) -> None:
    assert done(jobs["late"])["attempts"] == 1
    assert path(jobs["late"]) == HAPPY
    report = jobs["late"].reports(1)[0]
    assert report.commit_s > 20 / jobs["late"].yard.conditions.speed
    assert report.checkpoint_step > 0


def test_work_that_is_not_in_s3_is_said_and_a_new_attempt_saves_it(jobs: dict[str, StartedJob]) -> None:
    """Its command ended with 0, and without its last commit that is no success."""
    assert done(jobs["unsaved"])["attempts"] > 1
    told = why(jobs["unsaved"])
    assert "NodeLost: " in told
    assert "not committed: " in told
    assert "AccessDenied" in told
    assert jobs["unsaved"].reports(2)[0].restored_step > 0


def test_a_restore_asks_again_where_s3_fails_now_and_then(jobs: dict[str, StartedJob]) -> None:
    job = jobs["unread"]
    assert done(job)["attempts"] == 2
    assert job.reports(1)[0].closed_step > 0
    assert job.reports(2)[0].restored_step > 0
    failures = [call for call in job.yard.aws.recorder.of() if call.error == "InternalError"]
    assert [call for call in failures if job.name in call.by.tags.values()]


def test_a_job_whose_checkpoints_nobody_may_read_ends_and_never_begins_from_zero(jobs: dict[str, StartedJob]) -> None:
    """Its first checkpoint is there, and a right to it is missing."""
    job = jobs["refused"]
    cause = failed(job, "NodeLost")
    assert "AccessDenied" in cause
    assert "No recovery is left" in cause
    attempts = job.states().count("Launch")
    assert attempts > 2
    for attempt in range(2, attempts + 1):
        assert "started" not in job.reports(attempt)[0].timeline


@pytest.mark.parametrize("name", ["half", "unchecked"])
def test_calls_that_s3_refuses_now_and_then_cost_no_attempt(jobs: dict[str, StartedJob], name: str) -> None:
    """Those of nodes, and those of Sync and Terminate."""
    assert done(jobs[name])["attempts"] == 1


def test_other_jobs_see_nothing_of_it(yard: Yard, trainer: str, jobs: dict[str, StartedJob]) -> None:  # noqa: ARG001
    job = yard.start({**ONE, "code": trainer, "command": train(5, 0.1)}, "s3-well")
    done(job)
    assert path(job) == HAPPY
