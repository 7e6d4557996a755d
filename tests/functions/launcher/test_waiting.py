"""Jobs that wait for capacity: whole executions on the fake, for minutes and for weeks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import pytest

from contract import tags
from contract.timings import LauncherTiming
from tests.builders import JOB
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.yard import home
from tests.functions.launcher.waiting import AWAY_S, HOUR, PATIENCE_S, TRY_S, WaitingYard, waiting
from tests.properties.retrying import WAIT


@pytest.fixture
def yard() -> Iterator[WaitingYard]:
    """Its job is in the state that waits."""
    with waiting() as made:
        made.start()
        made.run(AWAY_S)
        assert made.executions[JOB.id].state == WAIT
        yield made


def settle(yard: WaitingYard) -> None:
    """The execution is over, and so is whatever the cleanup has to do."""
    for _ in range(20):
        yard.run(60)


def test_without_max_wait_hours_a_job_fails_when_the_launch_patience_is_over_as_before() -> None:
    with waiting() as yard:
        execution = yard.start(hours=0.0)
        yard.run(AWAY_S)
        assert execution.state == "Failed"
        assert execution.problem is not None
        assert execution.problem[0] == "CapacityUnavailable"
        assert "launch patience" in execution.problem[1]
        assert yard.waits() == []


def test_a_wait_that_is_shorter_than_the_launch_patience_adds_nothing_to_it() -> None:
    with waiting() as yard:
        execution = yard.start(hours=PATIENCE_S / HOUR / 2)
        yard.run(AWAY_S)
        assert (execution.state, yard.waits()) == ("Failed", [])


def test_a_job_that_finds_capacity_at_once_never_waits() -> None:
    with waiting() as yard:
        yard.free()
        execution = yard.start()
        yard.run(120)
        assert execution.state == "Train"
        assert execution.deadline == yard.job().deadline


def test_capacity_that_comes_back_after_days_is_taken(yard: WaitingYard) -> None:
    yard.run(HOUR)
    yard.free()
    yard.run(TRY_S)
    assert yard.executions[JOB.id].state == "Train"
    assert (len(yard.running()), yard.waits()) == (JOB.nodes, [])


def test_the_hours_of_a_job_begin_once_it_has_waited(yard: WaitingYard) -> None:
    execution, began = yard.executions[JOB.id], yard.aws.clock.now
    yard.run(2 * HOUR)
    yard.free()
    yard.run(TRY_S)
    launched_at = yard.running()[0].launched_at
    assert launched_at >= began + 2 * HOUR
    assert abs(execution.deadline - launched_at - JOB.max_hours * HOUR) < 60
    assert {one.tags[tags.DEADLINE] for one in yard.running()} == {str(execution.deadline)}


@pytest.fixture
def late() -> Iterator[WaitingYard]:
    """A job of half an hour that found capacity after one."""
    with waiting() as made:
        made.start(max_hours=0.5)
        made.run(HOUR)
        made.free()
        made.run(TRY_S)
        assert made.executions[JOB.id].state == "Train"
        assert made.aws.clock.now > made.job().deadline + JOB.timing.silence_s
        yield made


def test_the_reaper_believes_the_deadline_of_a_launch_that_waited(late: WaitingYard) -> None:
    """A deadline later than the longest job after the birth of its instance counts as unreadable."""
    (born,) = {one.launched_at for one in late.running()}
    assert born < late.executions[JOB.id].deadline <= born + late.job().max_hours * HOUR


def test_the_attendant_ends_no_job_at_the_deadline_it_was_admitted_with(late: WaitingYard) -> None:
    outcome = late.invoke("attendant", {})
    assert (outcome.error, set(outcome.value)) == ("", {"heartbeat"})


def test_the_attendant_ends_a_job_that_waited_at_its_later_deadline(late: WaitingYard) -> None:
    late.aws.clock.now = late.executions[JOB.id].deadline + JOB.timing.silence_s + 1
    late.invoke("attendant", {})
    settle(late)
    problem = late.executions[JOB.id].problem
    assert problem is not None
    assert late.executions[JOB.id].state == "Failed"


def test_a_wait_that_is_over_says_how_long_it_was_and_what_every_rung_answered() -> None:
    with waiting() as yard:
        execution = yard.start(hours=1.0)
        yard.run(HOUR - 120)
        assert execution.state == WAIT
        yard.run(400)
        assert execution.problem is not None
        error, cause = execution.problem
        assert error == "CapacityUnavailable"
        assert "for 1.0 h" in cause
        assert "max_wait_hours is 1" in cause
        for rung in JOB.ladder:
            assert f"{rung.instance_type} in {rung.zone} (on-demand): InsufficientInstanceCapacity" in cause
        settle(yard)
        assert (execution.state, yard.waits(), yard.running()) == ("Failed", [], [])
        assert yard.document()["state"] == "CapacityUnavailable"


def test_people_see_the_rungs_with_their_answers_and_the_next_try(yard: WaitingYard) -> None:
    yard.run(HOUR)
    told = yard.document()
    assert told["state"] == "waits for capacity"
    assert told["tries"] > 3
    assert told["next_try_at"] > told["written_at"]
    assert {(one["instance_type"], one["zone"], one["answer"]) for one in told["rungs"]} == {
        (rung.instance_type, rung.zone, "InsufficientInstanceCapacity") for rung in JOB.ladder
    }


def test_a_document_that_cannot_be_written_keeps_no_job_from_its_capacity(yard: WaitingYard) -> None:
    yard.aws.faults.add(Kind.DENIED, "s3:PutObject", times=99)
    yard.run(HOUR)
    yard.free()
    yard.run(TRY_S)
    assert yard.executions[JOB.id].state == "Train"


def test_an_execution_that_is_stopped_while_it_waits_leaves_nothing(yard: WaitingYard) -> None:
    yard.abort()
    yard.free()
    settle(yard)
    yard.run(TRY_S)
    assert (yard.waits(), yard.running(), yard.taken()) == ([], [], set())


def test_a_try_for_an_execution_that_was_stopped_launches_nothing_even_if_no_event_told_of_its_end(
    yard: WaitingYard,
) -> None:
    yard.aws.events.weather = lambda _: ()
    yard.abort()
    yard.free()
    calls = len(yard.launched_at)
    yard.run(TRY_S)
    assert (yard.waits(), len(yard.launched_at)) == ([], calls)


def test_an_execution_that_is_stopped_during_a_try_ends_without_an_instance(yard: WaitingYard) -> None:
    yard.free()
    yard.before_a_try()
    yard.armed["launcher"] = [Mishap("ec2:RunInstances", meanwhile=yard.abort)]
    yard.run(60)
    assert len(home(yard.aws).machines) == JOB.nodes
    settle(yard)
    assert (yard.executions[JOB.id].state, yard.running(), yard.waits()) == ("Aborted", [], [])


def test_a_second_tick_at_the_same_time_tries_for_nobody(yard: WaitingYard) -> None:
    """The first holds the turn; the second comes between its calls."""
    calls: list[int] = []

    def meanwhile() -> None:
        before = len(yard.launched_at)
        assert yard.tick().value == {}
        calls.append(len(yard.launched_at) - before)

    yard.before_a_try()
    yard.armed["launcher"] = [Mishap("ec2:RunInstances", meanwhile=meanwhile)]
    yard.run(60)
    assert calls == [0]


def test_a_try_after_the_capacity_was_found_launches_nothing_more(yard: WaitingYard) -> None:
    token = yard.waits()[0].token
    yard.free()
    yard.run(TRY_S)
    calls = len(yard.launched_at)
    again = {"job": JOB.id, "attempt": 1, "token": token}
    assert yard.invoke("launcher", again).error == ""  # a late repeat of the state's own call
    yard.run(TRY_S)
    assert (len(yard.launched_at), yard.waits(), len(yard.running())) == (calls, [], JOB.nodes)


def test_a_call_of_the_state_that_comes_after_the_capacity_takes_no_security_group_from_what_runs(
    yard: WaitingYard,
) -> None:
    yard.free()
    yard.run(TRY_S)
    assert yard.taken() == {JOB.id}
    yard.invoke("launcher", {"job": JOB.id, "attempt": 1, "token": "late"})
    assert yard.taken() == {JOB.id}


def test_a_late_launch_does_not_walk_beside_the_tries(yard: WaitingYard) -> None:
    calls = len(yard.launched_at)
    outcome = yard.invoke("launcher", {"job": JOB.id, "attempt": 1})
    assert (outcome.error, len(yard.launched_at)) == ("CapacityAwaited", calls)


@pytest.mark.parametrize("death", Death)
@pytest.mark.parametrize(
    "name", ["ec2:RunInstances", "stepfunctions:SendTaskSuccess", "ec2:CreateTags", "dynamodb:PutItem"]
)
def test_a_launcher_that_is_killed_in_a_try_is_followed_by_one_that_finds_what_it_launched(
    yard: WaitingYard, name: str, death: Death
) -> None:
    yard.free()
    yard.before_a_try()
    yard.armed["launcher"] = [Mishap(name, death=death)]
    yard.run(TRY_S)
    assert yard.executions[JOB.id].state == "Train"
    assert (len(yard.running()), yard.waits()) == (JOB.nodes, [])


@pytest.mark.parametrize("kind", [Kind.LOST, Kind.ERROR_AFTER, Kind.THROTTLED, Kind.UNREACHABLE])
def test_an_answer_that_is_not_known_is_asked_for_with_the_same_bytes(yard: WaitingYard, kind: Kind) -> None:
    yard.free()
    yard.aws.faults.add(kind, "ec2:RunInstances")
    yard.run(TRY_S)
    assert yard.executions[JOB.id].state == "Train"
    assert len(yard.running()) == JOB.nodes


def test_a_region_that_was_silent_for_long_does_not_launch_with_the_deadline_of_then() -> None:
    with waiting() as yard:
        execution = yard.start(max_hours=2.0)
        yard.run(AWAY_S)
        yard.free()
        yard.aws.faults.add(Kind.UNREACHABLE, "ec2:RunInstances", times=10_000)
        yard.run(3 * HOUR)
        yard.aws.faults.waiting.clear()
        yard.run(TRY_S)
        assert execution.state == "Train"
        assert execution.deadline > yard.aws.clock.now + HOUR


def test_a_ladder_that_is_too_long_for_one_try_is_walked_to_its_end_by_several() -> None:
    """Two rungs a try, and so long between two tries that the walk before counts as old: the next goes on, with a later deadline."""
    with waiting(tick_s=1200.0) as yard:
        slow = replace(JOB.timing, launch_pace_s=120.0).of(LauncherTiming)
        yard.functions.own["launcher"] = {"TRAINYARD_TIMING": json.dumps(asdict(slow))}
        execution = yard.start()
        yard.run(AWAY_S)
        last = JOB.ladder[-1]
        del home(yard.aws).capacity[last.instance_type, last.zone]
        yard.run(2 * HOUR)
        assert execution.state == "Train"
        assert yard.running()[0].request["InstanceType"] == last.instance_type
        assert execution.deadline - yard.running()[0].launched_at > (JOB.max_hours - 0.2) * HOUR


def test_an_account_without_quota_ends_the_wait(yard: WaitingYard) -> None:
    home(yard.aws).vcpu_quota = 0
    yard.run(TRY_S)
    settle(yard)
    problem = yard.executions[JOB.id].problem
    assert problem is not None
    assert problem[0] == "QuotaExceeded"
    assert yard.waits() == []


def test_a_request_that_ec2_refuses_ends_the_wait_and_is_not_repeated(yard: WaitingYard) -> None:
    calls = len(yard.launched_at)
    yard.aws.faults.add(Kind.DENIED, "ec2:RunInstances", times=5)
    yard.run(TRY_S)
    settle(yard)
    problem = yard.executions[JOB.id].problem
    assert problem is not None
    assert problem[0] == "InvalidRequest"
    assert len(yard.launched_at) - calls < 5


def test_an_attempt_that_was_closed_launches_nothing(yard: WaitingYard) -> None:
    yard.invoke("terminator", {"job": JOB.id, "attempt": 1, "problem": None})
    yard.free()
    yard.run(TRY_S)
    assert yard.executions[JOB.id].verdicts == {1: "NodeLost"}
    assert {one.tags[tags.ATTEMPT] for one in home(yard.aws).machines.values()} <= {"2"}
    assert yard.waits() == []


def test_a_job_that_waits_keeps_no_security_group_from_others(yard: WaitingYard) -> None:
    assert yard.taken() == set()
    yard.run(HOUR)
    assert yard.taken() == set()


def test_a_thousand_tries_leave_one_item_more_than_the_walks_of_launch(yard: WaitingYard) -> None:
    yard.run(5 * HOUR)
    found = yard.walks()
    assert found[-1].walk > len(found) + 15
    assert [one.waiting for one in found] == [False] * (len(found) - 1) + [True]


def test_a_recovery_waits_in_the_same_way_with_what_is_left_of_the_wait() -> None:
    with waiting() as yard:
        execution = yard.start(hours=4.0)
        yard.run(2 * HOUR)
        yard.free()
        yard.run(TRY_S)
        assert execution.state == "Train"
        waited = 4 * HOUR - execution.wait_left_s
        assert 2 * HOUR <= waited <= 2 * HOUR + TRY_S
        yard.fill()
        home(yard.aws).end(yard.running()[0], "Server.InternalError", "host failed")
        yard.run(60)
        yard.invoke("attendant", {})
        yard.run(AWAY_S + 300)
        assert (execution.attempt, execution.state) == (2, WAIT)
        (wait,) = yard.waits()
        assert wait.until - wait.since == pytest.approx(4 * HOUR - waited, abs=2)
        deadline = execution.deadline
        yard.run(HOUR / 2)
        yard.free()
        yard.run(TRY_S)
        assert (execution.attempt, execution.state) == (2, "Train")
        assert HOUR / 2 < execution.deadline - deadline < 2 * HOUR
        assert execution.deadline <= yard.job().deadline + 4 * HOUR


def test_a_state_that_is_entered_again_has_one_living_token(yard: WaitingYard) -> None:
    execution = yard.executions[JOB.id]
    execution._await()
    assert len(yard.waits()) == 2
    yard.run(TRY_S)
    yard.free()
    yard.run(2 * TRY_S)
    assert (execution.state, yard.waits(), len(yard.running())) == ("Train", [], JOB.nodes)


def test_what_the_state_keeps_names_no_token_where_people_or_nodes_read(yard: WaitingYard) -> None:
    token = yard.waits()[0].token
    objects: Any = json.dumps(yard.document())
    assert token not in objects
    assert all(token not in json.dumps(one.request) for one in yard.running())


def test_nodes_of_a_waiting_job_whose_master_nobody_can_name_do_not_run_for_the_whole_wait(yard: WaitingYard) -> None:
    """As in Launch: what is launched costs money, and trains nothing meanwhile."""
    yard.free()
    yard.aws.faults.add(Kind.DENIED, "ec2:CreateTags", times=100_000)
    yard.run(TRY_S + 2 * JOB.timing.trouble_patience_s)
    settle(yard)
    assert yard.running() == []
    problem = yard.executions[JOB.id].problem
    assert problem is not None
    assert problem[0] == "PatienceOver"
    assert "CreateTags" in problem[1]
