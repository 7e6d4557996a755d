"""Looks that come late fail their pass, and what one invocation cannot do others do."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from attendant.passes import SLICE
from attendant.rounds import OVERDUE_S
from contract import items
from contract.reports import Exit, Phase
from tests.builders import NODE_ROLE, NOW
from tests.fakes import state
from tests.fakes.faults import Kind, Mishap
from tests.fakes.fleet import WORKING, Fleet
from tests.fakes.functions import Outcome


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    made = Fleet([1] * 3, now=NOW)
    with made.functions.installed():
        yield made


def slice_of(fleet: Fleet, *mishaps: Mishap, age_s: float) -> Outcome:
    """Of a pass that began so long ago, the part with all jobs."""
    first, last = fleet.key(fleet.jobs[0].id).sort, fleet.key(fleet.jobs[-1].id).sort
    event = {"action": "slice", "first": first, "last": last, "gaps_s": [], "began": fleet.clock.now - age_s}
    return fleet.functions.invoke("attendant", event, mishaps)


def tick(fleet: Fleet, *mishaps: Mishap) -> Outcome:
    return fleet.functions.invoke("attendant", {"source": "aws.events"}, mishaps)


def ended(*instances: tuple[str, str]) -> dict[str, Any]:
    """A batch of the queue of instances that end: (region, id)."""
    events = [{"source": "aws.ec2", "region": region, "detail": {"instance-id": one}} for region, one in instances]
    return {"Records": [{"eventSource": "aws:sqs", "body": json.dumps(one)} for one in events]}


def machines_of(fleet: Fleet) -> list[tuple[str, str]]:
    return [(region, machine) for region, ec2 in fleet.aws.ec2.items() for machine in ec2.machines]


def test_instances_that_end_cost_one_question_a_region_and_a_look_a_job(fleet: Fleet) -> None:
    machines = machines_of(fleet)
    strangers = [(machines[0][0], f"i-{n:017x}") for n in range(5)]
    outcome = fleet.functions.invoke("attendant", ended(*machines, *strangers, *machines))
    assert outcome.value == {"heartbeat": 3}
    assert len(looks(fleet)) == 3
    about = [call.params["Filters"] for call in fleet.aws.calls if call.name == "ec2:DescribeInstances"]
    assert len([filters for filters in about if len(filters) == 2]) == 3


def test_instances_of_others_that_end_cause_no_look(fleet: Fleet) -> None:
    strangers = [(region, f"i-{n:017x}") for n, region in enumerate(fleet.aws.ec2)]
    assert fleet.functions.invoke("attendant", ended(*strangers)).value == {}
    assert looks(fleet) == []


def test_a_look_at_instances_that_end_is_not_asked_for_again_when_it_fails(fleet: Fleet) -> None:
    fleet.aws.faults.add(Kind.DENIED, "ec2:DescribeInstances", times=1000)
    assert fleet.functions.invoke("attendant", ended(*machines_of(fleet))).error == ""


def handed_over(fleet: Fleet) -> list[dict[str, Any]]:
    return [json.loads(call.params["Payload"]) for call in fleet.aws.calls if call.name == "lambda:Invoke"]


def looks(fleet: Fleet) -> list[str]:
    return [call.params["taskToken"] for call in fleet.aws.calls if call.name == "stepfunctions:SendTaskHeartbeat"]


def test_a_pass_whose_looks_come_late_looks_at_all_and_then_fails_for_the_alarm(fleet: Fleet) -> None:
    outcome = slice_of(fleet, age_s=OVERDUE_S + 1)
    assert (outcome.error, outcome.cause) == ("Overdue", "3 of 3 looks came late, or had no time left")
    assert len(looks(fleet)) == 3


def test_a_pass_in_time_does_not_fail(fleet: Fleet) -> None:
    assert slice_of(fleet, age_s=OVERDUE_S - 10).value == {"heartbeat": 3}
    assert tick(fleet).value == {"heartbeat": 3}


def test_only_those_that_begin_late_are_counted(fleet: Fleet) -> None:
    slow = Mishap("stepfunctions:SendTaskHeartbeat", meanwhile=lambda: fleet.clock.spend(10.0))
    assert slice_of(fleet, slow, age_s=OVERDUE_S - 5).cause.startswith("2 of 3 looks")


def test_attempts_for_which_no_time_is_left_are_handed_over_with_their_round_and_counted(fleet: Fleet) -> None:
    fleet.aws.later["attendant"] = lambda _: None
    began = fleet.clock.now - 5
    slow = Mishap("stepfunctions:SendTaskHeartbeat", meanwhile=lambda: fleet.clock.spend(45.0))
    assert slice_of(fleet, slow, age_s=5).cause.startswith("2 of 3 looks")
    assert len(looks(fleet)) == 1
    (told,) = handed_over(fleet)
    assert (told["action"], told["began"]) == ("slice", began)
    assert told["first"].startswith(fleet.jobs[1].id)
    assert told["last"].startswith(fleet.jobs[2].id)


def test_a_pass_over_many_tells_its_helpers_when_it_began() -> None:
    fleet = Fleet([1] * (2 * SLICE + 1), now=NOW)
    fleet.aws.later["attendant"] = lambda _: None
    with fleet.functions.installed():
        assert tick(fleet).value == {"heartbeat": SLICE}
    told = handed_over(fleet)
    assert [one["first"].partition("#")[0] for one in told] == [fleet.jobs[SLICE].id, fleet.jobs[2 * SLICE].id]
    assert all(NOW <= one["began"] < NOW + 1 for one in told)


def test_a_pass_that_cannot_hand_over_looks_at_all_itself() -> None:
    fleet = Fleet([1] * (SLICE + 5), now=NOW)
    with fleet.functions.installed():
        assert tick(fleet, Mishap("lambda:Invoke", times=math.inf, fault=Kind.DENIED)).value == {"heartbeat": SLICE + 5}


@pytest.mark.parametrize("silent", [False, True])
def test_ec2_that_does_not_answer_is_known_within_15_s_and_proves_no_loss(silent: bool) -> None:
    """Nodes that never reported and that EC2 does not know two minutes after their launch are lost, if EC2 says so."""
    fleet = Fleet([1] * 3, now=NOW, age_s=120.0)
    for job, ids in fleet.instances.items():
        fleet.aws.table.answer("DeleteItem", {"TableName": state.TABLE, "Key": of_report(ids[0])})
        fleet.aws.ec2[fleet.regions[job]].machines.clear()
    with fleet.functions.installed():
        outcome = tick(fleet, *([Mishap("ec2:*", times=math.inf, fault=Kind.UNREACHABLE)] if silent else []))
    assert outcome.value == ({"heartbeat": 3} if silent else {"fail": 3})
    assert fleet.clock.now - NOW <= 3 * 15.0  # three regions, one after the other here


def of_report(instance: str) -> dict[str, Any]:
    key = items.node_report(NODE_ROLE, instance)
    return {items.PARTITION: {"S": key.partition}, items.SORT: {"S": key.sort}}


def urgent(fleet: Fleet, *jobs: str, **facts: Any) -> dict[str, Any]:
    """An event of the stream."""
    records: list[dict[str, Any]] = []
    fleet.aws.table.feed(state.TABLE, lambda event: records.extend(event["Records"]))
    for job in jobs:
        told = replace(WORKING, job=job, instance=fleet.instances[job][0], **facts)
        state.report(fleet.aws, told, urgent=True)
    fleet.clock.run(5)
    return {"Records": records}


def count_ec2_calls(fleet: Fleet) -> int:
    return sum(call.service == "ec2" for call in fleet.aws.calls)


def test_a_look_that_fails_does_not_keep_urgent_reports_of_other_jobs_waiting(fleet: Fleet) -> None:
    event = urgent(fleet, "job-0000", "job-0001", "job-0002")
    fails = Mishap("stepfunctions:SendTaskHeartbeat", fault=Kind.DENIED)
    outcome = fleet.functions.invoke("attendant", event, [fails])
    assert "1 of 3 looks failed: job-0000/1" in outcome.cause
    assert looks(fleet) == [fleet.tokens["job-0001"], fleet.tokens["job-0002"]]


def test_an_end_without_an_error_needs_no_answer_of_ec2(fleet: Fleet) -> None:
    event = urgent(fleet, "job-0000", phase=Phase.ENDED, exit=Exit(code=0))
    assert fleet.functions.invoke("attendant", event).value == {"succeed": 1}
    assert count_ec2_calls(fleet) == 0


@pytest.mark.parametrize(
    "end",
    [
        {"exit": Exit(code=1, error="TrainingFailed")},
        {"outcome": Exit(code=1, error="TrainingFailed")},
        {"exit": Exit(code=1)},
    ],
)
def test_an_error_is_judged_with_what_ec2_knows_of_the_nodes(fleet: Fleet, end: dict[str, Any]) -> None:
    event = urgent(fleet, "job-0000", phase=Phase.SAVING, **end)
    fleet.functions.invoke("attendant", event)
    assert count_ec2_calls(fleet) == 1


def test_an_error_of_a_node_whose_peer_is_gone_is_a_loss_also_when_its_report_wakes_the_attendant() -> None:
    fleet = Fleet([2], now=NOW)
    with fleet.functions.installed():
        gone = fleet.aws.ec2[fleet.regions["job-0000"]].machines[fleet.instances["job-0000"][1]]
        fleet.aws.ec2[fleet.regions["job-0000"]].end(gone, "Server.InternalError", "host failed")
        end = Exit(code=1, error="TrainingFailed")
        fleet.functions.invoke("attendant", urgent(fleet, "job-0000", phase=Phase.SAVING, outcome=end))
        error = fleet.aws.states.waits[fleet.tokens["job-0000"]].error
    assert error is not None
    assert error[0] == "NodeLost"


def test_the_clock_asks_ec2_of_every_job(fleet: Fleet) -> None:
    tick(fleet)
    assert count_ec2_calls(fleet) == 3


def test_a_node_that_reports_its_end_and_leaves_while_it_is_looked_at_is_not_lost(fleet: Fleet) -> None:
    [machine] = fleet.instances["job-0000"]
    ec2 = fleet.aws.ec2[fleet.regions["job-0000"]]

    def leave() -> None:
        over = replace(WORKING, job="job-0000", instance=machine, phase=Phase.ENDED, exit=Exit(code=0))
        state.report(fleet.aws, over)
        ec2.end(ec2.machines[machine], "Client.InstanceInitiatedShutdown", "powered off")

    outcome = tick(fleet, Mishap("ec2:DescribeInstances", region=fleet.regions["job-0000"], meanwhile=leave))
    assert outcome.value == {"heartbeat": 2, "succeed": 1}


def test_an_attempt_that_is_over_is_not_looked_at_again(fleet: Fleet) -> None:
    fleet.functions.invoke("attendant", urgent(fleet, "job-0000", phase=Phase.ENDED, exit=Exit(code=0)))
    assert tick(fleet).value == {"heartbeat": 2}
