"""Jobs that somebody stopped, in every state, with some of the layers switched off that end instances: nothing keeps running.

The jobs ran beside all others. None of their nodes has a power-off timer; where the event of their end is lost as well, the
reaper is all there is.
"""

from __future__ import annotations

import json
import re
import time
from functools import partial
from typing import Any

import pytest

from contract import keys, metrics, names
from contract.timing import Timing
from rehearsal.faults import STATES
from rehearsal.yard import Job, Yard
from tests.rehearsal.jobs import ended_at, enders, instances, left
from tests.rehearsal.local_app import until
from tests.rehearsal.mailbox import Mailbox

pytestmark = [pytest.mark.rehearsal, pytest.mark.timeout(280)]
SPEED = 10.0
PASS_S = 300 / SPEED
GRACE_S = Timing().reaper_grace_s / SPEED
LATE_S = 20.0
"""What two busy cores may add to clocks, cold starts and calls."""
SOON_S = 60.0
"""An event is up to 6 s late, a second cleanup comes 6 s later, and a launcher that is stopped may be in its walk."""
BY_REAPER_S = GRACE_S + 2 * PASS_S + LATE_S


def stopped(job: Job) -> float:
    """When the execution was stopped, UTC epoch seconds."""
    execution = job.wait(240)
    assert (execution["status"], execution["error"]) == ("ABORTED", "Stopped")
    return float(execution["stopDate"].timestamp())


def heard(job: Job) -> bool:
    """Whether an event told of its end: one in ten is lost."""
    lost = [one["detail"] for one in job.yard.aws.lost_events if one["detail-type"].startswith("Step Functions")]
    return not any(one["name"] == job.name and one["status"] == "ABORTED" for one in lost)


def gone(job: Job, at: float, within_s: float) -> list[dict[str, Any]]:
    """The job's instances, all of which began to end within so many seconds of `at`, or of their own launch: a launcher that
    is in its walk when the execution is stopped still launches, and the reaper's grace begins then."""

    def limit(one: dict[str, Any]) -> float:
        return max(at, float(one["LaunchTime"].timestamp())) + within_s

    until(lambda: not left(job), max(1.0, max(map(limit, instances(job)), default=0.0) - time.time()))
    found = instances(job)
    assert [(one["InstanceId"], ended_at(one) - at) for one in found if ended_at(one) > limit(one)] == []
    return found


@pytest.mark.parametrize("state", STATES)
def test_whatever_state_it_was_stopped_in_nothing_of_it_runs(
    yard: Yard, unattended: dict[str, Job], state: str
) -> None:
    job = unattended[f"stop-{state.lower()}"]
    at = stopped(job)
    assert job.states()[-1] == state
    found = gone(job, at, SOON_S if heard(job) else BY_REAPER_S)
    assert found == [] or state != "Admit"
    if state == "Train" and heard(job):
        (only,) = found
        assert enders(yard, only["InstanceId"]) == {"Cleanup"}


def test_a_stopped_jobs_report_says_that_it_was_stopped(yard: Yard, unattended: dict[str, Job]) -> None:
    """Of one whose end was told of: the rehearsal loses one event in ten, and with it the report."""
    jobs = [unattended[f"stop-{state.lower()}"] for state in STATES if state not in {"Admit", "Launch"}]
    for job in jobs:
        stopped(job)
    job = next(job for job in jobs if heard(job))
    key = keys.JobPrefix(job.name).result

    def told() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            yard.client("s3").get_object(Bucket=yard.places.home, Key=key)["Body"].read()
        )
        return found

    until(lambda: key in job._listed(yard.places.home, key), SOON_S)
    assert "asked to stop it in this state" in told()["cause"]
    assert told()["attempts"] == 1


@pytest.mark.parametrize("name", ["unheard-launch", "unheard-train"])
def test_with_nobody_told_of_its_end_the_reaper_ends_it_at_the_second_look(
    yard: Yard, unattended: dict[str, Job], mailbox: Mailbox, name: str
) -> None:
    job = unattended[name]
    at = stopped(job)
    assert not heard(job)
    for one in gone(job, at, BY_REAPER_S):
        assert enders(yard, one["InstanceId"]) == {"Reaper"}
        assert ended_at(one) - at > GRACE_S
        assert until(partial(mailbox.about, "ended", one["InstanceId"], job.name), 10)


def test_terminate_alone_ends_a_node_that_nobody_else_can_reach(yard: Yard, beside: dict[str, Job]) -> None:
    job = beside["cut"]
    assert job.wait(240)["status"] == "SUCCEEDED"
    lost = min(instances(job), key=lambda one: one["LaunchTime"])
    assert lost["StateReason"]["Code"] == "Client.UserInitiatedShutdown"
    assert enders(yard, lost["InstanceId"]) == {"Terminator"}


def test_what_aws_refuses_to_end_is_told_and_ended_once_it_is_allowed(
    yard: Yard, unattended: dict[str, Job], mailbox: Mailbox
) -> None:
    job = unattended["unheard-refused"]
    at = stopped(job)
    (one,) = instances(job)
    told = until(lambda: mailbox.about("could not end", one["InstanceId"]), max(1.0, at + BY_REAPER_S - time.time()))
    assert "OperationNotPermitted" in told[0].text
    assert left(job) == [one["InstanceId"]]
    assert until(lambda: mailbox.about("trainyard-reaper-refused", '"NewStateValue": "ALARM"'), 4 * 60 / SPEED)
    with yard.without("terminate-refused"):
        until(lambda: not left(job), PASS_S + LATE_S)


def test_the_weekly_word_arrives_with_the_weeks_figures(yard: Yard, mailbox: Mailbox) -> None:
    """It counts whole hours, and the rehearsal's week would be seventeen of them: the passes are put there."""
    mine = [{"Name": metrics.DEPLOYMENT, "Value": "trainyard"}]
    passes = {"MetricName": metrics.PASSES, "Dimensions": mine, "Timestamp": time.time() - 7200, "Value": 2016}
    yard.client("cloudwatch").put_metric_data(Namespace=names.METRICS, MetricData=[passes])
    clock = yard.client("scheduler")
    (name,) = [one["Name"] for one in clock.list_schedules()["Schedules"] if "Week" in one["Name"]]
    found = clock.get_schedule(Name=name)
    kept = {key: found[key] for key in ("Name", "FlexibleTimeWindow", "Target", "ScheduleExpression")}
    clock.update_schedule(**kept | {"ScheduleExpression": "rate(1 minute)"})
    try:
        (word, *_) = until(lambda: mailbox.about("in the last 7 days", "were due"), 60 / SPEED + LATE_S)
    finally:
        clock.update_schedule(**kept)
    assert word.subject.startswith("Trainyard trainyard: ")
    assert re.search(r"looked 20\d\d times", word.text)
    assert "Instances now: " in word.text
