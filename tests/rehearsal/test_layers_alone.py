"""Each layer that ends instances, alone: the other three are switched off, and no instance is left beyond its limit.

A deployment of its own without lost events, as the layer that is looked at has to get its chance; `test_unattended.py` has the
same beside other jobs, where one event in ten is lost.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from contract import tags
from contract.timing import Timing
from localaws.conditions import Conditions
from localaws.testing.waiting import HANG_S, until
from rehearsal.fault_keys import STATES
from rehearsal.faults import parse_faults
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import ARMED, ONE, ended_at, enders, failed, instances, left, shutdowns, stopped, train
from tests.rehearsal.mailbox import Mailbox

pytestmark = [pytest.mark.rehearsal, pytest.mark.faults]
TRAINER = Path(__file__).with_name("trainer")
SPEED = 10.0
TIMING = Timing().divided(SPEED)
PASS_S = 300 / SPEED
LATE_S = 20.0
"""What two busy cores may add to clocks, cold starts and calls."""
UNKNOWN_S = 40.0
"""How long a node lives that never learns its deadline, in seconds of the rehearsal."""
CLOCK_LATER = {"missing_report_after_s": 200.0, "missing_report_until_s": 400.0}
"""Seconds: the cleanup's clock ends what it finds, and the reaper is to have its chance first, however busy the cores are."""
MUTE = f"user-data-fails:line={ARMED},how=killed,attempts=9"
"""A node that does nothing and cannot end itself but by its timer."""
NO_TERMINATE, NO_CLEANUP, NO_REAPER = "terminator-dead", "cleanup-dead", "reaper-down"


@pytest.fixture(scope="module")
def lone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """No recoveries, and a node that knows no deadline powers off sooner than by default."""
    timing = asdict(TIMING) | {"boot_allowance_s": UNKNOWN_S, "power_off_unknown_s": UNKNOWN_S} | CLOCK_LATER
    settings = {"limits": {"recoveries": 0}, "timing": timing}
    work = tmp_path_factory.mktemp("lone") / "work"
    with Yard(work, Conditions(speed=SPEED, events_lost=0.0), settings=settings) as yard:
        yield yard


@pytest.fixture(scope="module")
def mailbox(lone: Yard) -> Mailbox:
    return Mailbox(lone)


def start(yard: Yard, name: str, **changes: Any) -> StartedJob:
    code = yard.upload(TRAINER, "trainer")
    return yard.start({**ONE, "code": code, "command": train(100_000, 0.2), **changes}, name)


def only(job: StartedJob) -> Mapping[str, Any]:
    (found,) = instances(job)
    return found


def state(yard: Yard, alarm: str) -> str:
    (found,) = yard.client("cloudwatch").describe_alarms(AlarmNames=[alarm])["MetricAlarms"]
    return str(found["StateValue"])


def test_terminate_alone(lone: Yard) -> None:
    """The node is cut off and has no timer, nothing cleans up, nothing reaps: the machine loses it, and ends it."""
    own = ["no-network:at=10,attempts=9,job=terminate-alone", "timer-off:job=terminate-alone"]
    with lone.faults(parse_faults([*own, NO_CLEANUP, NO_REAPER])):
        job = start(lone, "terminate-alone")
        failed(job, "NodeLost")
    assert left(job) == []
    assert enders(lone, only(job)["InstanceId"]) == {"Terminator"}


def test_cleanup_alone_after_an_abort(lone: Yard) -> None:
    own = ["abort-in-state:state=Train,after=150,job=cleanup-alone", "timer-off:job=cleanup-alone"]
    with lone.faults(parse_faults([*own, NO_TERMINATE, NO_REAPER])):
        job = start(lone, "cleanup-alone")
        at = stopped(job)
        until(lambda: not left(job))
    assert enders(lone, only(job)["InstanceId"]) == {"Cleanup"}
    assert ended_at(only(job)) - at < 30


def test_cleanup_alone_after_a_terminate_that_never_worked(lone: Yard) -> None:
    """The execution fails in Terminate when its patience of ten minutes is over."""
    own = ["no-network:at=10,attempts=9,job=terminate-dead", "timer-off:job=terminate-dead"]
    with lone.faults(parse_faults([*own, NO_TERMINATE, NO_REAPER])):
        job = start(lone, "terminate-dead")
        execution = job.wait(HANG_S)
        assert execution["status"] == "FAILED"
        assert job.states()[-1] in ("Terminate", "Failed")
        assert "Decide" not in job.states()
        until(lambda: not left(job))
    assert enders(lone, only(job)["InstanceId"]) == {"Cleanup"}


@pytest.fixture(scope="module")
def unheard(lone: Yard) -> Iterator[dict[str, StartedJob]]:
    """A job for each state, stopped in it, with nobody told."""
    names = {state: f"unheard-{state.lower()}" for state in STATES}
    after = {"Launch": 7, "Train": 150}
    own = [f"abort-in-state:state={state},after={after.get(state, 0)},job={name}" for state, name in names.items()]
    own += [f"{fault}:job={name}" for name in names.values() for fault in ("cleanup-event-lost", "timer-off")]
    brief = {"command": train(2, 0.1)}
    with lone.faults(parse_faults(own)):
        yield {
            state: start(lone, name, **(brief if state in ("Sync", "Terminate") else {}))
            for state, name in names.items()
        }


@pytest.mark.parametrize("state", STATES)
def test_the_reaper_alone_after_an_abort_in_any_state(lone: Yard, unheard: dict[str, StartedJob], state: str) -> None:
    job = unheard[state]
    at = stopped(job)
    limit = at + TIMING.reaper_grace_s + 2 * PASS_S + LATE_S
    until(lambda: not left(job), max(1.0, limit - time.time()))
    assert state != "Admit" or instances(job) == []
    for one in instances(job):
        assert ended_at(one) <= limit
        # A node that was done with its work ended itself, and a Terminate that is under way is not stopped.
        assert enders(lone, one["InstanceId"]) <= ({"Reaper", "Terminator"} if state == "Terminate" else {"Reaper"})


def test_the_reaper_alone_while_every_cleanup_fails(lone: Yard, mailbox: Mailbox) -> None:
    own = ["abort-in-state:state=Train,after=150,job=cleanup-fails", "timer-off:job=cleanup-fails"]
    with lone.faults(parse_faults([*own, NO_TERMINATE, NO_CLEANUP])):
        job = start(lone, "cleanup-fails")
        limit = stopped(job) + TIMING.reaper_grace_s + 2 * PASS_S + LATE_S
        until(lambda: mailbox.about("trainyard-cleanup-errors", '"NewStateValue": "ALARM"'))
        until(lambda: not left(job), max(1.0, limit - time.time()))
    assert enders(lone, only(job)["InstanceId"]) == {"Reaper"}


def test_the_reaper_alone_after_the_deadline_of_a_job_that_still_runs(lone: Yard) -> None:
    """Nobody looks at the node, and its execution waits in Train: I1 allows ten minutes beyond the deadline."""
    own = [f"{MUTE},job=overdue-alone", "timer-off:job=overdue-alone", NO_TERMINATE, NO_CLEANUP]
    with lone.faults(parse_faults(own)):
        job = start(lone, "overdue-alone", max_hours=0.02)
        until(lambda: instances(job))  # Admit asks the attendant whether STS begins its session
        deadline = float(next(one["Value"] for one in only(job)["Tags"] if one["Key"] == tags.DEADLINE))
        with lone.faults(parse_faults(["attendant-dead:seconds=1000000"])):
            until(lambda: not left(job), deadline + 600 / SPEED + LATE_S - time.time())
        ended = only(job)
        assert enders(lone, ended["InstanceId"]) == {"Reaper"}
        assert deadline < ended_at(ended) <= deadline + 600 / SPEED
        lone.client("stepfunctions").stop_execution(executionArn=job.arn)


def test_the_timer_alone(lone: Yard) -> None:
    own = [f"{MUTE},job=timer-alone", "abort-in-state:state=Train,after=50,job=timer-alone"]
    with lone.faults(parse_faults([*own, NO_TERMINATE, NO_CLEANUP, NO_REAPER])):
        job = start(lone, "timer-alone")
        stopped(job)
        (one,) = left(job)
        until(lambda: not left(job), UNKNOWN_S + LATE_S)
    assert enders(lone, one) == set()
    assert shutdowns(job) == {"Client.InstanceInitiatedShutdown"}


def test_with_the_reaper_and_the_timer_dead_an_alarm_arrives_within_twenty_minutes(
    lone: Yard, mailbox: Mailbox
) -> None:
    silent = ("trainyard-reaper-silent",)
    until(lambda: state(lone, *silent) == "OK", 2 * PASS_S + LATE_S)
    own = [f"{MUTE},job=silence", "abort-in-state:state=Train,after=50,job=silence", "timer-off:job=silence"]
    with lone.faults(parse_faults([*own, NO_TERMINATE, NO_CLEANUP, NO_REAPER])):
        before, began = len(mailbox.about(*silent, '"NewStateValue": "ALARM"')), time.monotonic()
        job = start(lone, "silence")
        until(lambda: len(mailbox.about(*silent, '"NewStateValue": "ALARM"')) > before, 1200 / SPEED)
        assert time.monotonic() - began <= 1200 / SPEED
        assert len(left(job)) == 1
        said = mailbox.about(*silent, '"NewStateValue": "ALARM"')[-1]
        assert "docs/runbook.md" in said.text
        recovered = len(mailbox.about(*silent, '"NewStateValue": "OK"'))
    until(lambda: len(mailbox.about(*silent, '"NewStateValue": "OK"')) > recovered, PASS_S + LATE_S)
    until(lambda: not left(job), TIMING.reaper_grace_s + 2 * PASS_S + LATE_S)  # once it lives again


def test_with_the_attendants_clock_off_an_alarm_arrives_within_five_minutes_though_others_wake_it(
    lone: Yard, mailbox: Mailbox
) -> None:
    silent = "trainyard-attendant-silent"
    until(lambda: state(lone, silent) == "OK", 300 / SPEED + LATE_S)
    rules, functions = lone.client("events"), lone.client("lambda")
    (clock,) = [one["Name"] for one in rules.list_rules()["Rules"] if "WakesClock" in one["Name"]]
    (attendant,) = [
        one["FunctionName"]
        for page in functions.get_paginator("list_functions").paginate()
        for one in page["Functions"]
        if one["Handler"].startswith("attendant.") and ":" not in one["FunctionName"]
    ]
    before, off = len(mailbox.about(silent, '"NewStateValue": "ALARM"')), time.monotonic()
    rules.disable_rule(Name=clock)

    def rings() -> bool:
        functions.invoke(FunctionName=attendant, Payload=json.dumps({"action": "ends"}).encode())
        return len(mailbox.about(silent, '"NewStateValue": "ALARM"')) > before

    try:
        until(rings, 300 / SPEED + LATE_S)
        assert time.monotonic() - off <= 300 / SPEED + LATE_S
    finally:
        rules.enable_rule(Name=clock)
    until(lambda: state(lone, silent) == "OK", 300 / SPEED + LATE_S)
