"""Everything that goes wrong for the reaper, by name, with its end state: kills come first, and nothing wrong is ended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from aws.belongings import SKEW_S, moment
from contract import metrics, tags
from tests.builders import JOB, PLACE
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.reaping import HOUR, alive, put
from tests.fakes.yard import ABROAD
from tests.functions.reaper.reaped import PASSING, Yard, abroad, counted, reaped


@pytest.fixture
def yard() -> Iterator[Yard]:
    with reaped() as one:
        yield one


# TerminateInstances


def test_terminate_refused_for_one_of_fifty_ends_the_other_forty_nine(yard: Yard) -> None:
    machines = [yard.instance(deadline=-HOUR) for _ in range(50)]
    machines[17].protected = True  # against the API, as in EC2's own console
    outcome = yard.run()
    assert [alive(one) for one in machines].count(True) == 1
    assert outcome.error == "Unfinished"
    assert machines[17].id in outcome.cause
    assert (counted(yard, metrics.ENDED), counted(yard, metrics.REFUSED)) == (49, 1)
    assert "could not end 1" in yard.fake.topics.messages[0][0]
    assert "disableApiTermination" in yard.fake.topics.messages[0][1]


def test_terminate_accepted_but_the_instance_stays_is_refused_and_tried_again(yard: Yard) -> None:
    machine = yard.instance(deadline=-HOUR)
    machine.stuck = True
    assert yard.run().error == ""
    outcome = yard.reaping.later()
    assert outcome.error == "Unfinished"
    assert "AWS was asked to end it at 2027-01-15 08:00 UTC, and it is still there" in yard.fake.topics.messages[-1][1]
    assert counted(yard, metrics.ENDED) == 0
    assert len(yard.calls("ec2:TerminateInstances")) == 2
    machine.stuck = False
    yard.reaping.later()
    assert not alive(machine)
    assert yard.reaping.later().value[metrics.REFUSED] == 0


def test_stopped_instead_of_terminated_is_not_over(yard: Yard) -> None:
    machine = yard.instance(deadline=-HOUR)
    machine.stuck = True
    yard.run()
    machine.stuck, machine.stopped_at = False, yard.now
    yard.reaping.later()
    assert not alive(machine)


@pytest.mark.parametrize("kind", PASSING)
def test_a_terminate_that_fails_is_refused_and_comes_again_with_the_next_pass(yard: Yard, kind: Kind) -> None:
    machines = [yard.instance(deadline=-HOUR) for _ in range(3)]
    yard.fake.faults.add(kind, "ec2:TerminateInstances", times=100)
    yard.run()
    yard.fake.faults.waiting.clear()
    if kind is not Kind.LOST:
        assert all(map(alive, machines))
        assert counted(yard, metrics.REFUSED) == 3
    yard.reaping.later()
    assert not any(map(alive, machines))


def test_a_throttle_that_lasts_is_not_multiplied_by_halves(yard: Yard) -> None:
    for _ in range(100):
        yard.instance(deadline=-HOUR)
    began = yard.now
    yard.fake.faults.add(Kind.THROTTLED, "ec2:TerminateInstances", times=1000)
    yard.run()
    assert sum(one.times for one in yard.fake.faults.waiting) == 1000 - 4, "the client's four attempts at one call"
    assert yard.now - began < 60


# Executions


@pytest.mark.parametrize("kind", PASSING)
def test_a_lookup_that_fails_is_never_an_answer(yard: Yard, kind: Kind) -> None:
    """Kept and told; and the mark of an earlier look stays what it was."""
    machine = yard.instance()
    yard.over()
    yard.run()
    yard.fake.faults.add(kind, "stepfunctions:DescribeExecution", times=100)
    for _ in range(3):
        yard.reaping.later()
    assert alive(machine)
    assert counted(yard, metrics.TOLD) == 1
    yard.fake.faults.waiting.clear()
    yard.reaping.later()
    assert not alive(machine)


def test_a_mark_that_outlived_a_redrive_unseen_is_no_first_look_after_it(yard: Yard) -> None:
    machine = yard.instance()
    yard.over()
    yard.run()
    yard.fake.faults.add(Kind.DENIED, "stepfunctions:*", times=100)
    yard.fake.states.executions.redrive(yard.execution)
    yard.reaping.later()
    yard.over(ago=0)
    for _ in range(3):
        yard.reaping.later()
    yard.fake.faults.waiting.clear()
    yard.reaping.later()
    assert alive(machine)
    yard.reaping.later()
    assert not alive(machine)


@pytest.mark.parametrize("kind", PASSING)
def test_with_no_answer_about_executions_deadlines_hold_everywhere(yard: Yard, kind: Kind) -> None:
    late, running = [yard.instance(deadline=-HOUR), abroad(yard, deadline=-HOUR)], [yard.instance(), abroad(yard)]
    yard.fake.faults.add(kind, "stepfunctions:*", times=100)
    yard.run()
    assert not any(map(alive, late))
    assert all(map(alive, running))


def test_a_list_that_fails_does_not_mean_that_nothing_runs(yard: Yard) -> None:
    machine = yard.instance()
    yard.fake.faults.add(
        Kind.DENIED, "stepfunctions:ListExecutions", times=3 * 5
    )  # of three machines, of lines among one, of rounds among another
    yard.run(3)
    assert alive(machine)
    assert len(yard.calls("stepfunctions:DescribeExecution")) == 3


def test_of_many_executions_five_hundred_are_asked_for_and_the_rest_is_not_known(yard: Yard) -> None:
    for number in range(520):
        job = f"gone-{number}"
        yard.instance({tags.EXECUTION: yard.execution.arn.replace(JOB.id, job)})
    yard.run()
    assert len(yard.calls("stepfunctions:DescribeExecution")) == 500
    assert counted(yard, metrics.TOLD) == 20
    assert all(map(alive, yard.ec2.machines.values()))


def test_a_service_that_fails_three_times_is_not_asked_for_each_of_hundreds(yard: Yard) -> None:
    for number in range(200):
        yard.instance({tags.EXECUTION: yard.execution.arn.replace(JOB.id, f"gone-{number}")})
    began = yard.now
    yard.fake.faults.add(Kind.UNREACHABLE, "stepfunctions:DescribeExecution", times=10_000)
    yard.run()
    assert counted(yard, metrics.TOLD) == 200
    assert counted(yard, metrics.PASSES) == 1
    assert yard.now - began < 120


# DescribeInstances


def test_ours_on_the_last_page_of_thousands_are_found(yard: Yard) -> None:
    for _ in range(2100):
        put(yard.ec2, {tags.NAME: "theirs"}, launched_at=yard.now - HOUR, profile="")
    machine = yard.instance(deadline=-HOUR)
    assert yard.run().value[metrics.SEEN] == 1
    assert not alive(machine)


def test_a_token_that_expires_half_way_leaves_verdicts_for_deadlines_only(yard: Yard) -> None:
    over, late = yard.instance(), yard.instance(deadline=-HOUR)
    yard.over()
    yard.run()
    for _ in range(5):
        put(yard.ec2, {}, launched_at=yard.now, profile="")
    also_late = yard.instance(deadline=-HOUR)
    yard.ec2.machines = {one.id: one for one in [also_late, over, *yard.ec2.machines.values()]}
    yard.ec2.pages.size, yard.ec2.pages.life_s = 3, 0.0
    yard.fake.clock.run(300)
    restored = Mishap("ec2:DescribeInstances", nth=3, meanwhile=lambda: setattr(yard.ec2.pages, "size", 1000))
    outcome = yard.reaping.run(mishaps=[restored])
    assert outcome.error == "Unfinished"
    assert counted(yard, metrics.FAILED_REGIONS) == 1
    assert counted(yard, metrics.PASSES) == 0
    assert not alive(late)
    assert not alive(also_late)
    assert alive(over)
    yard.ec2.pages.size, yard.ec2.pages.life_s = 1000, 3600.0
    yard.reaping.later()
    assert not alive(over), "the mark outlived the look that failed"


@pytest.mark.parametrize("kind", PASSING)
def test_one_region_that_does_not_answer_costs_the_others_nothing(yard: Yard, kind: Kind) -> None:
    unseen, late, over = yard.instance(deadline=-HOUR), abroad(yard, deadline=-HOUR), abroad(yard)
    yard.over()
    for _ in range(2):
        yard.fake.faults.add(kind, "ec2:DescribeInstances", times=1 if kind is Kind.DENIED else 4)
        outcome = yard.reaping.later()
    assert outcome.error == "Unfinished"
    assert PLACE.region in outcome.cause
    assert (counted(yard, metrics.FAILED_REGIONS), counted(yard, metrics.PASSES)) == (1, 0)
    assert alive(unseen)
    assert not alive(late)
    assert not alive(over)


@pytest.mark.parametrize("operation", ["Volumes", "NetworkInterfaces", "SpotInstanceRequests"])
def test_a_kind_that_may_not_be_looked_at_does_not_disarm_the_others(yard: Yard, operation: str) -> None:
    over = yard.instance()
    yard.over()
    for _ in range(2):
        yard.fake.faults.add(Kind.DENIED, f"ec2:Describe{operation}")
        yard.reaping.later()
    assert not alive(over)
    assert counted(yard, metrics.FAILED_REGIONS) == 1


def test_a_last_look_that_fails_ends_nothing(yard: Yard) -> None:
    machine = yard.instance(deadline=-HOUR)
    outcome = yard.reaping.run(mishaps=[Mishap("ec2:DescribeInstances", nth=2, fault=Kind.DENIED)])
    assert outcome.error == "Unfinished"
    assert alive(machine)
    yard.reaping.later()
    assert not alive(machine)


# Time


def test_without_time_for_all_regions_what_was_seen_is_acted_on_and_the_rest_is_named(yard: Yard) -> None:
    late, over, far = yard.instance(deadline=-HOUR), yard.instance(), abroad(yard, deadline=-HOUR)
    yard.over()
    yard.run()
    far_late = abroad(yard, deadline=-HOUR)
    yard.fake.clock.run(300)
    slow = Mishap("ec2:DescribeNetworkInterfaces", meanwhile=lambda: yard.fake.clock.spend(285))
    outcome = yard.reaping.run(mishaps=[slow])
    assert outcome.error == "Unfinished"
    assert f"{ABROAD.region}: OutOfTime: it was not read" in outcome.cause
    assert not alive(late)
    assert not alive(over)
    assert not alive(far)
    assert alive(far_late)


@pytest.mark.parametrize("nth", range(1, 25))
def test_a_pass_that_is_killed_anywhere_is_made_good_by_the_next_ones(yard: Yard, nth: int) -> None:
    late, over, running = yard.instance(deadline=-HOUR), yard.instance(), yard.instance({tags.EXECUTION: "?"})
    yard.over()
    yard.run()
    yard.fake.clock.run(300)
    yard.reaping.run(mishaps=[Mishap("*", nth=nth, death=Death.AFTER)])
    for _ in range(3):
        yard.reaping.later()
    assert not alive(late)
    assert not alive(over)
    assert alive(running)


@pytest.mark.parametrize("skew", [-300.0, 300.0])
def test_five_minutes_of_skew_of_the_functions_clock_change_nothing(yard: Yard, skew: float) -> None:
    yard.reaping.clock.skew_s = skew
    young = yard.instance(age=590)
    early, late = yard.instance(deadline=-100), yard.instance(deadline=-130)
    over = yard.instance()
    yard.over(ago=301)
    yard.run()
    assert alive(early)
    assert not alive(late)
    assert [alive(one) for one in (young, over)] == [True, True]
    assert "i-" not in str(yard.marks()["instances"]["suspects"]) if "instances" in yard.marks() else True
    yard.reaping.later()
    assert alive(over), "marked now: a first look"
    yard.reaping.later()
    assert not alive(over)


def test_without_a_time_of_aws_the_functions_clock_counts_with_what_it_may_be_wrong_by(yard: Yard) -> None:
    for answer in ({}, {"ResponseMetadata": {"HTTPHeaders": {"date": "soon"}}}):
        found = moment(answer)
        assert found.earliest == yard.now - SKEW_S
        assert found.latest == yard.now + SKEW_S
