"""The drain of a destroy, on the fake: CloudFormation asks, the machine waits, CloudFormation gets its answer over HTTP."""

from __future__ import annotations

import json
from math import inf

import pytest

from aws.state import State
from contract import items, keys, tags
from contract.errors import StillRunning
from drain.policy import NotDrained
from localaws.services.ec2_instance import Machine
from tests.builders import JOB
from tests.fakes.executions import MACHINE
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.functions import Outcome
from tests.fakes.state import TABLE, store
from tests.fakes.yard import ABROAD, catalogue, home
from tests.functions.drain.draining import AGAIN_S, DRAIN, Yard

# Draining


def test_a_deployment_in_which_nothing_runs_is_drained_once_no_execution_can_appear(yard: Yard) -> None:
    assert yard.destroy(within_s=JOB.timing.cleanup_again_s + 2 * AGAIN_S)["Status"] == "SUCCESS"
    assert yard.closed()


def test_a_running_job_is_stopped_and_everything_of_it_is_gone(yard: Yard) -> None:
    yard.train()
    assert yard.destroy()["Status"] == "SUCCESS"
    assert yard.left() == []
    execution = yard.aws.states.executions.known[JOB.execution]
    assert (execution.status, execution.error) == ("ABORTED", "Aborted")
    assert execution.cause == "The deployment is being destroyed."
    report = json.loads(yard.aws.s3.read(JOB.home_bucket, keys.JobPrefix(JOB.id).result) or b"{}")
    assert (report["error"], report["cause"]) == ("Aborted", "The deployment is being destroyed.")


def test_an_instance_that_shuts_down_is_waited_for_because_it_holds_the_network(yard: Yard) -> None:
    home(yard.aws).shutting_s = 400.0
    yard.train()
    before = yard.aws.clock.now
    assert yard.destroy()["Status"] == "SUCCESS"
    assert yard.left() == []
    assert yard.aws.clock.now - before > 400


def test_several_jobs_of_several_attempts_are_all_stopped(yard: Yard) -> None:
    yard.train("job-1")
    yard.launch("job-1", attempt=2)
    yard.train("job-2")
    yard.start("job-3")
    assert yard.destroy()["Status"] == "SUCCESS"
    assert yard.left() == []
    ours = [one for one in yard.aws.states.executions.known.values() if one.machine == MACHINE]
    assert {one.status for one in ours} == {"ABORTED"}


def test_a_launch_in_flight_is_waited_for(yard: Yard) -> None:
    """The destroy comes while the launcher is at its call, and the launcher goes on after its execution is stopped."""
    yard.start()
    yard.aws.clock.run(5)
    looks: list[Outcome] = []

    def destroyed() -> None:
        yard.ask("Delete")
        looks.append(yard.run_drain())

    assert yard.launch("job-1", Mishap("ec2:RunInstances", meanwhile=destroyed)).error == ""
    assert looks[0].error == StillRunning.__name__
    assert "may come within" in looks[0].cause
    assert yard.destroy()["Status"] == "SUCCESS"
    assert yard.left() == []


def test_a_launcher_that_was_killed_at_its_call_is_waited_for(yard: Yard) -> None:
    yard.start()
    yard.launch("job-1", Mishap("ec2:RunInstances", death=Death.AFTER))
    before = yard.aws.clock.now
    assert yard.destroy()["Status"] == "SUCCESS"
    assert yard.left() == []
    assert yard.aws.clock.now - before > 240


def test_a_launch_of_an_execution_that_a_person_stopped_just_before_is_waited_for_too(yard: Yard) -> None:
    yard.start()
    yard.launch("job-1", Mishap("ec2:RunInstances", death=Death.BEFORE))
    yard.aws.states.executions.end(yard.aws.states.executions.known[JOB.execution], "ABORTED")
    yard.aws.clock.run(30)
    before = yard.aws.clock.now
    assert yard.destroy()["Status"] == "SUCCESS"
    assert yard.aws.clock.now - before > 210


def test_an_execution_that_began_just_before_the_door_was_closed_is_met(yard: Yard) -> None:
    """Listed late, let in by Admit before it, and launching while the drain looks."""
    yard.aws.states.executions.lag_s = 30.0
    yard.start()
    launches: list[Outcome] = []
    yard.aws.clock.at(yard.aws.clock.now + 20, lambda: launches.append(yard.launch()))
    assert yard.destroy()["Status"] == "SUCCESS"
    assert yard.left() == []
    assert launches[0].error == ""


def test_an_execution_that_is_redriven_during_the_destroy_is_stopped_again(yard: Yard) -> None:
    home(yard.aws).shutting_s = 90.0
    yard.train()
    execution = yard.aws.states.executions.known[JOB.execution]
    yard.aws.clock.at(yard.aws.clock.now + 30, lambda: yard.aws.states.executions.redrive(execution))
    assert yard.destroy()["Status"] == "SUCCESS"
    assert execution.status == "ABORTED"


def test_an_execution_that_ended_between_list_and_stop_is_no_error(yard: Yard) -> None:
    yard.train()
    execution = yard.aws.states.executions.known[JOB.execution]
    over = Mishap(
        "stepfunctions:StopExecution", meanwhile=lambda: yard.aws.states.executions.end(execution, "SUCCEEDED")
    )
    assert yard.run_drain(None, over).error == StillRunning.__name__
    assert execution.status == "SUCCEEDED"
    assert yard.destroy()["Status"] == "SUCCESS"
    assert yard.left() == []


def test_instances_of_no_execution_that_is_known_are_ended_too(yard: Yard) -> None:
    yard.train()
    yard.aws.states.executions.known.clear()
    State(TABLE).delete(items.job(JOB.id))
    assert yard.destroy()["Status"] == "SUCCESS"
    assert yard.left() == []


def test_a_region_that_the_settings_no_longer_have_is_drained_as_well(yard: Yard) -> None:
    yard.aws.open_region(ABROAD.region, catalogue(ABROAD))
    yard.train()
    for one in home(yard.aws).machines.values():
        yard.aws.ec2[ABROAD.region].machines[one.id] = one
    home(yard.aws).machines.clear()
    store(yard.aws, items.region(ABROAD.region), b"{}")
    assert yard.destroy()["Status"] == "SUCCESS"
    assert yard.left() == []


def test_another_deployments_instances_and_executions_stay(yard: Yard) -> None:
    yard.train()
    theirs = MACHINE.replace("yard", "other")
    yard.aws.states.executions.machines.add(theirs)
    other = yard.aws.states.executions.begin("job-1", theirs)
    kept = yard.left()[0]
    kept.tags[tags.DEPLOYMENT] = "other"
    State(TABLE).delete(items.job(JOB.id))
    assert yard.destroy()["Status"] == "SUCCESS"
    assert yard.left() == [kept]
    assert other.status == "RUNNING"


def test_an_open_spot_request_is_cancelled_and_looked_for_again(yard: Yard) -> None:
    request = home(yard.aws).parts.leave("sir", {tags.DEPLOYMENT: JOB.deployment})
    assert f"spot request {request.id} in eu-central-1 was open, and is cancelled" in yard.run_drain().cause
    assert request.gone
    assert yard.destroy()["Status"] == "SUCCESS"


def test_a_spot_request_that_cannot_be_cancelled_is_named_and_nothing_is_called_drained(yard: Yard) -> None:
    request = home(yard.aws).parts.leave("sir", {tags.DEPLOYMENT: JOB.deployment})
    outcome = yard.run_drain(None, Mishap("ec2:CancelSpotInstanceRequests", fault=Kind.DENIED, times=inf))
    assert outcome.error == StillRunning.__name__
    assert f"spot request {request.id} in eu-central-1 was open, and could not be cancelled" in outcome.cause
    assert not request.gone


def test_spot_requests_that_cannot_be_listed_are_not_taken_for_none(yard: Yard) -> None:
    outcome = yard.run_drain(None, Mishap("ec2:DescribeSpotInstanceRequests", fault=Kind.DENIED, times=inf))
    assert outcome.error == StillRunning.__name__
    assert "spot requests in eu-central-1 could not be listed" in outcome.cause


def test_active_spot_requests_and_those_of_another_deployment_stay(yard: Yard) -> None:
    parts = home(yard.aws).parts
    active = parts.leave("sir", {tags.DEPLOYMENT: JOB.deployment}, state="active")
    theirs = parts.leave("sir", {tags.DEPLOYMENT: "other"})
    assert yard.destroy()["Status"] == "SUCCESS"
    assert not active.gone
    assert not theirs.gone


def test_a_second_drain_beside_the_first_changes_nothing(yard: Yard) -> None:
    yard.train()
    looks: list[Outcome] = []
    yard.run_drain(None, Mishap("ec2:TerminateInstances", meanwhile=lambda: looks.append(yard.run_drain())))
    assert looks[0].error == StillRunning.__name__
    assert yard.destroy()["Status"] == "SUCCESS"
    assert yard.left() == []


def test_what_is_destroyed_twice_is_drained_twice(yard: Yard) -> None:
    yard.train()
    assert yard.destroy()["Status"] == "SUCCESS"
    assert yard.destroy()["Status"] == "SUCCESS"


def test_an_execution_whose_documents_nobody_can_read_is_told_and_keeps_no_other_running(yard: Yard) -> None:
    yard.again_s = 600.0
    yard.train("job-1")
    yard.train("job-2")
    store(yard.aws, items.job("job-1"), b"garbled")
    answer = yard.destroy()
    assert answer["Status"] == "FAILED"
    assert f"{JOB.execution} could not be cleaned up: Job is not JSON" in answer["Reason"]
    assert yard.left() == []


def test_more_executions_than_a_look_has_time_for_are_left_for_the_next(yard: Yard) -> None:
    yard.train("job-1")
    yard.train("job-2")
    slow = Mishap("stepfunctions:StopExecution", meanwhile=lambda: yard.aws.clock.spend(250.0))
    first = yard.run_drain(None, slow)
    assert first.error == StillRunning.__name__
    assert "was not looked at yet" in first.cause
    assert yard.destroy()["Status"] == "SUCCESS"
    assert yard.left() == []


# What cannot be drained


def test_a_protected_instance_is_named_at_once_and_nothing_is_stopped_or_ended(yard: Yard) -> None:
    yard.train()
    kept = yard.left()[1]
    kept.tags[tags.PROTECTED] = ""
    answer = yard.destroy(within_s=30)
    assert answer["Status"] == "FAILED"
    assert f"- {kept.id} in eu-central-1, job job-1, is running" in answer["Reason"]
    assert tags.PROTECTED in answer["Reason"]
    assert len(yard.left()) == 2
    assert yard.aws.states.executions.known[JOB.execution].status == "RUNNING"
    del kept.tags[tags.PROTECTED]
    assert yard.destroy()["Status"] == "SUCCESS"


def test_a_strangers_instance_with_our_tag_is_named_and_never_ended(yard: Yard) -> None:
    yard.train()
    marks = dict(yard.left()[0].tags)
    stranger = home(yard.aws).put(marks, launched_at=yard.aws.clock.now - 3600)
    answer = yard.destroy(within_s=30)
    assert answer["Status"] == "FAILED"
    assert (
        f"- {stranger.id} in eu-central-1, job job-1, is running: it has the tag {tags.DEPLOYMENT}" in answer["Reason"]
    )
    assert len(yard.left()) == 3
    stranger.tags.clear()
    assert yard.destroy()["Status"] == "SUCCESS"
    assert stranger.state(yard.aws.clock.now) == "running"


def test_a_strangers_instance_that_gets_our_tag_while_a_drain_looks_is_not_ended(yard: Yard) -> None:
    yard.train()
    marks, strangers = dict(yard.left()[0].tags), list[Machine]()

    def tag_a_stranger() -> None:
        strangers.append(home(yard.aws).put(marks, launched_at=yard.aws.clock.now - 3600))

    meanwhile = Mishap("stepfunctions:StopExecution", meanwhile=tag_a_stranger)
    assert yard.run_drain(None, meanwhile).error == StillRunning.__name__
    assert [one.state(yard.aws.clock.now) for one in strangers] == ["running"]
    assert len(yard.left()) == 3


def test_a_protected_instance_that_is_gone_holds_nothing_up(yard: Yard) -> None:
    yard.train()
    one = yard.left()[0]
    one.tags[tags.PROTECTED] = "yes"
    home(yard.aws).end(one, "Client.UserInitiatedShutdown", "by hand")
    yard.aws.clock.run(5)
    assert yard.destroy()["Status"] == "SUCCESS"


@pytest.mark.parametrize("kind", [Kind.DENIED, Kind.UNREACHABLE])
@pytest.mark.parametrize(
    "call", ["ec2:DescribeInstances", "stepfunctions:ListExecutions", "stepfunctions:StopExecution"]
)
def test_a_drain_that_cannot_look_never_says_that_nothing_is_there(yard: Yard, kind: Kind, call: str) -> None:
    yard.again_s = 600.0
    yard.train()
    yard.aws.faults.add(kind, call, times=100_000)
    answer = yard.destroy()
    assert answer["Status"] == "FAILED"
    assert " minutes after its executions were stopped" in answer["Reason"]
    assert "docs/runbook.md" in answer["Reason"]


@pytest.mark.parametrize("kind", [Kind.DENIED, Kind.THROTTLED, Kind.UNREACHABLE, Kind.ERROR])
@pytest.mark.parametrize("call", ["ec2:*", "s3:*", "dynamodb:*", "stepfunctions:*"])
def test_a_drain_that_aws_does_not_answer_for_a_while_goes_on_when_it_does(yard: Yard, kind: Kind, call: str) -> None:
    yard.train()
    yard.ask("Delete")
    yard.aws.faults.add(kind, call, times=40)
    yard.machine(list(yard.aws.states.executions.known.values())[-1])
    assert yard.cloudformation.answers[-1]["Status"] == "SUCCESS"
    assert yard.left() == []


def test_instances_that_ec2_does_not_end_are_named_with_what_ec2_says(yard: Yard) -> None:
    yard.again_s = 600.0
    yard.train()
    one, other = yard.left()
    one.protected = True  # EC2's own protection from termination
    other.stuck = True
    answer = yard.destroy()
    assert answer["Status"] == "FAILED"
    assert f"- {one.id} in eu-central-1 is running: " in answer["Reason"]
    assert "disableApiTermination" in answer["Reason"]
    assert f"- {other.id} in eu-central-1 is running" in answer["Reason"]


@pytest.mark.at_length
def test_many_things_that_are_left_are_counted(yard: Yard) -> None:
    for number in range(10):
        yard.train(f"job-{number}")
    for one in yard.left():
        one.stuck = True
    assert yard.run_drain({"request": yard.request("Delete"), "since": 0.0}).error == NotDrained.__name__
    assert " more" in yard.run_drain({"request": yard.request("Delete"), "since": 0.0}).cause


def test_a_drain_that_died_is_answered_by_its_name(yard: Yard) -> None:
    event = {
        "action": "answer",
        "request": yard.request("Delete"),
        "problem": {"error": "Sandbox.Timedout", "cause": "too slow"},
    }
    assert yard.functions.invoke("drain", event).error == ""
    assert yard.cloudformation.answers[-1]["Reason"] == "Sandbox.Timedout: too slow"


# Stacks that were never whole


def test_where_nothing_is_deployed_a_delete_succeeds_at_once(yard: Yard) -> None:
    yard.aws.states.executions.machines.clear()
    yard.aws.s3.buckets.clear()
    yard.ask("Delete")
    assert yard.cloudformation.answers[-1]["Status"] == "SUCCESS"


def test_without_a_home_bucket_what_runs_is_ended_all_the_same(yard: Yard) -> None:
    yard.train()
    yard.aws.s3.buckets.clear()
    assert yard.destroy()["Status"] == "SUCCESS"
    assert yard.left() == []


def test_without_the_table_of_state_what_runs_is_ended_all_the_same(yard: Yard) -> None:
    """A first deploy that failed may have made a machine, and no table."""
    yard.train()
    yard.aws.table.tables.clear()
    assert yard.destroy()["Status"] == "SUCCESS"
    assert yard.left() == []


def test_without_its_machine_a_delete_that_would_have_to_wait_fails_with_what_is_left(yard: Yard) -> None:
    yard.train()
    yard.aws.states.executions.machines.remove(DRAIN)
    yard.ask("Delete")
    answer = yard.cloudformation.answers[-1]
    assert answer["Status"] == "FAILED"
    assert "i-" in answer["Reason"]


def test_the_next_deploy_opens_what_a_rollback_closed(yard: Yard) -> None:
    yard.destroy()
    assert yard.closed()
    yard.ask("Create")
    assert not yard.closed()
