"""Makes alarms that reach people: each says what it means, what to do, and where the runbook says more.

CloudWatch takes metrics out of any log line into any namespace but AWS's own, so code on a node can add values to whatever we count. So
alarms rest on metrics of AWS's own services, or on the maximum of one of ours (`on_most`), which added values can only raise.
"""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from constructs import Construct

from contract.links import MORE, Console, of_runbook
from stacks.forms import partition
from stacks.parts import interfaces
from stacks.parts.function import Function
from stacks.parts.outputs import shown
from stacks.parts.queue import DeadLetters

STEP = cdk.Duration.minutes(5)
"""The period of every count; equal to the time between two looks of the reaper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmEvidence:
    """Where a person looks when an alarm begins, beside the runbook: its message names it."""

    function: Function | None = None
    """Whose log has the reason; its name becomes an output too."""
    lines: str = ""
    """Filter pattern of the lines about it in that log, to which a link leads."""
    letters: DeadLetters | None = None


NOWHERE = AlarmEvidence()


class Alarms(Construct):
    """Alarms named `<deployment>-<name>`; each tells the topic when it begins and when it ends. `runbook` is the address of the page, empty
    for the file."""

    def __init__(self, scope: Construct, name: str, *, deployment: str, topic: sns.ITopic, runbook: str = "") -> None:
        super().__init__(scope, name)
        self._deployment, self._tell, self._runbook = deployment, actions.SnsAction(topic), runbook

    def on_silence(
        self,
        name: str,
        function: lambda_.IFunction,
        description: str,
        *,
        minutes: int,
        evidence: AlarmEvidence = NOWHERE,
    ) -> None:
        """Alarms after so many minutes in a row in which no invocation of the function, or by its alias, ended without an error.

        The last one falls into some minute, that of the invocation's begin; the empty minutes come after it, and CloudWatch looks every
        minute. So the alarm begins at most `minutes` + 2 minutes after the last one. A number may reach CloudWatch two minutes late, and
        its minute counts as empty until then. Minutes are counted because one long period might begin at any time, and take twice its
        length until it is empty. Without FILL an alarm looks back for older numbers before it counts as silent.
        """
        minute = cdk.Duration.minutes(1)
        beats = cloudwatch.MathExpression(
            expression="FILL(invocations, 0) - FILL(errors, 0)",
            using_metrics={
                "invocations": function.metric_invocations(period=minute, statistic="Sum"),
                "errors": function.metric_errors(period=minute, statistic="Sum"),
            },
            label="Invocations without an error",
            period=minute,
        )
        self._alarm(
            name,
            beats,
            self._describe(name, description, evidence),
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            evaluation_periods=minutes,
            datapoints_to_alarm=minutes,
            # FILL cannot fill a metric that never had a value; missing data then counts as silence.
            treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
        )

    def on_any(
        self,
        name: str,
        metric: cloudwatch.Metric,
        description: str,
        *,
        steps: int = 1,
        of: int | None = None,
        evidence: AlarmEvidence = NOWHERE,
    ) -> None:
        """Alarms when `steps` of the last `of` steps of five minutes count one or more; `of` is `steps` where it is not given."""
        self._alarm(
            name,
            metric.with_(period=STEP),
            self._describe(name, description, evidence),
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=of or steps,
            datapoints_to_alarm=steps,
            # A function that did not run has no errors to count; the alarm on silence is the one that reports this.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )

    def on_most(
        self, name: str, metric: cloudwatch.Metric, description: str, *, most: float, evidence: AlarmEvidence = NOWHERE
    ) -> None:
        """Alarms when the maximum of five minutes is above `most`. No value that is added lowers a maximum; one of another unit is not
        read, so the metric has to have one. No value is no alarm: nothing is there to be measured."""
        if metric.statistic != "Maximum" or metric.unit is None:
            raise ValueError(f"{name}: a metric that others can write needs the statistic Maximum and a unit")
        self._alarm(
            name,
            metric.with_(period=STEP),
            self._describe(name, description, evidence),
            threshold=most,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            evaluation_periods=1,
            datapoints_to_alarm=1,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )

    def _describe(self, name: str, description: str, evidence: AlarmEvidence) -> str:
        """Returns what the message says: what happened, and where to look."""
        words = [description]
        if (function := evidence.function) is not None:
            stack, group, output = cdk.Stack.of(self), function.log_group.log_group_name, f"{function.node.id}LogGroup"
            words.append(f"Log: {group} (output {output} of {stack.stack_name}).")
            if evidence.lines:
                words.append(
                    f"Its lines: {Console(partition(stack.region), stack.region).lines(group, evidence.lines)}"
                )
            if stack.node.try_find_child(output) is None:
                shown(stack, output, group, f"The log of {function.node.id}")
        if evidence.letters is not None:
            words.append(f"Letters: {evidence.letters.queue_url}")
        # A full stop would become a part of the address.
        words.append(f"{MORE}{of_runbook(self._runbook, name)}{'' if self._runbook else '.'}")
        return " ".join(words)

    def _alarm(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        description: str,
        *,
        threshold: float = 1,
        comparison_operator: cloudwatch.ComparisonOperator,
        evaluation_periods: int,
        datapoints_to_alarm: int,
        treat_missing_data: cloudwatch.TreatMissingData,
    ) -> None:
        alarm = cloudwatch.Alarm(
            self,
            "".join(word.capitalize() for word in name.split("-")),
            alarm_name=f"{self._deployment}-{name}",
            alarm_description=description,
            metric=metric,
            threshold=threshold,
            comparison_operator=comparison_operator,
            evaluation_periods=evaluation_periods,
            datapoints_to_alarm=datapoints_to_alarm,
            treat_missing_data=treat_missing_data,
        )
        alarm.add_alarm_action(interfaces.action(self._tell))
        alarm.add_ok_action(interfaces.action(self._tell))
