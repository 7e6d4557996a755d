"""The functions on the fake of AWS: what the property test found, one sentence each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from contract import items, tags
from contract.jobs import Job, Rung
from localaws.services.ec2_instance import Machine
from tests.builders import JOB, PLACE, rung
from tests.fakes.aws import Aws
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.functions import Functions, Outcome
from tests.fakes.state import store, stored
from tests.fakes.yard import ABROAD, admitted, deployed, home


@dataclass
class Yard:
    """A deployment with one job."""

    aws: Aws
    functions: Functions
    job: Job

    def launch(self, *mishaps: Mishap, attempt: int = 1) -> Outcome:
        return self.functions.invoke("launcher", {"job": self.job.id, "attempt": attempt}, mishaps)

    def terminate(self, *mishaps: Mishap, attempt: int = 1) -> Outcome:
        event: dict[str, Any] = {"job": self.job.id, "attempt": attempt, "problem": None}
        return self.functions.invoke("terminator", event, mishaps)

    def terminate_patiently(self) -> int:
        """As the machine does it; returns how often it asked."""
        for asked in range(1, 41):
            if not self.terminate().error:
                return asked
            self.aws.clock.run(self.job.timing.terminate_again_s)
        raise AssertionError("Terminate never succeeded")

    def running(self) -> list[Machine]:
        return [machine for ec2 in self.aws.ec2.values() for machine in ec2.running()]


@pytest.fixture
def yard() -> Iterator[Yard]:
    aws = deployed()
    made = Yard(aws, Functions(aws), admitted(aws))
    with made.functions.installed():
        yield made


@contextmanager
def two_regions(*ladder: Rung) -> Iterator[Yard]:
    """A job with this ladder, in a deployment of two regions."""
    aws = deployed(places=(PLACE, ABROAD))
    places = {place.region: place for place in (PLACE, ABROAD)}
    made = Yard(aws, Functions(aws), admitted(aws, replace(JOB, ladder=ladder, places=places)))
    with made.functions.installed():
        yield made


@pytest.fixture
def abroad() -> Iterator[Yard]:
    """Two regions; the job's nodes run in the one that is not home."""
    with two_regions(rung("eu-west-1a", region=ABROAD.region)) as made:
        assert made.launch().error == ""
        made.aws.clock.run(60)
        yield made


def test_a_launch_names_the_master_and_its_end_leaves_nothing(yard: Yard) -> None:
    assert yard.launch().value["master_address"] == yard.running()[0].address
    assert {one.tags[tags.MASTER_ADDRESS] for one in yard.running()} == {yard.running()[0].address}
    yard.aws.clock.run(60)
    assert yard.terminate_patiently() <= 2
    assert yard.running() == []


def test_a_launch_that_comes_after_terminate_launches_nothing(yard: Yard) -> None:
    assert yard.terminate().error == ""
    assert yard.launch().error == "NodeLost"
    assert home(yard.aws).machines == {}


def test_a_launch_that_goes_on_while_terminate_runs_leaves_nothing(yard: Yard) -> None:
    outcomes: list[Outcome] = []
    during = Mishap("ec2:RunInstances", meanwhile=lambda: outcomes.append(yard.terminate()))
    assert yard.launch(during).error == ""
    assert outcomes[0].error == "StillRunning"
    assert "may come within" in outcomes[0].cause
    yard.terminate_patiently()
    assert yard.running() == []


@pytest.mark.parametrize("death", Death)
def test_a_launcher_that_was_killed_at_its_call_leaves_nothing(yard: Yard, death: Death) -> None:
    yard.launch(Mishap("ec2:RunInstances", death=death))
    yard.terminate_patiently()
    assert yard.running() == []
    assert yard.launch().error == "NodeLost"


def test_terminate_does_not_take_invisible_nodes_for_none(yard: Yard) -> None:
    home(yard.aws).invisible_s = 4.0
    yard.launch(Mishap("ec2:CreateTags", death=Death.BEFORE))
    assert "EC2 may not show it yet" in yard.terminate().cause
    yard.terminate_patiently()
    assert yard.running() == []


def test_a_terminate_that_comes_late_keeps_the_next_attempts_nodes(yard: Yard) -> None:
    yard.launch()
    yard.aws.clock.run(60)
    yard.terminate_patiently()
    yard.launch(attempt=2)
    yard.aws.clock.run(10)
    assert yard.terminate().error == ""
    assert {one.tags[tags.ATTEMPT] for one in yard.running()} == {"2"}


def test_what_is_left_of_a_cluster_gets_no_second_one_beside_it(yard: Yard) -> None:
    yard.launch(Mishap("ec2:RunInstances", death=Death.AFTER))
    home(yard.aws).end(yard.running()[0], "Server.InternalError", "host failed")
    yard.aws.clock.run(301)
    assert yard.launch().error == "NodeLost"
    assert len(home(yard.aws).machines) == 2


@pytest.mark.parametrize("kind", [Kind.LOST, Kind.ERROR_AFTER])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_write_whose_answer_is_lost_is_no_race_against_itself(yard: Yard, kind: Kind, nth: int) -> None:
    assert yard.launch(Mishap("dynamodb:PutItem", nth, fault=kind)).error == ""
    assert len(yard.running()) == 2


def test_a_launcher_whose_walk_was_taken_over_is_asked_again_and_fails_nothing(yard: Yard) -> None:
    def taken_over() -> None:
        key = items.launch(yard.job.id, 1, 1)
        document = stored(yard.aws, key)
        assert document is not None
        store(yard.aws, key, document.replace(b"invocation-1", b"invocation-9"))

    assert yard.launch(Mishap("ec2:RunInstances", meanwhile=taken_over)).error == "CapacityPending"


@pytest.mark.parametrize("kind", [Kind.UNREACHABLE, Kind.THROTTLED, Kind.DENIED])
@pytest.mark.parametrize(
    "call", ["ec2:DescribeInstances", "ec2:TerminateInstances", "dynamodb:Query", "dynamodb:PutItem", "s3:PutObject"]
)
def test_a_terminate_that_cannot_ask_says_that_something_may_run(yard: Yard, kind: Kind, call: str) -> None:
    yard.launch()
    yard.aws.clock.run(60)
    assert yard.terminate(Mishap(call, times=40, fault=kind)).error in {"StillRunning", "Sandbox.Timedout"}
    yard.terminate_patiently()
    assert yard.running() == []


@pytest.mark.parametrize("kind", [Kind.UNREACHABLE, Kind.ERROR, Kind.DENIED])
def test_a_region_that_cannot_be_asked_keeps_no_other_regions_nodes_running(kind: Kind) -> None:
    with two_regions(rung(), rung("eu-west-1a", region=ABROAD.region)) as yard:
        home(yard.aws).capacity[rung().instance_type, rung().zone] = 0
        assert yard.launch().error == ""
        yard.aws.clock.run(60)
        assert {one.region for one in yard.running()} == {ABROAD.region}
        outage = Mishap("ec2:*", times=math.inf, region=PLACE.region, fault=kind)
        assert "a call to eu-central-1 failed" in yard.terminate(outage).cause
        assert yard.running() == []
        yard.aws.clock.run(15)
        assert yard.terminate().error == ""


@pytest.mark.parametrize("kind", [Kind.UNREACHABLE, Kind.ERROR, Kind.DENIED])
def test_a_region_where_nothing_was_prepared_holds_up_no_end(abroad: Yard, kind: Kind) -> None:
    outage = Mishap("ec2:*", times=math.inf, region=PLACE.region, fault=kind)
    assert abroad.terminate(outage).error == ""
    assert abroad.running() == []


def test_a_job_recovers_in_one_region_while_another_of_its_ladder_is_away() -> None:
    def away() -> Mishap:
        return Mishap("*", times=math.inf, region=ABROAD.region, fault=Kind.UNREACHABLE)

    with two_regions(rung(), rung("eu-west-1a", region=ABROAD.region)) as yard:
        assert yard.launch(away()).error == ""
        yard.aws.clock.run(60)
        home(yard.aws).end(yard.running()[0], "Server.InternalError", "host failed")
        yard.aws.clock.run(60)
        problem = {
            "job": yard.job.id,
            "attempt": 1,
            "problem": {"error": "NodeLost", "cause": "host failed"},
            "step": -1,
        }
        assert yard.functions.invoke("terminator", problem, [away()]).error == ""
        assert yard.running() == []
        assert yard.launch(away(), attempt=2).error == ""
        assert {(one.region, one.tags[tags.ATTEMPT]) for one in yard.running()} == {(PLACE.region, "2")}


def test_a_region_where_nothing_was_prepared_is_cleared_where_it_answers(abroad: Yard) -> None:
    now, ours = abroad.aws.clock.now, abroad.running()[0]
    another = home(abroad.aws).put(ours.tags, launched_at=now - 60, profile=ours.profile)
    assert another.id in abroad.terminate().value["terminated"]


def test_every_region_has_to_answer_where_an_attempt_has_no_walk(abroad: Yard) -> None:
    """A table that was restored to an earlier point lacks walks, and so the region in which the attempt runs."""
    outage = Mishap("ec2:*", times=math.inf, region=PLACE.region, fault=Kind.UNREACHABLE)
    assert "a call to eu-central-1 failed" in abroad.terminate(outage, attempt=2).cause


def test_every_region_has_to_answer_where_no_walk_is_known() -> None:
    with two_regions(rung("eu-west-1a", region=ABROAD.region)) as yard:
        outage = Mishap("ec2:*", times=math.inf, region=PLACE.region, fault=Kind.UNREACHABLE)
        assert "a call to eu-central-1 failed" in yard.terminate(outage).cause


def test_a_region_that_answers_late_makes_no_other_regions_invisible_nodes_visible() -> None:
    with two_regions(rung()) as yard:
        yard.launch(Mishap("ec2:CreateTags", death=Death.BEFORE))
        slow = Mishap("ec2:DescribeInstances", times=2, region=ABROAD.region, fault=Kind.UNREACHABLE)
        assert "EC2 may not show it yet" in yard.terminate(slow).cause
        yard.terminate_patiently()
        assert yard.running() == []


def test_a_region_that_cannot_be_asked_is_asked_again_before_terminate_succeeds(abroad: Yard) -> None:
    outage = Mishap("ec2:*", times=math.inf, region=ABROAD.region, fault=Kind.UNREACHABLE)
    assert abroad.terminate(outage).error == "StillRunning"
    assert len(abroad.running()) == 2
    abroad.terminate_patiently()
    assert abroad.running() == []


def test_a_protected_node_keeps_no_other_from_ending_and_is_named(yard: Yard) -> None:
    yard.launch()
    yard.aws.clock.run(60)
    protected = yard.running()[1]
    protected.protected = True
    assert "OperationNotPermitted" in yard.terminate().cause
    yard.aws.clock.run(15)
    assert yard.running() == [protected]
    assert f"- {protected.id} in eu-central-1a is running" in yard.terminate().cause


def test_a_node_that_accepts_to_end_and_stays_is_no_success(yard: Yard) -> None:
    yard.launch()
    yard.aws.clock.run(60)
    yard.running()[0].stuck = True
    for _ in range(3):
        assert yard.terminate().error == "StillRunning"
        yard.aws.clock.run(15)
    assert len(yard.running()) == 1


def test_terminate_waits_for_an_invocation_that_goes_on_with_the_walk_of_another(yard: Yard) -> None:
    yard.launch(Mishap("ec2:RunInstances", death=Death.BEFORE))
    yard.aws.clock.run(301)
    outcomes: list[Outcome] = []

    def terminate_later() -> None:
        yard.aws.clock.now += 10.0
        outcomes.append(yard.terminate())

    yard.launch(Mishap("ec2:RunInstances", meanwhile=terminate_later))
    assert outcomes[0].error == "StillRunning"
    yard.terminate_patiently()
    assert yard.running() == []


def test_a_launch_that_comes_just_before_terminate_closes_the_attempt_is_in_its_proof(yard: Yard) -> None:
    home(yard.aws).invisible_s = 4.0

    def launch() -> None:
        yard.launch(Mishap("ec2:CreateTags", death=Death.BEFORE))

    assert yard.terminate(Mishap("dynamodb:PutItem", meanwhile=launch)).error == "StillRunning"


def test_a_walk_after_one_without_capacity_is_a_new_try_and_no_repeat_of_the_same_bytes(yard: Yard) -> None:
    kinds = {(one.instance_type, one.zone) for one in yard.job.ladder}
    home(yard.aws).capacity |= dict.fromkeys(kinds, 0)
    assert yard.launch().error == "CapacityPending"
    home(yard.aws).capacity.clear()
    yard.aws.clock.run(yard.job.timing.visibility_s)
    assert yard.launch().error == ""
    assert len(yard.running()) == yard.job.nodes


def test_a_walk_after_one_that_was_cut_off_in_its_call_finds_what_that_launched(yard: Yard) -> None:
    yard.launch(Mishap("ec2:RunInstances", death=Death.AFTER))
    yard.aws.clock.run(301)
    assert yard.launch().error == ""
    assert len(home(yard.aws).machines) == yard.job.nodes
