"""Whole passes of the reaper, through its handler, on the fake: what they end, keep, remember, limit and say."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from contract import items, metrics, tags
from tests.fakes.faults import Kind, Mishap
from tests.fakes.functions import PROFILE
from tests.fakes.reaping import HOUR, alive, our_tags, put
from tests.fakes.state import store
from tests.functions.reaper.reaped import Yard, counted, reaped


@pytest.fixture
def yard() -> Iterator[Yard]:
    with reaped() as one:
        yield one


# What a pass keeps


def test_an_empty_account_costs_a_few_calls_a_region_and_no_word(yard: Yard) -> None:
    yard.run()
    yard.fake.calls.clear()
    assert yard.run().value[metrics.PASSES] == 1
    assert len(yard.fake.calls) <= 4 + 2 * 7 + 5  # Batch lists a status at a time
    assert yard.written() == []


def test_what_runs_is_kept_without_asking_for_its_execution(yard: Yard) -> None:
    yard.fake.clock.run(60)
    machines = [yard.instance() for _ in range(20)]
    assert yard.run(3).value[metrics.SEEN] == 20
    assert all(map(alive, machines))
    assert yard.calls("stepfunctions:DescribeExecution") == []
    assert yard.marks().keys() == {"untagged"}


def test_a_strangers_instance_is_never_even_candidate(yard: Yard) -> None:
    put(yard.ec2, {tags.NAME: "theirs"}, launched_at=yard.now - 1000 * HOUR, profile="")
    put(yard.ec2, {tags.DEPLOYMENT: "yard "}, launched_at=yard.now - 1000 * HOUR, profile="")
    yard.run(3)
    assert all(map(alive, yard.ec2.machines.values()))
    assert yard.fake.topics.messages == []


def test_a_protected_instance_is_kept_past_its_deadline_and_nobody_is_called(yard: Yard) -> None:
    machine = yard.instance({tags.PROTECTED: "my debugging session"}, deadline=-5 * HOUR)
    assert yard.run(3).value[metrics.TOLD] == 0
    assert alive(machine)
    assert yard.fake.topics.messages == []


def test_a_redriven_execution_keeps_its_instances(yard: Yard) -> None:
    machine = yard.instance()
    yard.over()
    yard.run()
    yard.fake.states.executions.redrive(yard.execution)
    yard.run(3)
    assert alive(machine)
    assert yard.marks()["instances"]["suspects"] == {}


@pytest.mark.parametrize("listed", [True, False])
def test_a_mark_from_before_a_redrive_is_no_first_look_after_it(yard: Yard, listed: bool) -> None:
    machine = yard.instance()
    yard.over()
    yard.run()
    yard.fake.states.executions.redrive(yard.execution)
    if not listed:
        yard.fake.faults.add(Kind.DENIED, "stepfunctions:ListExecutions")
    yard.reaping.later()
    yard.over()
    yard.reaping.later()
    assert alive(machine)
    yard.reaping.later()
    assert not alive(machine)


def test_an_execution_that_comes_back_between_verdict_and_kill_is_asked_for_again(yard: Yard) -> None:
    """More than 30 s pass after the first answer."""
    machine = yard.instance()
    yard.over()
    yard.run()
    yard.fake.clock.run(300)

    def redriven() -> None:
        yard.fake.clock.spend(31)
        yard.fake.states.executions.redrive(yard.execution)

    outcome = yard.reaping.run(mishaps=[Mishap("dynamodb:PutItem", meanwhile=redriven)])
    assert outcome.error == ""
    assert alive(machine)


def test_an_instance_that_was_protected_between_verdict_and_kill_is_kept(yard: Yard) -> None:
    machine = yard.instance(deadline=-HOUR)
    protect = Mishap("ec2:DescribeInstances", nth=2, meanwhile=lambda: machine.tags.update({tags.PROTECTED: ""}))
    yard.reaping.run(mishaps=[protect])
    assert alive(machine)
    assert yard.calls("ec2:TerminateInstances") == []


# What a pass ends


def test_past_the_deadline_one_pass_does(yard: Yard) -> None:
    late, kept = yard.instance(deadline=-130), yard.instance(deadline=-60)
    assert yard.run().value[metrics.ENDED] == 1
    assert not alive(late)
    assert alive(kept)


def test_of_an_execution_that_is_over_nothing_is_left_two_passes_after_the_grace_period(yard: Yard) -> None:
    machines = [yard.instance() for _ in range(3)]
    yard.over(ago=601)
    yard.run()
    assert all(map(alive, machines))
    yard.reaping.later()
    assert not any(map(alive, machines))


def test_an_execution_that_step_functions_has_forgotten_is_over(yard: Yard) -> None:
    machine = yard.instance()
    del yard.fake.states.executions.known[yard.execution.arn]
    yard.run(2)
    assert not alive(machine)


def test_two_passes_a_minute_apart_are_one_look(yard: Yard) -> None:
    machine = yard.instance()
    yard.over()
    yard.run()
    yard.reaping.later(60)
    assert alive(machine)
    yard.reaping.later(240)
    assert not alive(machine)


def test_an_untagged_instance_under_our_profile_ends_past_the_longest_job(yard: Yard) -> None:
    young = put(yard.ec2, {}, launched_at=yard.now - 50 * HOUR)
    old = put(yard.ec2, {"Trainyard:Deployment": "yard"}, launched_at=yard.now - 102 * HOUR)
    elsewhere = put(yard.ec2, {}, launched_at=yard.now - 102 * HOUR, profile=PROFILE + "-2")
    yard.run(6)
    assert alive(old), "the second look comes half an hour after the first"
    yard.run(2)
    assert not alive(old)
    assert alive(young)
    assert alive(elsewhere)


def test_a_region_that_left_the_settings_is_looked_at_because_something_was_launched_there(yard: Yard) -> None:
    store(yard.fake, items.region("eu-west-3"), b"{}")
    far = yard.fake.open_region("eu-west-3", yard.ec2.catalogue)
    machine = put(
        far, our_tags(execution=yard.execution.arn, deadline=yard.now - HOUR), launched_at=yard.now - 2 * HOUR
    )
    yard.run()
    assert not alive(machine)


def test_volumes_requests_and_interfaces_of_an_execution_that_is_over_go_at_the_second_look(yard: Yard) -> None:
    marks = our_tags(execution=yard.execution.arn, deadline=yard.now + HOUR)
    left = [yard.ec2.parts.leave(kind, marks, born_at=yard.now - HOUR) for kind in ("vol", "sir", "eni")]
    used = [
        yard.ec2.parts.leave(kind, marks, state=state, born_at=yard.now - HOUR)
        for kind, state in (("vol", "in-use"), ("sir", "active"), ("eni", "in-use"))
    ]
    others = [yard.ec2.parts.leave(kind, marks | {tags.DEPLOYMENT: "other"}) for kind in ("vol", "sir", "eni")]
    yard.over()
    yard.run()
    assert not any(one.gone for one in left)
    assert yard.reaping.later().value[metrics.ENDED] == 3
    assert all(one.gone for one in left)
    assert not any(one.gone for one in used + others)


def test_what_is_in_use_again_when_its_end_comes_is_kept(yard: Yard) -> None:
    marks = our_tags(execution=yard.execution.arn, deadline=yard.now + HOUR)
    volume = yard.ec2.parts.leave("vol", marks, born_at=yard.now - HOUR)
    yard.over()
    yard.run()
    yard.fake.clock.run(300)
    attach = Mishap("ec2:DescribeVolumes", nth=3, meanwhile=lambda: setattr(volume, "state", "in-use"))
    assert yard.reaping.run(mishaps=[attach]).value[metrics.ENDED] == 0
    assert not volume.gone


# The limit


def test_a_pass_ends_five_of_few_and_the_rest_in_later_passes_oldest_marks_first(yard: Yard) -> None:
    first = [yard.instance() for _ in range(4)]
    yard.over()
    yard.run()
    second = [yard.instance() for _ in range(8)]
    yard.fake.clock.run(250)
    yard.reaping.run()
    assert not any(map(alive, first)), "marked a pass before the others"
    outcome = yard.reaping.later()
    assert (outcome.error, outcome.cause) == (
        "Unfinished",
        "3 wait for the next pass, because this one reached its limit",
    )
    assert (counted(yard, metrics.ENDED), counted(yard, metrics.LIMITED)) == (5, 3)
    assert sum(map(alive, second)) == 3
    assert "reached its limit, 3 left for later" in yard.fake.topics.messages[-1][0]
    yard.reaping.later()
    assert not any(map(alive, second))


def test_a_fifth_of_many_end_in_a_pass(yard: Yard) -> None:
    machines = [yard.instance() for _ in range(50)]
    yard.over()
    yard.run(2)
    assert counted(yard, metrics.ENDED) == 10
    assert sum(map(alive, machines)) == 40


def test_what_is_past_its_deadline_is_not_limited(yard: Yard) -> None:
    machines = [yard.instance(deadline=-HOUR) for _ in range(50)]
    outcome = yard.run()
    assert (outcome.value[metrics.ENDED], outcome.value[metrics.LIMITED]) == (50, 0)
    assert not any(map(alive, machines))


def test_a_strangers_instance_that_somebody_gave_our_tag_and_a_past_deadline_is_kept_and_told_once(yard: Yard) -> None:
    marks = our_tags(execution=yard.execution.arn, deadline=yard.now - HOUR)
    strangers = [put(yard.ec2, marks, launched_at=yard.now - 2 * HOUR, profile=one) for one in ("", f"{PROFILE}-2")]
    ours = yard.instance(deadline=-HOUR)
    for _ in range(4):
        yard.reaping.later()
    assert [alive(one) for one in (*strangers, ours)] == [True, True, False]
    (told,) = [text for _, text in yard.fake.topics.messages if strangers[0].id in text]
    assert "so it may belong to others" in told
    assert strangers[1].id in told


def test_strangers_with_our_tag_do_not_raise_what_a_pass_may_end(yard: Yard) -> None:
    marks = our_tags(execution=yard.execution.arn, deadline=yard.now + HOUR)
    for _ in range(100):
        put(yard.ec2, marks, launched_at=yard.now - 2 * HOUR, profile="")
    machines = [yard.instance() for _ in range(10)]
    yard.over()
    yard.run(2)
    assert sum(map(alive, machines)) == 5


# Report-only


@pytest.mark.parametrize("by_setting", [True, False])
def test_report_only_makes_no_mutating_call_and_says_what_it_would_end(by_setting: bool) -> None:
    with reaped(report_only=by_setting) as yard:
        machines = [yard.instance(deadline=-HOUR), yard.instance()]
        put(yard.ec2, {}, launched_at=yard.now - 102 * HOUR)
        yard.over()
        for _ in range(3):
            outcome = yard.reaping.run({} if by_setting else {"report_only": True})
            yard.fake.clock.run(300)
        assert yard.written() == []
        assert all(map(alive, machines))
        assert outcome.value[metrics.ENDED] == 0
        assert outcome.value[metrics.WOULD_END] == len(outcome.value["would_end"]) == 3
        assert "(terminate): its deadline passed" in outcome.value["would_end"][0]


def test_a_report_only_run_by_hand_uses_the_marks_that_are_there(yard: Yard) -> None:
    yard.instance()
    yard.over()
    yard.run()
    yard.fake.clock.run(300)
    assert "(terminate): its execution ended" in yard.reaping.run({"report_only": True}).value["would_end"][0]


# Words and figures


def test_kept_for_want_of_knowledge_is_told_once_and_counted_each_time(yard: Yard) -> None:
    yard.instance({tags.EXECUTION: "not an arn"})
    for _ in range(3):
        assert yard.reaping.later().value[metrics.TOLD] == 1
    (message,) = yard.fake.topics.messages
    assert message[0] == "Trainyard yard: the reaper asks you to check 1"
    assert "'not an arn' is not an execution of ours" in message[1]


def test_a_message_says_what_where_since_when_what_it_cost_and_what_was_done(yard: Yard) -> None:
    yard.fake.prices.hourly["g5.xlarge"] = 1.006
    machine = yard.instance(deadline=-HOUR, age=25 * HOUR)
    yard.run()
    ((subject, message),) = yard.fake.topics.messages
    assert subject == "Trainyard yard: the reaper ended 1"
    for part in (
        machine.id,
        "g5.xlarge",
        "eu-central-1",
        "job-1",
        "ada",
        "Launched 2027-01-14 07:00 UTC",
        "25.0 instance-hours, about $25.15 at the on-demand price",
        "its deadline passed 60 min ago",
        "EC2 terminates it",
        'docs/runbook.md, "The reaper ended something"',
    ):
        assert part in message, part


def test_without_a_price_the_message_says_so_and_comes_all_the_same(yard: Yard) -> None:
    yard.instance(deadline=-HOUR)
    yard.run()
    assert "2.0 instance-hours, at an unknown price" in yard.fake.topics.messages[0][1]


def test_metrics_have_one_dimension_and_the_heartbeat(yard: Yard) -> None:
    yard.instance(deadline=-HOUR)
    yard.run()
    (line,) = yard.reaping.printed
    written = json.loads(line)
    (embedded,) = written["_aws"]["CloudWatchMetrics"]
    assert embedded["Namespace"] == "Trainyard"
    assert embedded["Dimensions"] == [[metrics.DEPLOYMENT]]
    assert {one["Name"] for one in embedded["Metrics"]} == set(metrics.ALL)
    assert (written[metrics.DEPLOYMENT], written[metrics.PASSES], written[metrics.ENDED]) == ("yard", [1.0], [1.0])


def test_marks_are_written_only_when_they_change(yard: Yard) -> None:
    yard.instance()
    yard.over(ago=0)
    yard.run()
    yard.fake.calls.clear()
    yard.reaping.later(60)
    assert yard.written() == []


def test_hundreds_of_suspects_make_a_message_that_a_person_can_read(yard: Yard) -> None:
    for _ in range(300):
        yard.instance(deadline=-HOUR)
    yard.run()
    message = yard.fake.topics.messages[0][1]
    assert "- and 260 more" in message
    assert len(message) < 20_000
