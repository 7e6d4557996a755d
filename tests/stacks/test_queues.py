"""What holds for every queue, every event for one, and every schedule: what fails for good leaves a letter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from localaws.model import listed
from tests.stacks.synth import every, function, plain, resources
from tools.synthesis import Synthesised

QUEUE, MAPPING, RULE = "AWS::SQS::Queue", "AWS::Lambda::EventSourceMapping", "AWS::Events::Rule"
A_DAY_S = 86_400
SENDING = {"sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"}
"""What the CDK calls the right to send."""
READ: dict[str, tuple[str, int]] = {
    "CleanupQueue": ("cleanup", 1),
    "Endings": ("attendant", 10),
    "GridQueue": ("grid_cleanup", 1),
    "KeeperEnds": ("keeper", 1),
    "PageQueue": ("page_writer", 10),
    "SearchQueue": ("search_cleanup", 1),
    "StartQueue": ("starter", 1),
}
"""Begin of a queue's logical id to the function that reads it, and how many messages that gets at once."""
HINTS = {"Endings"}
"""Queues whose function looks at everything whatever the message says: it fails for all of a batch or for none."""


def queues(deployment: Synthesised) -> Iterator[tuple[str, dict[str, Any], str, dict[str, Any]]]:
    """Stack, its template, logical id and properties of every queue."""
    for stack, template in deployment.stacks.items():
        for name, one in resources(template, QUEUE).items():
            yield stack, template, name, one


def find_read(deployment: Synthesised, begin: str) -> tuple[dict[str, Any], str, dict[str, Any], dict[str, Any]]:
    """Template, logical id, properties and mapping of the queue whose logical id begins so."""
    ((template, name, one),) = [(each[1], each[2], each[3]) for each in queues(deployment) if each[2].startswith(begin)]
    arn = {"Fn::GetAtt": [name, "Arn"]}
    (mapping,) = [each for each in resources(template, MAPPING).values() if each["EventSourceArn"] == arn]
    return template, name, one, mapping


def statements(template: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """Every statement of the policies of a queue."""
    for policy in resources(template, "AWS::SQS::QueuePolicy").values():
        if {"Ref": name} in policy["Queues"]:
            yield from policy["PolicyDocument"]["Statement"]


def test_no_queue_takes_a_message_plain_or_without_tls_or_forgets_it_within_a_fortnight(complete: Synthesised) -> None:
    for stack, template, name, one in queues(complete):
        assert one["SqsManagedSseEnabled"] is True, f"{stack}/{name}"
        assert one["MessageRetentionPeriod"] == 14 * A_DAY_S, f"{stack}/{name}"
        (denied,) = [each for each in statements(template, name) if each["Effect"] == "Deny"]
        assert (denied["Action"], denied["Principal"]) == ("sqs:*", {"AWS": "*"}), f"{stack}/{name}"
        assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}, f"{stack}/{name}"


def test_no_queue_takes_a_message_from_outside_but_of_a_rule_of_its_own_stack(complete: Synthesised) -> None:
    for stack, template, name, _ in queues(complete):
        rules = [{"Fn::GetAtt": [rule, "Arn"]} for rule in resources(template, RULE)]
        for one in statements(template, name):
            if one["Effect"] == "Allow":
                assert one["Principal"] == {"Service": "events.amazonaws.com"}, f"{stack}/{name}"
                assert {"sqs:SendMessage"} <= {*listed(one["Action"])} <= SENDING, f"{stack}/{name}"
                (source,) = [value["aws:SourceArn"] for value in one["Condition"].values()]
                elsewhere = name.startswith("Start") and plain(source).endswith(":rule/trainyard-*")
                assert source in rules or elsewhere, f"{stack}/{name}: a campaign's bucket may be in another region"


def test_a_queue_is_read_by_a_function_or_by_people(complete: Synthesised) -> None:
    read = {name for _, _, name, _ in queues(complete) for begin in READ if name.startswith(begin)}
    others = {name for _, _, name, _ in queues(complete)} - read
    assert len(read) == len(READ)
    assert [name for name in others if "Letters" not in name] == []
    mappings = [one for _, one in every(complete, MAPPING) if "StartingPosition" not in one]
    assert len(mappings) == len(READ)


@pytest.mark.parametrize("begin", READ)
def test_a_message_is_hidden_for_six_times_as_long_as_its_function_may_run(complete: Synthesised, begin: str) -> None:
    """What AWS advises for a queue that a function reads."""
    template, _, queue, _ = find_read(complete, begin)
    assert queue["VisibilityTimeout"] == 6 * function(template, READ[begin][0])["Timeout"]


@pytest.mark.parametrize("begin", READ)
def test_a_message_that_fails_takes_no_other_with_it_and_leaves_room_for_other_functions(
    complete: Synthesised, begin: str
) -> None:
    """A new account runs ten functions at once in all."""
    template, _, _, mapping = find_read(complete, begin)
    package, batch = READ[begin]
    assert template["Resources"][mapping["FunctionName"]["Ref"]]["Properties"] == function(template, package)
    assert mapping["BatchSize"] == batch
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 2}
    assert mapping.get("FunctionResponseTypes", []) == ([] if begin in HINTS else ["ReportBatchItemFailures"])
    assert mapping.get("Enabled", True)


@pytest.mark.parametrize("begin", READ)
def test_a_message_that_fails_for_good_becomes_a_letter_of_its_own_stack(complete: Synthesised, begin: str) -> None:
    template, _, queue, _ = find_read(complete, begin)
    letters, _ = queue["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"]
    assert template["Resources"][letters]["Type"] == QUEUE
    assert "Letters" in letters
    assert queue["RedrivePolicy"]["maxReceiveCount"] >= 5, "Lambda's own throttles count as receives"


def test_no_function_that_a_clock_invokes_is_tried_again_by_lambda(complete: Synthesised) -> None:
    """Clocks wait for no answer, so Lambda itself would try it twice more, beside the next ticks."""
    for stack, template in complete.stacks.items():
        clocks = [one for one in resources(template, RULE).values() if "ScheduleExpression" in one]
        targets = [target["Arn"] for one in clocks for target in one["Targets"]]
        targets += [one["Target"]["Arn"] for one in resources(template, "AWS::Scheduler::Schedule").values()]
        configs = resources(template, "AWS::Lambda::EventInvokeConfig").values()
        once = {json.dumps(one["FunctionName"]) for one in configs if one["MaximumRetryAttempts"] == 0}
        for target in targets:
            name = target["Fn::GetAtt"][0] if "Fn::GetAtt" in target else target["Ref"]
            properties = template["Resources"][name]["Properties"]
            invoked = properties.get("FunctionName", {"Ref": name}) if "Ref" in target else {"Ref": name}
            assert json.dumps(invoked) in once, f"{stack}/{name}"


def test_an_event_that_a_queue_cannot_take_is_tried_for_a_day_and_then_kept(complete: Synthesised) -> None:
    """Those of instances alone are hints, which the clock makes up for."""
    for name, rule in every(complete, RULE):
        (target,) = rule["Targets"]
        assert rule["State"] == "ENABLED", name
        assert not {"Input", "InputPath", "InputTransformer"} & target.keys(), name
        if "EventPattern" not in rule or "WakesInstanceEnding" in name:
            assert "DeadLetterConfig" not in target, name
            continue
        template = complete.stacks[name.partition("/")[0]]
        queue, _ = target["Arn"]["Fn::GetAtt"]
        redrive = template["Resources"][queue]["Properties"]["RedrivePolicy"]
        assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": A_DAY_S, "MaximumRetryAttempts": 185}, name
        assert target["DeadLetterConfig"] == {"Arn": redrive["deadLetterTargetArn"]}, name


def test_no_tick_of_a_schedule_is_tried_again_or_lost_without_a_letter(complete: Synthesised) -> None:
    """The next tick is the second chance."""
    found = dict(every(complete, "AWS::Scheduler::Schedule"))
    for name, schedule in found.items():
        template = complete.stacks[name.partition("/")[0]]
        assert (schedule["ScheduleExpressionTimezone"], schedule["FlexibleTimeWindow"]) == ("UTC", {"Mode": "OFF"}), (
            name
        )
        assert schedule.get("State", "ENABLED") == "ENABLED", name
        target = schedule["Target"]
        assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0}, name
        letters, _ = target["DeadLetterConfig"]["Arn"]["Fn::GetAtt"]
        assert template["Resources"][letters]["Type"] == QUEUE, name
        role, _ = target["RoleArn"]["Fn::GetAtt"]
        assert "scheduler.amazonaws.com" in json.dumps(template["Resources"][role]), name
    assert {name.partition("/")[2].rstrip("0123456789ABCDEF"): given(one) for name, one in found.items()} == {
        "KeeperScheduleHour": ("rate(1 hour)", {}),
        "PageClockTick": ("rate(5 minutes)", {}),
        "SchedulePass": ("rate(5 minutes)", {}),
        "ScheduleTick": ("rate(5 minutes)", {}),
        "ScheduleWatch": ("rate(5 minutes)", {"verb": "watch"}),
        "ScheduleWeek": ("cron(0 8 ? * MON *)", {"action": "weekly"}),
    }


def given(schedule: dict[str, Any]) -> tuple[str, Any]:
    """When a schedule invokes its function, and what with."""
    return schedule["ScheduleExpression"], json.loads(schedule["Target"]["Input"])
