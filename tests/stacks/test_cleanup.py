"""Executions that end badly reach the cleanup, however often it fails, and what fails for good stays for a person."""

from __future__ import annotations

from typing import Any

import pytest

from contract.environments import CleanupEnvironment
from contract.execution_facts import REPORTED_S
from contract.timing import Timing
from tests.stacks.synth import function, logical_id, only, resources, variables
from tests.stacks.variations import AGAIN_SOON, SPEED
from tools.synthesis import Synthesised

TEN_MINUTES_S = 600
LONGEST_WALK_S = 300
"""The launcher's time-out."""
TICK_S, LONGEST_TRY_S = 300, 120


@pytest.fixture(scope="module")
def workflow(deployment: Synthesised) -> dict[str, Any]:
    return deployment.template("workflow")


@pytest.fixture(scope="module")
def rule(workflow: dict[str, Any]) -> dict[str, Any]:
    return only(workflow, "AWS::Events::Rule", "ExecutionEnded")


def arn_of(template: dict[str, Any], kind: str, begin: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [logical_id(template, kind, begin), "Arn"]}


def test_every_end_but_a_good_one_is_told_to_the_queue(workflow: dict[str, Any], rule: dict[str, Any]) -> None:
    machine = {"Ref": logical_id(workflow, "AWS::StepFunctions::StateMachine", "Train")}
    pattern = rule["EventPattern"]
    assert pattern["source"] == ["aws.states"]
    assert pattern["detail-type"] == ["Step Functions Execution Status Change"]
    assert pattern["detail"] == {"stateMachineArn": [machine], "status": ["FAILED", "TIMED_OUT", "ABORTED"]}
    (target,) = rule["Targets"]
    assert target["Arn"] == arn_of(workflow, "AWS::SQS::Queue", "CleanupQueue")


def test_a_message_comes_back_for_ten_minutes_of_refusals_after_the_longest_walk(
    deployment: Synthesised, varied: Synthesised, faster: Synthesised
) -> None:
    """Where it comes back less often, and where all is over sooner, too."""
    usual = Timing()
    most_s = TEN_MINUTES_S + LONGEST_WALK_S
    for each, again_s, needed_s in (
        (deployment, usual.terminate_again_s, most_s),
        (varied, AGAIN_SOON["terminate_again_s"], most_s),
        (faster, usual.divided(SPEED).terminate_again_s, most_s / SPEED),
    ):
        queue = only(each.template("workflow"), "AWS::SQS::Queue", "CleanupQueue")
        received = queue["RedrivePolicy"]["maxReceiveCount"]
        assert needed_s <= received * again_s <= 1.1 * needed_s, "not much longer either: nobody is told before"
        assert received >= 5


def test_a_clock_of_five_minutes_makes_up_for_events_that_are_lost_and_the_next_tick_for_a_tick(
    workflow: dict[str, Any],
) -> None:
    clock = only(workflow, "AWS::Events::Rule", "CleanupClock")
    assert (clock["ScheduleExpression"], clock["State"], "EventPattern" in clock) == (
        "rate(5 minutes)",
        "ENABLED",
        False,
    )
    (target,) = clock["Targets"]
    cleanup = logical_id(workflow, "AWS::Lambda::Function", "Cleanup")
    assert target["Arn"] == {"Fn::GetAtt": [cleanup, "Arn"]}
    once = {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 300}
    assert target["RetryPolicy"] == once
    assert not {"Input", "InputPath", "InputTransformer"} & target.keys()
    (invoked,) = [
        one
        for one in resources(workflow, "AWS::Lambda::EventInvokeConfig").values()
        if one["FunctionName"] == {"Ref": cleanup}
    ]
    assert {name: invoked[name] for name in once} == once | {"MaximumEventAgeInSeconds": 300}


def test_nothing_but_its_clock_and_its_queue_invokes_the_cleanup(workflow: dict[str, Any]) -> None:
    cleanup = logical_id(workflow, "AWS::Lambda::Function", "Cleanup")
    clock = logical_id(workflow, "AWS::Events::Rule", "CleanupClock")
    (allowed,) = [
        one
        for one in resources(workflow, "AWS::Lambda::Permission").values()
        if one["FunctionName"] == {"Fn::GetAtt": [cleanup, "Arn"]}
    ]
    assert allowed["Principal"] == "events.amazonaws.com"
    assert allowed["SourceArn"] == {"Fn::GetAtt": [clock, "Arn"]}


def test_the_clock_looks_four_times_at_least_before_it_gives_an_end_up_and_before_a_grid_gives_its_line_up(
    deployment: Synthesised, faster: Synthesised
) -> None:
    """After the reaper's second look: passes are 360 s apart at most."""
    for each, speed in ((deployment, 1), (faster, SPEED)):
        timing = CleanupEnvironment.read(variables(function(each.template("workflow"), "cleanup"))).timing
        after_s, until_s = timing.missing_report_after_s * speed, timing.missing_report_until_s * speed
        assert Timing().reaper_grace_s + 2 * 360 <= after_s
        assert after_s + TICK_S + LONGEST_TRY_S <= REPORTED_S
        assert after_s + 4 * TICK_S <= until_s


def test_the_cleanup_knows_its_machine(workflow: dict[str, Any]) -> None:
    machine = logical_id(workflow, "AWS::StepFunctions::StateMachine", "Train")
    assert CleanupEnvironment.read(variables(function(workflow, "cleanup"))).machine == f"<{machine}>"


def test_the_cleanup_knows_its_queue_and_carries_what_terminate_ends_instances_with(
    workflow: dict[str, Any], deployment: Synthesised
) -> None:
    queue = logical_id(workflow, "AWS::SQS::Queue", "CleanupQueue")
    assert CleanupEnvironment.read(variables(function(workflow, "cleanup"))).queue == f"<{queue}>"
    assert archives(deployment, "cleanup") == {"cleanup", "messages", "ending", "aws", "contract"}
    assert archives(deployment, "grid_cleanup") == {"grid_cleanup", "messages", "grids", "ending", "aws", "contract"}
    assert archives(deployment, "terminator") == {"terminator", "ending", "aws", "contract"}
    assert archives(deployment, "drain") == {"drain", "ending", "aws", "contract"}
    assert archives(deployment, "reaper") == {"reaper", "ending", "aws", "contract"}


def archives(deployment: Synthesised, package: str) -> set[str]:
    """The top-level folders of a function's archive."""
    (found,) = (one for one in deployment.folder.glob("asset.*") if (one / package / "handler.py").exists())
    return {one.name for one in found.iterdir()}
