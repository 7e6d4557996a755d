"""Places that were found empty a moment ago: who is spared a call, and who asks all the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from contract.empty_places import EmptyPlace
from contract.intents import Intent, LaunchAnswer, LaunchOutcome, Step
from contract.jobs import Job, Market
from launcher.empty_places import describe_empty, pass_over
from tests.builders import INTENT, JOB, NOW
from tests.fakes.aws import Aws
from tests.fakes.faults import Kind
from tests.fakes.functions import Functions, Outcome
from tests.fakes.yard import admitted, deployed, home

FIRST = JOB.ladder[0]
NONE = LaunchAnswer(outcome=LaunchOutcome.NO_CAPACITY, at=NOW, code="InsufficientInstanceCapacity")
NOTE = EmptyPlace(
    region=FIRST.region,
    zone=FIRST.zone,
    instance_type=FIRST.instance_type,
    market=FIRST.market.value,
    nodes=JOB.nodes,
    job="another",
    at=NOW,
)
ASKED = replace(INTENT, steps=tuple(Step(rung=rung, request={"a": 1}, answer=NONE) for rung in JOB.ladder))
"""A walk in which every rung was asked."""


def spared(
    note: EmptyPlace = NOTE,
    before: Intent | None = ASKED,
    *,
    job: Job = JOB,
    waiting: bool = False,
    now: float = NOW + 60,
) -> list[str]:
    return [rung.zone for rung in pass_over(job, [note], before, waiting=waiting, now=now)]


def test_a_place_that_another_job_found_empty_is_passed_over_for_two_minutes() -> None:
    assert spared() == [FIRST.zone]
    assert spared(now=NOW + JOB.timing.empty_place_s) == []


def test_a_walk_says_who_found_the_place_empty() -> None:
    (answer,) = pass_over(JOB, [NOTE], ASKED, waiting=False, now=NOW + 60).values()
    assert (answer.code, answer.outcome) == ("NotAsked: another found it empty", LaunchOutcome.NO_CAPACITY)


@pytest.mark.parametrize(
    "different",
    [
        {"job": JOB.id},
        {"nodes": JOB.nodes + 1},
        {"zone": "eu-central-1z"},
        {"region": "us-east-1"},
        {"instance_type": "m5.large"},
        {"market": "spot"},
    ],
)
@pytest.mark.parametrize("waiting", [False, True])
def test_what_was_found_elsewhere_or_for_more_nodes_or_by_the_job_itself_spares_nothing(
    different: dict[str, str | int], waiting: bool
) -> None:
    assert spared(replace(NOTE, **different), waiting=waiting) == []  # type: ignore[arg-type]


def test_what_was_found_for_fewer_nodes_holds_for_more() -> None:
    assert spared(replace(NOTE, nodes=JOB.nodes - 1)) == [FIRST.zone]


def test_the_first_walk_of_an_attempt_asks_every_place_itself() -> None:
    assert spared(before=None) == []


def test_a_place_is_not_passed_over_in_two_walks_that_follow_each_other() -> None:
    told = pass_over(JOB, [NOTE], ASKED, waiting=False, now=NOW + 60)
    second = replace(ASKED, steps=tuple(replace(step, answer=told.get(step.rung, NONE)) for step in ASKED.steps))
    assert spared(replace(NOTE, at=NOW + 100), second, now=NOW + 110) == []


def test_a_job_that_waits_leaves_asking_to_whoever_is_first() -> None:
    assert spared(before=None, waiting=True) == [FIRST.zone]


def test_a_reservation_is_never_passed_over_and_tells_nobody_anything() -> None:
    own = replace(FIRST, reservation="cr-1", market=Market.RESERVATION)
    job = replace(JOB, ladder=(own,))
    note = replace(NOTE, market=Market.RESERVATION.value)
    assert pass_over(job, [note], ASKED, waiting=True, now=NOW + 1) == {}
    assert describe_empty(job, Step(rung=own, request={}, answer=NONE)) is None


@pytest.mark.parametrize(
    "code", ["VcpuLimitExceeded", "Unsupported", "InsufficientFreeAddressesInSubnet", "NotAsked: x", ""]
)
def test_answers_that_are_about_the_request_or_the_account_tell_other_jobs_nothing(code: str) -> None:
    assert describe_empty(JOB, Step(rung=FIRST, request={}, answer=replace(NONE, code=code))) is None


class Yard:
    def __init__(self, aws: Aws) -> None:
        self.aws, self.functions = aws, Functions(aws)

    def launch(self, name: str) -> Outcome:
        return self.functions.invoke("launcher", {"job": name, "attempt": 1}, [])

    def count_launch_calls(self, name: str) -> int:
        calls = [call for call in self.aws.calls if call.name == "ec2:RunInstances"]
        tags = [call.params["TagSpecifications"][0]["Tags"] for call in calls]
        return sum({"Key": "trainyard:job", "Value": name} in marks for marks in tags)


@pytest.fixture
def yard() -> Iterator[Yard]:
    aws = deployed()
    for name in ("first", "second"):
        admitted(aws, replace(JOB, id=name, execution=JOB.execution.replace(JOB.id, name)))
    home(aws).capacity |= {(rung.instance_type, rung.zone): 0 for rung in JOB.ladder}
    made = Yard(aws)
    with made.functions.installed():
        yield made


def test_jobs_that_are_launched_at_the_same_time_ask_by_turns(yard: Yard) -> None:
    rungs = len(JOB.ladder)
    for _ in range(6):
        for name in ("first", "second"):
            assert yard.launch(name).error == "CapacityPending"
        yard.aws.clock.run(60)
    every = yard.count_launch_calls("first") + yard.count_launch_calls("second")
    assert yard.count_launch_calls("first") >= 3 * rungs
    assert yard.count_launch_calls("second") >= 3 * rungs
    assert every < 12 * rungs


def test_capacity_that_comes_back_is_found_although_the_place_was_empty_for_others(yard: Yard) -> None:
    for name in ("first", "second"):
        yard.launch(name)
    home(yard.aws).capacity.clear()
    yard.aws.clock.run(60)
    outcomes = [yard.launch(name) for name in ("first", "second")]
    yard.aws.clock.run(60)
    outcomes += [yard.launch(name) for name in ("first", "second")]
    assert [one.error for one in outcomes[2:]] == ["", ""]


def test_a_job_alone_asks_every_place_in_every_walk(yard: Yard) -> None:
    for _ in range(4):
        yard.launch("first")
        yard.aws.clock.run(60)
    assert yard.count_launch_calls("first") == 4 * len(JOB.ladder)


@pytest.mark.parametrize("kind", [Kind.THROTTLED, Kind.UNREACHABLE, Kind.DENIED])
def test_a_table_that_does_not_tell_what_is_empty_keeps_no_job_from_asking(yard: Yard, kind: Kind) -> None:
    yard.launch("first")
    yard.aws.faults.add(kind, "dynamodb:Query", times=40)
    yard.aws.clock.run(60)
    outcome = yard.launch("second")
    yard.aws.faults.waiting.clear()
    yard.aws.clock.run(60)
    assert outcome.error
    assert yard.launch("second").error == "CapacityPending"
    assert yard.count_launch_calls("second") >= len(JOB.ladder)
