"""The reaper looks every five minutes, its silence is told within twenty, and a destroy drains before it takes anything away."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sns as sns

from contract.environments import DrainEnvironment, ReaperEnvironment
from stacks.parts import interfaces
from stacks.parts.alarms import Alarms
from tests.stacks.synth import every, function, logical_id, only, plain, resources, variables
from tools.synthesis import ROOT, Synthesised, definition

TWENTY_MINUTES_S = 1200
FIVE_MINUTES_S = 300
EVALUATED_LATE_S = 180
EVALUATED_EVERY_S = 60
NUMBERS_LATE_S = 120
"""A number of Lambda's may reach CloudWatch so late."""
"""CloudWatch looks every minute, and a number may be two minutes late."""


@pytest.fixture(scope="module")
def reaper(deployment: Synthesised) -> dict[str, Any]:
    return deployment.template("reaper")


@pytest.fixture(scope="module")
def alarms(complete: Synthesised) -> dict[str, dict[str, Any]]:
    """Of every stack, by their names, without the deployment's."""
    return {one["AlarmName"].removeprefix("trainyard-"): one for _, one in every(complete, "AWS::CloudWatch::Alarm")}


# Schedules


def test_no_pass_is_tried_again_by_lambda_and_none_is_lost_without_a_letter(reaper: dict[str, Any]) -> None:
    letters = {"Fn::GetAtt": [logical_id(reaper, "AWS::SQS::Queue", "Letters"), "Arn"]}
    config = only(reaper, "AWS::Lambda::EventInvokeConfig")
    assert config["FunctionName"] == {"Ref": logical_id(reaper, "AWS::Lambda::Function", "Reaper")}
    assert config["MaximumRetryAttempts"] == 0
    assert config["DestinationConfig"] == {"OnFailure": {"Destination": letters}}


def test_a_pass_ends_before_a_third_one_begins(reaper: dict[str, Any]) -> None:
    assert function(reaper, "reaper")["Timeout"] <= 300
    assert only(reaper, "AWS::Lambda::EventInvokeConfig")["MaximumEventAgeInSeconds"] <= 300


def test_the_schedules_role_is_for_the_schedules_of_this_account_alone(reaper: dict[str, Any]) -> None:
    (statement,) = only(reaper, "AWS::IAM::Role", "Schedule")["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "scheduler.amazonaws.com"}
    asked = statement["Condition"]["StringEquals"]
    assert asked["aws:SourceAccount"] == {"Ref": "AWS::AccountId"}
    assert plain(asked["aws:SourceArn"]) == "arn:aws:scheduler:eu-central-1:111122223333:schedule-group/default"


def test_the_reaper_is_told_what_it_needs(reaper: dict[str, Any]) -> None:
    reads = function(reaper, "reaper")
    environment = ReaperEnvironment.read(variables(reads))
    assert (environment.report_only, environment.max_share, environment.max_least) == (False, 0.2, 5)
    assert environment.max_hours == 72
    assert reads["MemorySize"] >= 1769


# Alarms


def test_silence_is_told_within_twenty_minutes_of_the_last_pass(alarms: dict[str, dict[str, Any]]) -> None:
    alarm = alarms["reaper-silent"]
    (period,) = {one["MetricStat"]["Period"] for one in alarm["Metrics"] if "MetricStat" in one}
    # The minute of the last pass, the empty ones, and what CloudWatch takes.
    assert period + alarm["EvaluationPeriods"] * period + EVALUATED_LATE_S < TWENTY_MINUTES_S


def test_silence_is_not_told_when_one_pass_is_missed(alarms: dict[str, dict[str, Any]]) -> None:
    alarm = alarms["reaper-silent"]
    (period,) = {one["MetricStat"]["Period"] for one in alarm["Metrics"] if "MetricStat" in one}
    assert alarm["EvaluationPeriods"] * period > 2 * 300


def test_a_silent_attendant_is_told_within_five_minutes_of_its_last_look(alarms: dict[str, dict[str, Any]]) -> None:
    alarm = alarms["attendant-silent"]
    (period,) = {one["MetricStat"]["Period"] for one in alarm["Metrics"] if "MetricStat" in one}
    assert period + alarm["EvaluationPeriods"] * period + EVALUATED_EVERY_S <= FIVE_MINUTES_S
    # Until the number of a minute arrives, the minute counts as empty.
    assert (alarm["EvaluationPeriods"] - 1) * period >= NUMBERS_LATE_S
    assert alarm["EvaluationPeriods"] > 1, "one missed look is no silence"


def test_the_silence_of_the_attendants_clock_is_told_however_often_nodes_wake_it(
    deployment: Synthesised, alarms: dict[str, dict[str, Any]]
) -> None:
    workflow = deployment.template("workflow")
    alias = {"Ref": logical_id(workflow, "AWS::Lambda::Alias")}
    attendant = {"Ref": logical_id(workflow, "AWS::Lambda::Function", "Attendant")}
    rules = resources(workflow, "AWS::Events::Rule").items()
    assert [name for name, one in rules if one["Targets"][0]["Arn"] == alias] == [
        name for name, _ in rules if name.startswith("WakesClock")
    ]
    for kind in ("AWS::Lambda::EventSourceMapping", "AWS::StepFunctions::StateMachine", "AWS::IAM::Policy"):
        assert alias["Ref"] not in json.dumps(resources(workflow, kind)), "something else invokes by the clock's alias"
    for one in alarms["attendant-silent"]["Metrics"]:
        if "MetricStat" in one:
            dimensions = {each["Name"]: plain(each["Value"]) for each in one["MetricStat"]["Metric"]["Dimensions"]}
            assert dimensions == {"FunctionName": plain(attendant), "Resource": f"{plain(attendant)}:clock"}


def test_the_clock_invokes_the_code_of_the_last_deploy(deployment: Synthesised) -> None:
    alias = only(deployment.template("workflow"), "AWS::Lambda::Alias")
    assert (alias["Name"], alias["FunctionVersion"]) == ("clock", "$LATEST")
    assert "RoutingConfig" not in alias


def test_no_alarm_rests_on_a_metric_with_which_code_on_a_node_can_silence_it(alarms: dict[str, dict[str, Any]]) -> None:
    """Whoever may write a log stream may write, as embedded metrics, into every namespace that does not begin with `AWS/`: he can add
    values, so an alarm may read the maximum of those of one unit, and nothing else."""
    read = {
        (name, one["Namespace"])
        for name, alarm in alarms.items()
        for one in (alarm, *(part.get("MetricStat", {}).get("Metric", {}) for part in alarm.get("Metrics", [])))
        if "Namespace" in one
    }
    assert {name for name, _ in read} == alarms.keys()
    ours = {name: alarms[name] for name, namespace in read if not namespace.startswith("AWS/")}
    assert ours.keys() == {"checkpoints-old", "commits-slow", "cost-near-cap", "kubernetes-idle"}
    for name, alarm in ours.items():
        assert "Metrics" not in alarm, name
        unit = "Count" if name == "kubernetes-idle" else "Percent"
        assert (alarm["Statistic"], alarm["Unit"]) == ("Maximum", unit), name
        assert alarm["ComparisonOperator"].startswith("GreaterThan"), name
        assert alarm["TreatMissingData"] == "notBreaching", name


@pytest.mark.parametrize(
    ("statistic", "unit"), [("Average", cloudwatch.Unit.PERCENT), ("Sum", cloudwatch.Unit.PERCENT), ("Maximum", None)]
)
def test_a_metric_of_ours_that_an_added_value_could_lower_is_rejected(
    statistic: str, unit: cloudwatch.Unit | None
) -> None:
    stack = cdk.Stack()
    made = Alarms(stack, "Alarms", deployment="yard", topic=interfaces.topic(sns.Topic(stack, "Topic")))
    metric = cloudwatch.Metric(namespace="Trainyard", metric_name="X", statistic=statistic, unit=unit)
    with pytest.raises(ValueError, match="the statistic Maximum and a unit"):
        made.on_most("x", metric, "", most=1.0)


def test_the_first_letter_of_any_dead_letter_queue_is_told(
    complete: Synthesised, alarms: dict[str, dict[str, Any]]
) -> None:
    dead = {json.dumps(config) for template in complete.stacks.values() for config in dead_letter_queues(template)}
    watched = [one for one in alarms.values() if one.get("Namespace") == "AWS/SQS"]
    assert len(watched) == len(dead) == 8
    for alarm in watched:
        assert (alarm["MetricName"], alarm["Statistic"]) == ("ApproximateNumberOfMessagesVisible", "Maximum")
    in_order = sorted(watched, key=lambda one: one["AlarmName"], reverse=True)
    start, search, own, page, grid, cleanup, catalogue, attendant = in_order
    assert "StartLetters" in json.dumps(start["Dimensions"])
    assert "Letters" in json.dumps(catalogue["Dimensions"])
    assert "SearchLetters" in json.dumps(search["Dimensions"])
    assert "PageLetters" in json.dumps(page["Dimensions"])
    assert "Letters" in json.dumps(own["Dimensions"])
    assert "GridLetters" in json.dumps(grid["Dimensions"])
    assert "CleanupLetters" in json.dumps(cleanup["Dimensions"])
    assert "AttendantLetters" in json.dumps(attendant["Dimensions"])


def dead_letter_queues(template: dict[str, Any]) -> Iterator[Any]:
    for one in resources(template, "AWS::SQS::Queue").values():
        if "RedrivePolicy" in one:
            yield one["RedrivePolicy"]["deadLetterTargetArn"]
    for one in resources(template, "AWS::Lambda::EventSourceMapping").values():
        if "DestinationConfig" in one:
            yield one["DestinationConfig"]["OnFailure"]["Destination"]
    for one in resources(template, "AWS::Scheduler::Schedule").values():
        yield one["Target"]["DeadLetterConfig"]["Arn"]
    for one in resources(template, "AWS::Events::Rule").values():
        yield from (target["DeadLetterConfig"]["Arn"] for target in one["Targets"] if "DeadLetterConfig" in target)


def test_the_runbook_has_no_alarm_that_is_gone(alarms: dict[str, dict[str, Any]]) -> None:
    runbook = (ROOT / "docs" / "runbook.md").read_text()
    section = runbook.partition("\n## Alarms\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^### (.+)$", section, re.MULTILINE)) == alarms.keys()


# Drain


def test_the_drain_is_asked_again_at_each_destroy_and_at_no_deploy(reaper: dict[str, Any]) -> None:
    assert only(reaper, "Custom::Drain") == {
        "ServiceToken": {"Fn::GetAtt": [logical_id(reaper, "AWS::Lambda::Function", "Drain"), "Arn"]},
        "ServiceTimeout": "3600",
    }


def test_the_drain_keeps_the_data_unless_the_settings_say_otherwise(reaper: dict[str, Any]) -> None:
    assert DrainEnvironment.read(variables(function(reaper, "drain"))).keep_data is True


def test_the_drain_answers_in_the_time_that_cloudformation_waits(reaper: dict[str, Any]) -> None:
    states = definition(reaper)["States"]
    again, service = states["Drain"]["Retry"]
    patience = DrainEnvironment.read(variables(function(reaper, "drain"))).timing.drain_patience_s
    waited = int(only(reaper, "Custom::Drain")["ServiceTimeout"])
    assert again["ErrorEquals"] == ["StillRunning"]
    # The function says when patience is over: the retry alone never ends it sooner.
    assert again["IntervalSeconds"] * again["MaxAttempts"] > patience
    assert patience + again["IntervalSeconds"] + states["Drain"]["TimeoutSeconds"] < waited
    assert "Lambda.TooManyRequestsException" in service["ErrorEquals"]


def test_every_end_of_the_drain_is_answered(reaper: dict[str, Any]) -> None:
    states = definition(reaper)["States"]
    assert states["Drain"]["Next"] == "Answer"
    assert [(one["ErrorEquals"], one["Next"]) for one in states["Drain"]["Catch"]] == [(["States.ALL"], "Answer")]
    assert states["Answer"]["Arguments"]["Payload"]["problem"] == "{% $problem %}"
    assert states["Answer"]["Retry"][0]["ErrorEquals"] == ["States.ALL"]
    assert "$problem" in json.dumps(states["Decide"])
    assert [name for name, one in states.items() if one["Type"] == "Fail"] == ["Failed"]
