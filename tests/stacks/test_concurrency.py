"""What tenants cause never takes every invocation that an account may run at once: each trigger of a function has a bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from attendant.passes import SLICE
from contract.items import AWAITING
from stacks.parts.wakes import AT_ONCE
from tests.stacks.synth import every, function, plain, resources
from tests.stacks.variations import RESERVED
from tools.synthesis import Synthesised

NEW_ACCOUNT = 10
"""Invocations at once, over all functions."""
SHARDS = 4
"""A table on demand begins with four partitions, and its stream has a shard for each."""
ENDS_MACHINES = {"terminator": "workflow", "cleanup": "workflow", "reaper": "reaper"}
KNOWN = {"AWS::Events::Rule", "AWS::Lambda::EventSourceMapping", "AWS::Scheduler::Schedule"}
"""Resources that invoke functions by themselves. State machines and CloudFormation invoke them for a person's execution or deploy."""
OTHERS = {
    "AWS::SNS::Subscription",
    "AWS::S3::BucketNotification",
    "Custom::S3BucketNotifications",
    "AWS::Lambda::Url",
    "AWS::Logs::SubscriptionFilter",
    "AWS::Pipes::Pipe",
    "AWS::ApiGatewayV2::Api",
    "AWS::ApiGateway::RestApi",
}


@pytest.fixture(scope="module")
def mappings(deployment: Synthesised) -> list[dict[str, Any]]:
    return [one for _, one in every(deployment, "AWS::Lambda::EventSourceMapping")]


def bound(mapping: dict[str, Any]) -> int:
    """The most invocations at once; fails where there is no bound."""
    if "dynamodb" in plain(mapping["EventSourceArn"]) or "StreamArn" in plain(mapping["EventSourceArn"]):
        return SHARDS * int(mapping["ParallelizationFactor"])
    return int(mapping["ScalingConfig"]["MaximumConcurrency"])


def test_every_queue_and_stream_in_front_of_a_function_has_a_bound(mappings: list[dict[str, Any]]) -> None:
    assert sorted(bound(one) for one in mappings) == [2, 2, 2, 2, 2, 4]


def test_what_a_node_can_cause_at_will_leaves_room_in_a_new_account(mappings: list[dict[str, Any]]) -> None:
    """Reports, and the ends of instances. The cleanups are fed by ends of executions, of which each causes one message."""
    attendant = [bound(one) for one in mappings if "Attendant" in plain(one["FunctionName"])]
    assert len(attendant) == 2
    assert sum(attendant) <= NEW_ACCOUNT - 4


def test_no_event_of_aws_invokes_a_function_without_a_queue_between(deployment: Synthesised) -> None:
    """Only a schedule does, because nobody but its rate decides how often."""
    direct = [rule for template in deployment.stacks.values() for rule in rules_of_functions(template)]
    assert [one for one in direct if "EventPattern" in one] == []
    assert len(direct) == 3  # the clocks of the attendant, of the launcher and of the cleanup


def test_nothing_else_invokes_a_function(deployment: Synthesised) -> None:
    kinds = {one["Type"] for template in deployment.stacks.values() for one in template["Resources"].values()}
    assert kinds >= KNOWN
    assert kinds & OTHERS == set()
    notified = [
        name
        for template in deployment.stacks.values()
        for name, bucket in resources(template, "AWS::S3::Bucket").items()
        if "LambdaConfigurations" in bucket.get("NotificationConfiguration", {})
    ]
    assert notified == []


def test_nothing_is_reserved_by_default_because_a_new_account_refuses_it(deployment: Synthesised) -> None:
    assert list(reserved(deployment)) == []


def test_what_ends_machines_has_room_of_its_own_where_the_settings_say_so(varied: Synthesised) -> None:
    wanted = {package: function(varied.template(stack), package) for package, stack in ENDS_MACHINES.items()}
    assert {package: one["ReservedConcurrentExecutions"] for package, one in wanted.items()} == dict.fromkeys(
        wanted, RESERVED
    )
    assert sorted(reserved(varied)) == [RESERVED] * 3 + [AT_ONCE]


def test_what_looks_at_running_jobs_has_room_for_all_that_wakes_it_at_once(
    varied: Synthesised, mappings: list[dict[str, Any]]
) -> None:
    woken = sum(bound(one) for one in mappings if "Attendant" in plain(one["FunctionName"]))
    jobs = 1000
    kept = function(varied.template("workflow"), "attendant")["ReservedConcurrentExecutions"]
    assert kept >= jobs / SLICE + woken + AWAITING + 1


def reserved(deployment: Synthesised) -> Iterator[int]:
    for _, one in every(deployment, "AWS::Lambda::Function"):
        if "ReservedConcurrentExecutions" in one:
            yield one["ReservedConcurrentExecutions"]


def rules_of_functions(template: dict[str, Any]) -> list[dict[str, Any]]:
    """The rules that invoke a function without anything between, by its ARN or by an alias."""
    kinds = ("AWS::Lambda::Function", "AWS::Lambda::Alias")
    functions = {name for kind in kinds for name in resources(template, kind)}
    return [
        rule
        for rule in resources(template, "AWS::Events::Rule").values()
        if any(plain(target["Arn"])[1:].partition(">")[0].partition(".")[0] in functions for target in rule["Targets"])
    ]
