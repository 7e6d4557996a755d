"""Faults of single nodes, met by jobs that ran beside all others: nothing idles, and every end has its reason."""

from __future__ import annotations

import json

import pytest

from rehearsal.state import written_at
from rehearsal.yard import StartedJob
from tests.rehearsal.jobs import AGAIN, HAPPY, ended, instances, left, path, shutdowns

pytestmark = [pytest.mark.rehearsal, pytest.mark.turn("looks back")]


def reason(job: StartedJob) -> str:
    """Why the first attempt ended, as the attendant said it."""
    failures = [event["taskFailedEventDetails"] for event in job.history() if "taskFailedEventDetails" in event]
    return next(f"{one['error']}: {one['cause']}" for one in failures if one["error"] == "NodeLost")


@pytest.mark.parametrize("name", ["slow", "skewed", "untagged"])
def test_what_is_only_late_or_wrong_costs_no_second_cluster(beside: dict[str, StartedJob], name: str) -> None:
    job, execution = beside[name], ended(beside[name])
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    assert (path(job), len(instances(job)), left(job)) == (HAPPY, 1, [])


def test_ten_minutes_of_boot_were_ten_minutes(beside: dict[str, StartedJob]) -> None:
    job = beside["slow"]
    ended(job)
    launched = instances(job)[0]["LaunchTime"].timestamp()
    assert job.reports(1)[0].timeline["booted"] - launched > 58


def test_a_node_five_minutes_ahead_says_so_and_nothing_is_decided_on_it(beside: dict[str, StartedJob]) -> None:
    job = beside["skewed"]
    ended(job)
    report = job.reports(1)[0]
    assert report.sent_at - written_at(report.instance) == pytest.approx(300 / job.yard.conditions.speed, abs=3)


@pytest.mark.parametrize(
    ("name", "why"),
    [("killed", " before its work was done"), ("broken", " before its work was done"), ("cut", "has been silent for")],
)
def test_a_node_that_is_lost_is_replaced_and_its_loss_explained(
    beside: dict[str, StartedJob], name: str, why: str
) -> None:
    job, execution = beside[name], ended(beside[name])
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    assert (path(job), len(instances(job)), left(job)) == (AGAIN, 2, [])
    assert json.loads(execution["output"])["attempts"] == 2
    assert why in reason(job)


def test_a_node_that_never_reported_is_explained_by_its_console_or_says_how_to_ask_for_it(
    beside: dict[str, StartedJob],
) -> None:
    ended(beside["broken"])
    said = reason(beside["broken"])
    assert "It never reported." in said
    assert ("trainyard: powering off" in said) != ("EC2 had no console output of it" in said), said


def test_a_node_whose_agent_died_powered_itself_off(beside: dict[str, StartedJob]) -> None:
    for name in ("killed", "broken"):
        ended(beside[name])
        assert "Client.InstanceInitiatedShutdown" in shutdowns(beside[name])


def test_a_killed_agents_training_goes_on_from_its_checkpoint(beside: dict[str, StartedJob]) -> None:
    ended(beside["killed"])
    assert beside["killed"].reports(2)[0].restored_step > 0


def test_a_full_disk_fails_the_job_with_the_trainers_own_words(beside: dict[str, StartedJob]) -> None:
    job, execution = beside["full"], ended(beside["full"])
    assert (execution["status"], execution["error"]) == ("FAILED", "TrainingFailed")
    assert "File too large" in execution["cause"]
    assert left(job) == []
