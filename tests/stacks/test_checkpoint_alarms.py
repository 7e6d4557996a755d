"""The alarms about checkpoints: one for all jobs, in percent of each job's interval, by the settings."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns

from contract import metrics, names
from contract.environments import AttendantEnvironment, CheckpointLimits, StateEnvironment
from stacks.parts import interfaces
from stacks.parts.alarms import Alarms
from stacks.parts.checkpoint_alarms import watch_checkpoints
from stacks.parts.function import Function
from stacks.settings import BadSettings, Settings
from tests.stacks.synth import every, function, only, resources, variables
from tools.synthesis import Synthesised

LAYER = "arn:aws:lambda:eu-central-1:111122223333:layer:libraries:1"
NAMES = ("checkpoints-old", "commits-slow")


@pytest.fixture(scope="module")
def alarms(deployment: Synthesised) -> dict[str, dict[str, Any]]:
    """By their names, without the deployment's."""
    found = {one["AlarmName"].removeprefix("trainyard-"): one for _, one in every(deployment, "AWS::CloudWatch::Alarm")}
    return {name: found[name] for name in NAMES}


def with_limits(limits: CheckpointLimits) -> dict[str, float]:
    """The thresholds of a deployment with these limits, by the names of the metrics."""
    stack = cdk.Stack()
    made = Alarms(stack, "Alarms", deployment="yard", topic=interfaces.topic(sns.Topic(stack, "Topic")))
    attendant = Function(
        stack,
        "Attendant",
        package="attendant",
        description="Looks at jobs",
        environment=StateEnvironment(deployment="yard", table="yard-state"),
        layer=lambda_.LayerVersion.from_layer_version_arn(stack, "Layer", LAYER),
        timeout=cdk.Duration.minutes(1),
        log_retention_days=30,
        rights=[],
    )
    watch_checkpoints(made, "yard", limits, attendant)
    template = assertions.Template.from_stack(stack).to_json()
    return {one["MetricName"]: one["Threshold"] for one in resources(template, "AWS::CloudWatch::Alarm").values()}


def test_each_reads_what_the_attendant_writes(alarms: dict[str, dict[str, Any]]) -> None:
    read = {name: (one["Namespace"], one["MetricName"], one["Unit"]) for name, one in alarms.items()}
    assert read == {
        "checkpoints-old": (names.METRICS, metrics.CHECKPOINT_AGE, metrics.UNITS[metrics.CHECKPOINT_AGE]),
        "commits-slow": (names.METRICS, metrics.COMMIT_SHARE, metrics.UNITS[metrics.COMMIT_SHARE]),
    }
    for one in alarms.values():
        assert one["Dimensions"] == [{"Name": metrics.DEPLOYMENT, "Value": "trainyard"}]


def test_three_intervals_without_a_set_and_a_commit_of_one_are_told(alarms: dict[str, dict[str, Any]]) -> None:
    assert [alarms[name]["Threshold"] for name in NAMES] == [300, 100]
    for one in alarms.values():
        assert (one["EvaluationPeriods"], one["DatapointsToAlarm"], one["Period"]) == (1, 1, 300)


def test_a_deployment_in_which_nothing_trains_rings_neither(alarms: dict[str, dict[str, Any]]) -> None:
    assert {one["TreatMissingData"] for one in alarms.values()} == {"notBreaching"}


def test_the_settings_are_the_thresholds_of_the_alarms_and_of_the_attendants_lines(deployment: Synthesised) -> None:
    chosen = with_limits(CheckpointLimits(oldest=7.5, longest_commit=0.5))
    assert chosen == {metrics.CHECKPOINT_AGE: 750, metrics.COMMIT_SHARE: 50}
    told = AttendantEnvironment.read(variables(function(deployment.template("workflow"), "attendant")))
    assert told.checkpoints == CheckpointLimits(oldest=3.0, longest_commit=1.0)


@pytest.mark.parametrize(
    "wrong",
    [{"oldest": 1.9}, {"oldest": 0}, {"longest_commit": 0}, {"oldest": "3"}, {"oldest": 1e9}, {"newest": 3}],
    ids=str,
)
def test_a_threshold_that_every_job_would_cross_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadSettings, match="checkpoints"):
        Settings.parse({"checkpoints": wrong})


def test_the_attendant_writes_its_metrics_without_a_right_to(deployment: Synthesised) -> None:
    assert "cloudwatch:" not in str(only(deployment.template("workflow"), "AWS::IAM::Policy", "AttendantRole"))


def test_the_runbook_finds_the_job_in_the_log_of_the_attendant(deployment: Synthesised) -> None:
    output = deployment.template("workflow")["Outputs"]["AttendantLogGroup"]
    assert "AttendantLog" in output["Value"]["Ref"]
