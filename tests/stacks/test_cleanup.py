"""Executions that end badly reach the cleanup, however often it fails, and what fails for good stays for a person."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contract.environments import CleanupEnvironment
from contract.execution_facts import REPORTED_S
from contract.timing import Timing
from localaws.model import listed
from tests.stacks.synth import function, logical_id, only, plain, resources, variables
from tests.stacks.variations import AGAIN_SOON, SPEED
from tools.synthesis import Synthesised

TEN_MINUTES_S = 600
LONGEST_WALK_S = 300
"""The launcher's time-out."""
TICK_S, LONGEST_TRY_S = 300, 120
SENDING = {"sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"}
"""What the CDK calls the right to send."""


@pytest.fixture(scope="module")
def workflow(deployment: Synthesised) -> dict[str, Any]:
    return deployment.template("workflow")


@pytest.fixture(scope="module")
def rule(workflow: dict[str, Any]) -> dict[str, Any]:
    return only(workflow, "AWS::Events::Rule", "ExecutionEnded")


@pytest.fixture(scope="module")
def queue(workflow: dict[str, Any]) -> dict[str, Any]:
    return only(workflow, "AWS::SQS::Queue", "CleanupQueue")


@pytest.fixture(scope="module")
def letters(workflow: dict[str, Any]) -> dict[str, Any]:
    """The ARN of the queue of dead letters."""
    return arn_of(workflow, "AWS::SQS::Queue", "CleanupLetters")


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
    assert not {"Input", "InputPath", "InputTransformer"} & target.keys()


def test_an_event_that_cannot_be_delivered_is_tried_for_a_day_and_then_kept(
    rule: dict[str, Any], letters: dict[str, Any]
) -> None:
    (target,) = rule["Targets"]
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 86400, "MaximumRetryAttempts": 185}
    assert target["DeadLetterConfig"] == {"Arn": letters}


def test_no_queue_takes_a_message_plain_or_without_tls_or_forgets_it_within_a_fortnight(
    deployment: Synthesised,
) -> None:
    for stack in ("workflow", "reaper"):
        template = deployment.template(stack)
        denied = {
            json.dumps(queue)
            for policy in resources(template, "AWS::SQS::QueuePolicy").values()
            for queue in policy["Queues"]
            for statement in policy["PolicyDocument"]["Statement"]
            if statement["Effect"] == "Deny" and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        }
        found = resources(template, "AWS::SQS::Queue")
        assert found
        for name, queue in found.items():
            assert json.dumps({"Ref": name}) in denied, name
            assert queue["SqsManagedSseEnabled"] is True, name
            assert queue["MessageRetentionPeriod"] == 14 * 86400, name


def test_only_the_rule_may_put_something_into_the_queue_from_outside(workflow: dict[str, Any]) -> None:
    rule = arn_of(workflow, "AWS::Events::Rule", "ExecutionEnded")
    allowed = [
        statement
        for policy in resources(workflow, "AWS::SQS::QueuePolicy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    ]
    allowed = [one for one in allowed if "Cleanup" in plain(one["Resource"])]
    assert len(allowed) == 2  # the queue, and the letters
    for statement in allowed:
        assert statement["Principal"] == {"Service": "events.amazonaws.com"}
        assert {"sqs:SendMessage"} <= {*listed(statement["Action"])} <= SENDING
        assert rule in [value for condition in statement["Condition"].values() for value in condition.values()]


def test_a_message_is_hidden_for_six_times_as_long_as_the_function_may_run(
    workflow: dict[str, Any], queue: dict[str, Any]
) -> None:
    """What AWS advises for a queue that a function reads."""
    assert queue["VisibilityTimeout"] == 6 * function(workflow, "cleanup")["Timeout"]


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


def test_what_fails_for_good_is_kept_apart(queue: dict[str, Any], letters: dict[str, Any]) -> None:
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == letters


def messages(workflow: dict[str, Any]) -> dict[str, Any]:
    """The mapping by which the cleanup reads its queue."""
    (found,) = [
        one
        for one in resources(workflow, "AWS::Lambda::EventSourceMapping").values()
        if "CleanupQueue" in plain(one["EventSourceArn"])
    ]
    return found


def test_one_message_that_fails_takes_no_other_with_it(workflow: dict[str, Any]) -> None:
    mapping = messages(workflow)
    assert mapping["BatchSize"] == 1
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_many_ends_at_once_leave_room_for_the_other_functions(workflow: dict[str, Any]) -> None:
    """A new account runs ten functions at once in all."""
    mapping = messages(workflow)
    assert mapping["ScalingConfig"]["MaximumConcurrency"] == 2


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
