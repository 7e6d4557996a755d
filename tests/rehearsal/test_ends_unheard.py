"""Jobs that are stopped while no event tells of it: the reaper ends their machines, and the cleanup's clock has their reports written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.keys import JobPrefix
from contract.timing import Timing
from localaws.conditions import Conditions
from localaws.testing.waiting import until
from rehearsal.faults import parse_faults
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import ONE, left, stopped, stored, train

pytestmark = [pytest.mark.rehearsal]
SPEED = 20.0
TIMING = Timing().divided(SPEED)
TICK_S = 300 / SPEED
LATE_S = 30.0
"""What two busy cores may add to clocks, cold starts and calls."""
TRAINER = Path(__file__).with_name("trainer")
HEARD, UNHEARD, REFUSED = "heard", "unheard", "refused-unheard"
FAULTS = [
    *(f"cleanup-event-lost:job={job}" for job in (UNHEARD, REFUSED)),
    *(f"abort-in-state:state=Train,after=20,job={job}" for job in (HEARD, UNHEARD)),
    f"timer-off:job={UNHEARD}",
]


@pytest.fixture(scope="module")
def deaf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    work = tmp_path_factory.mktemp("deaf") / "work"
    conditions = Conditions(speed=SPEED, events_lost=0.0, faults=parse_faults(FAULTS))
    with Yard(work, conditions, wanted=["workflow", "reaper"]) as yard:
        yield yard


@pytest.fixture(scope="module")
def jobs(deaf: Yard) -> dict[str, StartedJob]:
    request = {**ONE, "code": deaf.upload(TRAINER, "trainer"), "command": train(100_000, 0.2)}
    own: dict[str, dict[str, Any]] = {HEARD: {}, UNHEARD: {}, REFUSED: {"nodes": 0}}
    return {name: deaf.start(request | changes, name) for name, changes in own.items()}


def is_reported(job: StartedJob) -> bool:
    key = JobPrefix(job.name).result
    return key in job._listed(job.yard.places.home, key)


def sent_by_clock(yard: Yard) -> list[str]:
    """The names of jobs, or how they begin, of which the clock sent a message: an event begins otherwise, and what is recorded of a call
    is cut."""
    calls = yard.aws.recorder.of(name="sqs:SendMessage")
    bodies = [str(call.parameters["MessageBody"]) for call in calls if "CleanupRole" in call.role]
    return [body.partition(":execution:trainyard-train:")[2] for body in bodies if body.startswith('{"detail"')]


def versions(yard: Yard, name: str) -> int:
    """How often the job's report was written."""
    key = JobPrefix(name).result
    return len(yard.client("s3").list_object_versions(Bucket=yard.places.home, Prefix=key).get("Versions", []))


def test_a_job_whose_end_no_event_tells_has_its_report_by_the_clock(deaf: Yard, jobs: dict[str, StartedJob]) -> None:
    job = jobs[UNHEARD]
    stopped(job)
    lost = [one["detail"] for one in deaf.aws.lost_events if one["source"] == "aws.states"]
    assert {"ABORTED"} <= {one["status"] for one in lost if one["name"] == job.name}
    until(lambda: is_reported(job), TIMING.missing_report_after_s + 2 * TICK_S + LATE_S)
    report = json.loads(stored(deaf, JobPrefix(job.name).result))
    assert (report["error"], report["attempts"]) == ("Stopped", 1)
    assert report["launches"][0]["instances"]
    assert "usd_at_most" in report["cost"]
    assert left(job) == []
    assert versions(deaf, job.name) == 1


def test_the_clock_sends_nothing_of_an_end_that_has_its_report_and_nothing_of_a_refused_request(
    deaf: Yard, jobs: dict[str, StartedJob]
) -> None:
    """Judged when the clock has seen all three ends, which are of about the same time."""
    sent = until(lambda: sent_by_clock(deaf))
    assert [name for name in sent if not name.startswith(UNHEARD[:5])] == []
    assert versions(deaf, HEARD) == 1
    assert not is_reported(jobs[REFUSED])


def test_no_tick_failed(deaf: Yard, jobs: dict[str, StartedJob]) -> None:  # noqa: ARG001  (they end here)
    assert until(lambda: sent_by_clock(deaf))
    failures = [failed for _, function, failed in deaf.aws.workers.invocations if "Cleanup" in function]
    assert len(failures) > 3
    assert not any(failures)
