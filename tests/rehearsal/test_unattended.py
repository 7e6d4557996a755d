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
from localaws.testing.waiting import until
from rehearsal.fault_keys import STATES
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import ended_at, enders, instances, left, stopped, stored, succeeded
from tests.rehearsal.mailbox import Mailbox

pytestmark = [pytest.mark.rehearsal, pytest.mark.turn("looks back")]
SPEED = 10.0
GRACE_S = Timing().reaper_grace_s / SPEED
SECOND_LOOK_S = Timing().reaper_second_look_s / SPEED
REAPER = "Reaper"
SELF_AND_CLEANUP = {"Cleanup", "Terminator"}
"""Who ends instances by name of its role, where an event told of the execution's end; a node that is done ends itself."""


def heard(job: StartedJob) -> bool:
    """Whether an event told of its end: one in ten is lost."""
    lost = [one["detail"] for one in job.yard.aws.lost_events if one["detail-type"].startswith("Step Functions")]
    return not any(one["name"] == job.name and one["status"] == "ABORTED" for one in lost)


def gone(job: StartedJob) -> list[dict[str, Any]]:
    """The job's instances, once all of them began to end."""
    until(lambda: not left(job))
    return instances(job)


def looks(yard: Yard, instance: dict[str, Any], stop: float) -> int:
    """How many of the reaper's passes saw the instance with nothing to wait for, and let it be: they ended well after its grace
    period, before it ended, and a second look's time after the one before."""
    since = max(stop, float(instance["LaunchTime"].timestamp())) + GRACE_S
    counted = [since]
    for at, function, failed in yard.aws.workers.invocations:
        if REAPER in function and not failed and at < ended_at(instance) and at - counted[-1] >= SECOND_LOOK_S:
            counted.append(at)
    return len(counted) - 1


@pytest.mark.parametrize("state", STATES)
def test_whatever_state_it_was_stopped_in_nothing_of_it_runs(
    yard: Yard, unattended: dict[str, StartedJob], state: str
) -> None:
    job = unattended[f"stop-{state.lower()}"]
    at = stopped(job)
    # The stop may come when a launch that was under way has just ended.
    assert job.states()[-1] in ({"Launch", "Train"} if state == "Launch" else {state})
    found = gone(job)
    assert found == [] or state != "Admit"
    for one in found:
        # A launcher that was in its walk may have launched after the cleanup: that instance is the reaper's.
        if heard(job) and state != "Launch":
            assert enders(yard, one["InstanceId"]) <= SELF_AND_CLEANUP
        assert looks(yard, one, at) <= 2
    if state == "Train" and heard(job):
        (only,) = found
        assert enders(yard, only["InstanceId"]) == {"Cleanup"}


def test_a_stopped_jobs_report_says_that_it_was_stopped(yard: Yard, unattended: dict[str, StartedJob]) -> None:
    """Of one whose end was told of: the rehearsal loses one event in ten, and then the report comes later."""
    jobs = [unattended[f"stop-{state.lower()}"] for state in STATES if state not in {"Admit", "Launch"}]
    for job in jobs:
        stopped(job)
    job = next(job for job in jobs if heard(job))
    key = keys.JobPrefix(job.name).result
    until(lambda: key in job._listed(yard.places.home, key))
    told = json.loads(stored(yard, key))
    assert "asked to stop it in this state" in told["cause"]
    assert told["attempts"] == 1


@pytest.mark.parametrize("name", ["unheard-launch", "unheard-train"])
def test_with_nobody_told_of_its_end_the_reaper_ends_it_at_the_second_look(
    yard: Yard, unattended: dict[str, StartedJob], mailbox: Mailbox, name: str
) -> None:
    job = unattended[name]
    at = stopped(job)
    assert not heard(job)
    for one in gone(job):
        assert enders(yard, one["InstanceId"]) == {REAPER}
        assert looks(yard, one, at) <= 2
        assert ended_at(one) - at > GRACE_S
        assert until(partial(mailbox.about, "ended", one["InstanceId"], job.name))


def test_with_no_event_of_its_end_people_are_told_all_the_same(
    unattended: dict[str, StartedJob], mailbox: Mailbox
) -> None:
    job = unattended["unheard-train"]
    stopped(job)
    until(lambda: mailbox.about(f"{job.name} has failed", "its execution was stopped"))
    assert len(mailbox.about(f"{job.name} has failed")) == 1


def test_terminate_alone_ends_a_node_that_nobody_else_can_reach(yard: Yard, beside: dict[str, StartedJob]) -> None:
    job = beside["cut"]
    succeeded(job)
    lost = min(instances(job), key=lambda one: one["LaunchTime"])
    assert lost["StateReason"]["Code"] == "Client.UserInitiatedShutdown"
    assert enders(yard, lost["InstanceId"]) == {"Terminator"}


def test_what_aws_refuses_to_end_is_told_and_ended_once_it_is_allowed(
    yard: Yard, unattended: dict[str, StartedJob], mailbox: Mailbox
) -> None:
    job = unattended["unheard-refused"]
    stopped(job)
    (one,) = instances(job)
    told = until(lambda: mailbox.about("could not end", one["InstanceId"]))
    assert "OperationNotPermitted" in told[0].text
    assert left(job) == [one["InstanceId"]]
    assert until(lambda: mailbox.about("trainyard-reaper-errors", '"NewStateValue": "ALARM"'))
    with yard.without("terminate-refused"):
        until(lambda: not left(job))


def test_the_weekly_summary_arrives_with_the_weeks_figures(yard: Yard, mailbox: Mailbox) -> None:
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
        (word, *_) = until(lambda: mailbox.about("in the last 7 days", "were due"))
    finally:
        clock.update_schedule(**kept)
    assert word.subject.startswith("Trainyard trainyard: ")
    assert re.search(r"made 20\d\d passes", word.text)
    assert "Instances now: " in word.text
