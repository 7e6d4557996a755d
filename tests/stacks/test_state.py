"""The table of state as it is deployed: what keeps it, who hears of its writes, and what is told of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from moto.events.models import EventPattern

from contract import items, names
from contract.environments import AttendantEnvironment
from tests.stacks.synth import Right, only, plain, resources, rights
from tools.synthesis import Synthesised

TABLE = "AWS::DynamoDB::Table"
KEYS = {"Keys": {items.PARTITION: {"S": "AROA:i-0a"}, items.SORT: {"S": items.REPORT}}}
URGENT = {items.URGENT: {"N": "1"}, items.DOCUMENT: {"S": "{}"}}


def every_right(deployment: Synthesised) -> Iterator[Right]:
    """Every statement of every role's policies."""
    for stack, template in deployment.stacks.items():
        yield from rights(template, stack=stack)


@pytest.fixture(scope="module")
def mapping(deployment: Synthesised) -> dict[str, Any]:
    """The one event source mapping that reads the table's stream."""
    (found,) = [
        one
        for template in deployment.stacks.values()
        for one in resources(template, "AWS::Lambda::EventSourceMapping").values()
        if "StartingPosition" in one
    ]
    return found


def table(deployment: Synthesised) -> dict[str, Any]:
    tables: list[dict[str, Any]] = [
        one for each in deployment.stacks.values() for one in each["Resources"].values() if one["Type"] == TABLE
    ]
    (found,) = tables
    return found


def alarms(deployment: Synthesised) -> Iterator[dict[str, Any]]:
    for template in deployment.stacks.values():
        yield from resources(template, "AWS::CloudWatch::Alarm").values()


# The table


def test_the_table_has_the_contracts_name_and_keys_and_costs_nothing_while_idle(deployment: Synthesised) -> None:
    made = table(deployment)["Properties"]
    assert made["TableName"] == names.state_table("trainyard")
    assert made["BillingMode"] == "PAY_PER_REQUEST"
    assert not {"ProvisionedThroughput", "GlobalSecondaryIndexes", "LocalSecondaryIndexes"} & made.keys()
    assert made["KeySchema"] == [
        {"AttributeName": items.PARTITION, "KeyType": "HASH"},
        {"AttributeName": items.SORT, "KeyType": "RANGE"},
    ]
    assert made["AttributeDefinitions"] == [
        {"AttributeName": items.PARTITION, "AttributeType": "S"},
        {"AttributeName": items.SORT, "AttributeType": "S"},
    ]
    assert made["TimeToLiveSpecification"] == {"AttributeName": items.EXPIRES, "Enabled": True}


def test_every_table_can_be_restored_and_none_outlives_or_leaves_its_stack_by_mistake(
    deployment: Synthesised, passing: Synthesised
) -> None:
    for each, kept in ((deployment, True), (passing, False)):
        made = table(each)
        assert made["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
        assert made["Properties"].get("DeletionProtectionEnabled", False) is kept
        policies = ("RetainExceptOnCreate", "Retain") if kept else ("Delete", "Delete")
        assert (made["DeletionPolicy"], made["UpdateReplacePolicy"]) == policies


def test_nothing_can_fail_after_the_protected_table_was_made_but_what_tells_of_it(deployment: Synthesised) -> None:
    """CloudFormation cannot delete a protected table when it rolls a first deploy back, and the table's name blocks the next one."""
    template = deployment.template("foundation")
    (name,) = resources(template, TABLE)
    before, every = set[str](), template["Resources"]
    left = list(every[name]["DependsOn"])
    while left:
        if (one := left.pop()) not in before:
            before.add(one)
            left += [other for other in every if f'"{other}"' in json.dumps(every[one])]
    later = {made["Type"] for one, made in every.items() if one not in {*before, name}}
    assert later <= {"AWS::CloudWatch::Alarm", "AWS::CDK::Metadata"}


# The stream


def test_the_stream_tells_what_was_written_and_not_what_was_there(deployment: Synthesised) -> None:
    assert table(deployment)["Properties"]["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE"}


@pytest.mark.parametrize(
    ("change", "wakes"),
    [
        ({"NewImage": URGENT}, True),
        ({"NewImage": {items.DOCUMENT: {"S": "{}"}}}, False),
        ({"NewImage": {**URGENT, items.URGENT: {"N": "0"}}}, False),
        ({"NewImage": {**URGENT, items.URGENT: {"S": "1"}}}, False),
        ({"NewImage": {items.DOCUMENT: {"S": '{"urgent": 1}'}}}, False),
        ({"OldImage": URGENT}, False),
        ({}, False),
    ],
    ids=["an urgent report", "another item", "zero", "text", "a word in the document", "what was there", "a deletion"],
)
def test_urgent_reports_and_no_others_wake_the_attendant(
    mapping: dict[str, Any], change: dict[str, Any], *, wakes: bool
) -> None:
    (one,) = mapping["FilterCriteria"]["Filters"]
    record = {"eventName": "MODIFY", "dynamodb": {**KEYS, **change}}
    assert EventPattern.load(one["Pattern"]).matches_event(record) is wakes
    assert set(json.loads(one["Pattern"])) == {"dynamodb"}, "a mapping filters on nothing else"


def test_many_nodes_that_end_at_once_cause_few_looks_and_one_node_waits_for_nothing(mapping: dict[str, Any]) -> None:
    assert mapping["MaximumBatchingWindowInSeconds"] == 0
    assert mapping["BatchSize"] >= 100
    assert mapping["ParallelizationFactor"] == 1, (
        "a table has four shards, and a new account runs ten functions at once in all"
    )


def test_a_record_that_breaks_the_attendant_holds_the_others_up_for_minutes_at_most(mapping: dict[str, Any]) -> None:
    assert mapping["BisectBatchOnFunctionError"] is True
    assert mapping["MaximumRetryAttempts"] <= 2
    assert mapping["MaximumRecordAgeInSeconds"] <= 300
    assert "AttendantLetters" in plain(mapping["DestinationConfig"]["OnFailure"]["Destination"])


def test_the_stream_is_read_from_its_end_and_by_the_attendant_alone(
    deployment: Synthesised, mapping: dict[str, Any]
) -> None:
    assert mapping["StartingPosition"] == "LATEST"
    assert plain(mapping["FunctionName"]).startswith("<Attendant")
    readers = {right.role for right in every_right(deployment) if "dynamodb:GetRecords" in right.actions}
    assert [one.startswith("AttendantRole") for one in readers] == [True]


# The attendant


def test_every_way_in_which_an_instance_ends_wakes_the_attendant(deployment: Synthesised) -> None:
    rule = only(deployment.template("workflow"), "AWS::Events::Rule", "WakesInstanceEnding")
    assert rule["EventPattern"] == {
        "source": ["aws.ec2"],
        "detail-type": ["EC2 Instance State-change Notification"],
        "detail": {"state": ["stopping", "stopped", "shutting-down", "terminated"]},
    }


def test_a_tick_that_failed_is_never_tried_again(deployment: Synthesised) -> None:
    configs = resources(deployment.template("workflow"), "AWS::Lambda::EventInvokeConfig").values()
    latest = [plain(one["FunctionName"])[1:8] for one in configs if one["Qualifier"] == "$LATEST"]
    by_alias = [plain(one["FunctionName"])[1:8] for one in configs if "ByClock" in str(one["Qualifier"])]
    assert (sorted(latest), by_alias, len(configs)) == (["Attenda", "Cleanup", "Launche"], ["Attenda"], 4)
    ages = {plain(one["FunctionName"])[1:8]: one["MaximumEventAgeInSeconds"] for one in configs}
    assert ages == {"Attenda": 60, "Cleanup": 300, "Launche": 60}
    assert {one["MaximumRetryAttempts"] for one in configs} == {0}


def test_the_attendant_knows_the_table_and_the_role_of_its_nodes(deployment: Synthesised) -> None:
    (function,) = [
        one
        for one in resources(deployment.template("workflow"), "AWS::Lambda::Function").values()
        if one["Handler"].startswith("attendant.")
    ]
    variables = {name: plain(value) for name, value in function["Environment"]["Variables"].items()}
    environment = AttendantEnvironment.read(variables)
    assert "State" in environment.table
    assert "NodeRole" in environment.node_role
    assert "RoleId" in environment.node_role


# Rights


def test_every_right_on_the_table_names_partition_keys_and_holds_for_no_request_without_them(
    deployment: Synthesised, passing: Synthesised
) -> None:
    with_keys = {f"dynamodb:{one}" for one in ("GetItem", "PutItem", "DeleteItem", "Query", "BatchGetItem")}
    for each in (deployment, passing):
        found = [
            right
            for right in every_right(each)
            if any(f"table/{names.state_table('trainyard')}" in one for one in right.resources)
        ]
        assert len(found) >= 20
        for right in found:
            assert set(right.actions) <= with_keys, right
            assert right.conditions["Null"] == {"dynamodb:LeadingKeys": "false"}, right
            (operator,) = right.conditions.keys() - {"Null"}
            keys = right.conditions[operator]["dynamodb:LeadingKeys"]
            assert operator == ("ForAllValues:StringLike" if "*" in json.dumps(keys) else "ForAllValues:StringEquals")


def test_every_part_of_a_role_on_the_table_has_a_name_of_its_own(deployment: Synthesised) -> None:
    named = [(right.stack, right.role, right.name) for right in every_right(deployment) if right.name]
    assert len(set(named)) == len(named)


# What is told


@pytest.mark.parametrize("metric", ["ReadThrottleEvents", "WriteThrottleEvents"])
def test_throttles_of_the_table_are_told(deployment: Synthesised, metric: str) -> None:
    (alarm,) = [one for one in alarms(deployment) if one.get("MetricName") == metric]
    assert (alarm["Namespace"], alarm["Statistic"]) == ("AWS/DynamoDB", "Sum")
    (dimension,) = alarm["Dimensions"]
    assert (dimension["Name"], plain(dimension["Value"])[:6]) == ("TableName", "<State")
