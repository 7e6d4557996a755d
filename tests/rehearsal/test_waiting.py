"""Jobs that wait for capacity on the deployed machine: its JSONata, its tokens, its clock, and the rights of the launcher."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from contract import keys, tags
from contract.timing import Timing
from localaws.conditions import Conditions
from localaws.iam.permissions import judge
from localaws.services import ec2
from localaws.services.ec2_capacity import CapacityReservation
from localaws.services.ec2_reservations import reserve
from localaws.testing.waiting import HANG_S, until
from rehearsal.faults import parse_faults
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import BEGIN, DENIALS, ENDLESS, ONE, failed, instances, left, path, stored, succeeded, train

pytestmark = [pytest.mark.rehearsal]
TRAINER = Path(__file__).with_name("trainer")
HOME = "eu-central-1"
SPEED = 10.0
QUICK = {
    "launch_patience_s": 6.0,
    "launch_again_s": 2.0,
    "launch_pace_s": 0.2,
    "wait_again_s": 2.0,
    "wait_longest_s": 6.0,
    "spot_prices_s": 10.0,
}
"""In seconds of the rehearsal: a minute of the real clock is six of them."""
WAIT = "Wait for capacity"
CHEAPER = f"{HOME}b"
"""The dearest zone on spot when jobs are admitted, and the cheapest once the job waits."""
DEAR, CHEAP = (f"spot-price-moves:factor={factor},zone={CHEAPER}" for factor in ("1000", "0.001"))
AWAY = {
    **{name: f"capacity-away:job={name}" for name in ("patient", "priced", "stopped", "hasty", "block")},
    "reserved": "reservation-full:job=reserved",
}
"""What keeps each job waiting, until its test ends that."""


@pytest.fixture(scope="module")
def scarce(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """A deployment of its own, so that no capacity is nobody else's trouble."""
    timing = asdict(Timing().divided(SPEED)) | QUICK
    work = tmp_path_factory.mktemp("scarce") / "work"
    with Yard(work, Conditions(speed=SPEED), settings={"timing": timing}, wanted=["workflow"]) as yard:
        yield yard


def reserved(scarce: Yard, **more: Any) -> CapacityReservation:
    """What a person reserved for one node, and gave the deployment's tag."""
    scarce.client("ec2").describe_instances()  # which opens the region
    with ec2.machines().lock:
        region = ec2.machines().regions[HOME]
        return reserve(region, "t3.large", f"{HOME}a", 1, tags={tags.DEPLOYMENT: "trainyard"}, **more)


@pytest.fixture(scope="module")
def away(scarce: Yard) -> Iterator[dict[str, ExitStack]]:
    """By job, what closes once capacity shall come."""
    with ExitStack() as every:
        found = {name: every.enter_context(ExitStack()) for name in (*AWAY, "dear")}
        for name, fault in {**AWAY, "dear": DEAR}.items():
            found[name].enter_context(scarce.faults(parse_faults([fault])))
        yield found


@pytest.fixture(scope="module")
def jobs(scarce: Yard, away: dict[str, ExitStack]) -> Iterator[dict[str, StartedJob]]:  # noqa: ARG001
    """Started while there is no capacity."""
    code = scarce.upload(TRAINER, "trainer")
    waits: dict[str, Any] = {**ONE, "code": code, "command": train(2, 0.1), "max_wait_hours": 24}
    requests = {"patient": waits, "stopped": waits, "hasty": {**waits, "max_wait_hours": 0.008}}
    requests["reserved"] = {**waits, "reservation": reserved(scarce).id}
    block = reserved(scarce, kind="capacity-block", ends_at=time.time() + 7200.0)
    requests["block"] = {**waits, **ENDLESS, "reservation": block.id, "checkpoint_minutes": 0.02}
    requests["priced"] = {**waits, "market": "spot"}
    with scarce.faults(parse_faults(["capacity-away:job=reserved", "block-ends:step=10,closed=1,job=block"])):
        yield {name: scarce.start(request, name) for name, request in requests.items()}


def document(scarce: Yard, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stored(scarce, keys.JobPrefix(name).wait))
    return found


def has_tried(scarce: Yard, job: StartedJob) -> bool:
    """Whether it waits, and has asked in vain since it does."""
    try:
        return WAIT in job.states() and document(scarce, job.name)["tries"] > 0
    except scarce.client("s3").exceptions.NoSuchKey:  # it has begun to wait this moment
        return False


def give_capacity(scarce: Yard, away: dict[str, ExitStack], job: StartedJob) -> None:
    """Ends what keeps the job waiting, once it has asked in vain."""
    until(lambda: has_tried(scarce, job), HANG_S)
    away[job.name].close()


def test_a_job_waits_for_its_capacity_and_is_trained(
    scarce: Yard, away: dict[str, ExitStack], jobs: dict[str, StartedJob]
) -> None:
    job = jobs["patient"]
    give_capacity(scarce, away, job)
    execution = succeeded(job)
    assert path(job) == [*BEGIN, "Launch", WAIT, "Train", "Sync", "Terminate", "Decide", "Done"]
    told = document(scarce, job.name)
    assert (told["state"], told["tries"] > 0) == ("launched", True)
    links = json.loads(execution["output"])["links"]
    assert links["waiting"].endswith("waiting.json")


def test_the_hours_of_the_job_began_when_it_had_waited(
    scarce: Yard, away: dict[str, ExitStack], jobs: dict[str, StartedJob]
) -> None:
    job = jobs["patient"]
    give_capacity(scarce, away, job)
    succeeded(job)
    (one,) = instances(job)
    (deadline,) = (float(tag["Value"]) for tag in one["Tags"] if tag["Key"] == tags.DEADLINE)
    (began_to_wait,) = (
        event["timestamp"].timestamp()
        for event in job.history()
        if event.get("stateEnteredEventDetails", {}).get("name") == WAIT
    )
    assert deadline > began_to_wait + 3600


def test_while_it_waits_its_history_does_not_grow(
    scarce: Yard, away: dict[str, ExitStack], jobs: dict[str, StartedJob]
) -> None:
    """The events of a state that waits for a token: entered, scheduled, started, submitted, succeeded, left."""
    job = jobs["patient"]
    give_capacity(scarce, away, job)
    succeeded(job)
    events = job.history()
    names = [one.get("stateEnteredEventDetails", {}).get("name") for one in events]
    begin, end = names.index(WAIT), names.index("Train")
    assert end - begin <= 8


def test_an_execution_that_is_stopped_while_it_waits_ends_with_nothing(
    scarce: Yard, jobs: dict[str, StartedJob]
) -> None:
    job = jobs["stopped"]
    until(lambda: WAIT in job.states(), HANG_S)
    scarce.client("stepfunctions").stop_execution(executionArn=job.arn, error="Stopped", cause="somebody pressed Stop")
    assert job.wait(HANG_S)["status"] == "ABORTED"
    job.settle()
    assert (instances(job), left(job)) == ([], [])


def test_a_wait_that_is_over_fails_the_job_and_says_what_every_rung_answered(jobs: dict[str, StartedJob]) -> None:
    cause = failed(jobs["hasty"], "CapacityUnavailable")
    assert "max_wait_hours is 0.008" in cause
    # Of each place the answer, or which other job of this file had just found it empty.
    for zone in "abc":
        assert re.search(
            rf"t3\.large in {HOME}{zone} \(on-demand\): (InsufficientInst|NotAsked: \w+ found it empty)", cause
        )


def test_a_job_that_waited_asks_first_in_the_zone_whose_spot_price_has_fallen_below_the_others(
    scarce: Yard, away: dict[str, ExitStack], jobs: dict[str, StartedJob]
) -> None:
    job = jobs["priced"]
    until(lambda: has_tried(scarce, job), HANG_S)
    away["dear"].close()
    with scarce.faults(parse_faults([CHEAP])):
        until(lambda: [one["zone"] for one in document(scarce, job.name)["rungs"]][:1] == [CHEAPER], HANG_S)
        give_capacity(scarce, away, job)
        succeeded(job)
    exits = [one["stateExitedEventDetails"] for one in job.history() if "stateExitedEventDetails" in one]
    (admitted,) = (json.loads(one["output"]) for one in exits if one["name"] == "Admit")
    assert CHEAPER in admitted["ladder"][-1]
    rungs = document(scarce, job.name)["rungs"]
    assert rungs[0]["zone"] == CHEAPER
    # The next one on a slow machine, whose capacity comes back while it is asked.
    (one,) = instances(job)
    assert one["Placement"]["AvailabilityZone"] == rungs[-1]["zone"]
    assert "an hour of one node" in rungs[-1]["price"]


def test_a_full_reservation_is_waited_for_and_then_used(
    scarce: Yard, away: dict[str, ExitStack], jobs: dict[str, StartedJob]
) -> None:
    job = jobs["reserved"]
    give_capacity(scarce, away, job)
    succeeded(job)
    assert WAIT in job.states()
    assert "ReservationCapacityExceeded" in json.dumps(job.history(), default=str)
    (one,) = instances(job)
    assert one["CapacityReservationId"].startswith("cr-")


def test_a_job_whose_block_is_ended_under_it_goes_on_in_the_block_from_its_checkpoint(
    jobs: dict[str, StartedJob],
) -> None:
    job = jobs["block"]
    succeeded(job)
    first, second = instances(job)
    assert {first["InstanceLifecycle"], second["InstanceLifecycle"]} == {"capacity-block"}
    (restored,) = {one.restored_step for one in job.reports(2).values()}
    assert restored > 0


def test_no_call_of_a_wait_or_of_a_launch_into_a_reservation_would_be_denied(
    scarce: Yard, away: dict[str, ExitStack], jobs: dict[str, StartedJob]
) -> None:
    for name in ("patient", "priced", "reserved"):
        give_capacity(scarce, away, jobs[name])
    for name in ("patient", "priced", "reserved", "block"):
        succeeded(jobs[name])
    account = scarce.account()
    policies = account.policies()
    roles = {role for role in policies if "Launcher" in role or "Admission" in role}
    made = [call for call in list(scarce.aws.recorder.calls) if call.role in roles and call.error not in DENIALS]
    verdicts = judge(made, policies, account)
    assert [(one.call.name, one.request, one.answer.error) for one in verdicts if not one.answer.allowed] == []
    assert {"states:SendTaskSuccess", "dynamodb:DeleteItem", "ec2:DescribeSpotPriceHistory"} <= {
        one.call.name for one in verdicts
    }
    launched = {
        one.request.resource.split(":")[5].split("/")[0] for one in verdicts if one.call.action == "RunInstances"
    }
    assert "capacity-reservation" in launched
