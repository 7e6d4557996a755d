"""Each fault alone and at several moments, in a deployment whose jobs may recover once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract import names
from contract.keys import BytesPrefix, CommitKind, JobPrefix
from contract.reports import Phase
from localaws.conditions import Conditions
from localaws.testing.waiting import until
from rehearsal.faults import parse_faults
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import ARMED, HAPPY, ONE, TWO, ended, failed, instances, left, path, stored, succeeded, train

pytestmark = [pytest.mark.rehearsal, pytest.mark.faults]
TRAINER = Path(__file__).with_name("trainer")
EVERYBODYS = {
    "events-dropped": "events-dropped:seconds=180",
    "events-late": "events-late:seconds=300",
    "clock-late": "clock-late:seconds=120",
}
WHILE_IT_TRAINS = {
    "attendant-dead": "attendant-dead:seconds=600",
    "attendant-hung": "attendant-dead:seconds=600,how=hangs",
}
ITS_OWN = {
    "slow-boot": "slow-boot:seconds=600",
    "late-tags": "late-tags:seconds=600",
    "clock-behind": "clock-skew:seconds=-300",
}
DEADLY = {
    "crash-agent": "agent-crash:at=agent",
    "crash-preparing": "agent-crash:at=preparing",
    "crash-waiting": "agent-crash:at=waiting",
    "crash-training": "agent-crash:at=training",
    "crash-saving": "agent-crash:at=saving",
    "user-data": "user-data-fails:line=2",
    "user-data-killed": "user-data-fails:line=2,how=killed",
    "user-data-killed-armed": f"user-data-fails:line={ARMED},how=killed",
    "no-network": "no-network:at=boot",
    "no-network-late": "no-network:at=training",
    "disk-full-boot": "disk-full:at=boot",
    "disk-full-agent": "disk-full:at=agent",
}


@pytest.fixture(scope="module")
def mending(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    work = tmp_path_factory.mktemp("mending") / "work"
    with Yard(work, Conditions(speed=10.0), settings={"limits": {"recoveries": 1}}) as yard:
        yield yard


def unharmed(job: StartedJob) -> None:
    execution = succeeded(job)
    assert (path(job), len(instances(job)), left(job)) == (HAPPY, 2, [])
    assert json.loads(execution["output"])["attempts"] == 1


@pytest.mark.parametrize("name", EVERYBODYS)
def test_what_everybody_meets_costs_no_second_cluster(mending: Yard, name: str) -> None:
    code = mending.upload(TRAINER, "trainer")
    with mending.faults(parse_faults([EVERYBODYS[name]])):
        job = mending.start({**TWO, "code": code, "command": train(40, 0.2)}, name)
        unharmed(job)
    assert "TaskTimedOut" not in {event["type"] for event in job.history()}


@pytest.mark.parametrize("name", WHILE_IT_TRAINS)
def test_an_attendant_that_is_dead_for_longer_than_a_heartbeat_costs_no_second_cluster(
    mending: Yard, name: str
) -> None:
    job = mending.start({**TWO, "code": mending.upload(TRAINER, "trainer"), "command": train(80, 0.2)}, name)
    until(lambda: Phase.TRAINING in {one.phase for one in job.reports(1).values()} or not job.runs())
    with mending.faults(parse_faults([WHILE_IT_TRAINS[name]])):
        unharmed(job)
    assert "TaskTimedOut" in {event["type"] for event in job.history()}


def test_a_session_service_that_is_away_for_lifetimes_of_keys_costs_a_training_nothing(mending: Yard) -> None:
    code, name = mending.upload(TRAINER, "trainer"), "keyless"
    away, notes = [f"session-service-away:seconds=1e9,how=fails,job={name}"], set[str]()

    def committed() -> int:
        prefix = BytesPrefix(name).commits(CommitKind.CHECKPOINTS)
        return len(
            mending.client("s3").list_objects_v2(Bucket=mending.places.bytes_, Prefix=prefix).get("Contents", [])
        )

    with mending.faults(parse_faults([f"keys-short:seconds=200,job={name}"])):
        request = {**TWO, "code": code, "command": train(300, 0.3), "checkpoint_minutes": 0.02}
        job = mending.start(request, name)
        until(lambda: committed() or not job.runs())
        with mending.faults(parse_faults(away)):
            gone = time.monotonic()
            while job.runs() and time.monotonic() - gone < 60.0:  # three lifetimes of 20 s
                notes |= {one.note for one in job.reports(1).values()}
                time.sleep(0.5)
            assert {one.phase for one in job.reports(1).values()} == {Phase.TRAINING}
            (calls := mending.aws.recorder.of(name="sts:AssumeRole")).sort(key=lambda one: one.at)
            assert calls[-1].error == "ServiceUnavailable"
        unharmed(job)
    assert any("the credentials of the job have expired" in one for one in notes), notes
    kept = {key.rpartition("/")[2] for key in job.artifacts()}
    assert {"result-0.json", "result-1.json"} <= kept
    lines = [line for rank in range(2) for line in job.log(names.log_stream(name, 1, rank))]
    assert any("the job has new credentials" in line for line in lines)
    assert sum("the last line" in line for line in lines) == 2


def at_once(
    yard: Yard, faults: dict[str, str], requests: dict[str, dict[str, Any]], more: str = ""
) -> Iterator[dict[str, StartedJob]]:
    """A job for each fault, which is its alone."""
    code = yard.upload(TRAINER, "trainer")
    own = [f"{fault},job={name}{more}" for name, fault in faults.items()]
    with yard.faults(parse_faults(own)):
        yield {name: yard.start({**requests[name], "code": code}, name) for name in faults}


LOSES = "node-lost:rank=1,step={step},closed=1,attempts={attempt},job=often"
"""A node of each attempt so far, once the training has come so far and has a checkpoint of the attempt."""
EXITS = 'test "$ATTEMPT" = 1 && exit {code}; exec python train.py 3 0.1 0'


@pytest.fixture(scope="module")
def again(mending: Yard) -> Iterator[dict[str, StartedJob]]:
    """Jobs that begin again more often than the deployment has recoveries (one), or that fail by themselves."""
    code = mending.upload(TRAINER, "trainer")
    losses = [LOSES.format(step=20 * attempt, attempt=attempt) for attempt in (1, 2)]
    often = {**TWO, "command": train(20, 0.2), "checkpoint_minutes": 0.02, "environment": {"ENDLESS_ATTEMPTS": "2"}}
    requests: dict[str, dict[str, Any]] = {"often": often}
    for name, status in (("tempfail", 75), ("mistake", 76)):
        command = ["bash", "-c", EXITS.format(code=status)]
        requests[name] = {**ONE, "command": command, "retries": {"times": 1, "exit_codes": [75]}}
    with mending.faults(parse_faults(losses)):
        yield {name: mending.start({**request, "code": code}, name) for name, request in requests.items()}


def test_a_job_that_commits_before_each_loss_is_lost_more_often_than_it_has_recoveries(
    again: dict[str, StartedJob],
) -> None:
    job = again["often"]
    output = json.loads(succeeded(job)["output"])
    ended(job)
    assert (output["attempts"], left(job)) == (3, [])
    restored = [job.reports(attempt)[0].restored_step for attempt in (2, 3)]
    assert restored == sorted(set(restored))  # each began further than the one before
    assert restored[0] > 0
    assert job.states().count("Pause") == 2


def test_a_command_that_exits_with_a_code_of_its_request_runs_again(again: dict[str, StartedJob]) -> None:
    job = again["tempfail"]
    assert json.loads(succeeded(job)["output"])["attempts"] == 2
    ended(job)
    assert left(job) == []
    (recovered,) = json.loads(stored(job.yard, JobPrefix(job.name).result))["recovered"]
    assert recovered["error"] == "TrainingFailed"
    assert "exited with code 75" in recovered["cause"]


def test_a_command_that_exits_with_another_code_does_not(again: dict[str, StartedJob]) -> None:
    job = again["mistake"]
    assert "exited with code 76" in failed(job, "TrainingFailed")
    assert job.states()[-3:] == ["Terminate", "Decide", "Failed"]
    assert job.states().count("Launch") == 1


@pytest.fixture(scope="module")
def late(mending: Yard) -> Iterator[dict[str, StartedJob]]:
    yield from at_once(mending, ITS_OWN, {name: {**TWO, "command": train(20, 0.2)} for name in ITS_OWN})


@pytest.mark.parametrize("name", ITS_OWN)
def test_what_one_job_meets_late_costs_no_second_cluster(late: dict[str, StartedJob], name: str) -> None:
    unharmed(late[name])


WHILE_TRAINING = {"crash-training", "no-network-late"}
"""Faults of DEADLY that strike a training. It goes on until they do."""


def dies(name: str, attempts: int) -> dict[str, Any]:
    """A request for the fault of DEADLY, which is met in so many attempts."""
    environment = {"MORE_ARTIFACTS": "300"}
    if name in WHILE_TRAINING:
        environment["ENDLESS_ATTEMPTS"] = str(attempts)
    return {**ONE, "command": train(20, 0.2), "environment": environment}


@pytest.fixture(scope="module")
def once(mending: Yard) -> Iterator[dict[str, StartedJob]]:
    yield from at_once(mending, DEADLY, {name: dies(name, 1) for name in DEADLY})


@pytest.mark.parametrize("name", DEADLY)
def test_met_once_it_costs_one_attempt(once: dict[str, StartedJob], name: str) -> None:
    succeeded(once[name])
    assert (len(instances(once[name])), left(once[name])) == (2, [])


@pytest.fixture(scope="module")
def always(mending: Yard) -> Iterator[dict[str, StartedJob]]:
    faults = {f"{name}-always": fault for name, fault in DEADLY.items()}
    yield from at_once(mending, faults, {f"{name}-always": dies(name, 9) for name in DEADLY}, ",attempts=9")


@pytest.mark.parametrize("name", DEADLY)
def test_met_in_every_attempt_it_ends_the_job_with_a_reason(always: dict[str, StartedJob], name: str) -> None:
    job = always[f"{name}-always"]
    assert failed(job, "NodeLost").startswith("rank 0")
    assert (len(instances(job)), left(job)) == (2, [])
