"""The widgets of the dashboard: what functions, machines and AWS's services write as metrics, in rows of 24 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from contract import metrics, names
from contract.environments import CheckpointLimits
from contract.money import NEAR_CAP_PERCENT

WIDTH, HALF = 24, 12
MINUTE, STEP = cdk.Duration.minutes(1), cdk.Duration.minutes(5)
ENDS = {
    "ExecutionsSucceeded": "succeeded",
    "ExecutionsFailed": "failed",
    "ExecutionsAborted": "stopped",
    "ExecutionsTimedOut": "timed out",
}
"""Metrics of Step Functions, and what they are called here."""
REAPED = {
    metrics.ENDED: "ended",
    metrics.WOULD_END: "would be ended (report only)",
    metrics.TOLD: "kept, a person should look",
    metrics.REFUSED: "AWS refused to end",
    metrics.LIMITED: "left for the next pass",
    metrics.FAILED_REGIONS: "regions that could not be read",
}
LETTERS = "Letters"
"""What queues of dead letters are called, behind the name of their stack."""


def show_text(markdown: str, *, height: int) -> cloudwatch.IWidget:
    return cloudwatch.TextWidget(markdown=markdown, width=WIDTH, height=height)


def show_alarms(scope: Construct, arns: Sequence[str]) -> cloudwatch.IWidget:
    """Shows the state of each alarm, those that ring first. By their ARNs: a reference would keep their stacks from changing."""
    alarms = [cloudwatch.Alarm.from_alarm_arn(scope, f"Alarm{number}", arn) for number, arn in enumerate(arns)]
    return cloudwatch.AlarmStatusWidget(
        title="Alarms",
        alarms=alarms,
        width=WIDTH,
        height=2 + len(arns) // 6,
        sort_by=cloudwatch.AlarmStatusWidgetSortBy.STATE_UPDATED_TIMESTAMP,
    )


def show_money(deployment: str, region: str) -> list[cloudwatch.IWidget]:
    """Shows what jobs cost now, and how much of their caps they have used."""
    hourly = _ours(metrics.RUNNING_USD, deployment, "Sum", MINUTE, "dollars an hour, at most")
    share = _ours(metrics.COST_SHARE, deployment, "Maximum", STEP, "the job nearest to its cap")
    near = cloudwatch.HorizontalAnnotation(value=NEAR_CAP_PERCENT, label="cost-near-cap")
    return [
        cloudwatch.GraphWidget(title="Dollars an hour", left=[hourly], region=region, width=HALF, left_y_axis=ZERO),
        cloudwatch.GraphWidget(
            title="Cost in percent of max_cost_usd",
            left=[share],
            left_annotations=[near],
            region=region,
            width=HALF,
            left_y_axis=ZERO,
        ),
    ]


def show_checkpoints(deployment: str, region: str, limits: CheckpointLimits) -> list[cloudwatch.IWidget]:
    """Shows what a loss of nodes would repeat, and what saving takes."""
    age = _ours(metrics.CHECKPOINT_AGE, deployment, "Maximum", STEP, "the oldest newest checkpoint")
    share = _ours(metrics.COMMIT_SHARE, deployment, "Maximum", STEP, "the longest commit")
    lines = [
        cloudwatch.HorizontalAnnotation(value=100 * limits.oldest, label="checkpoints-old"),
        cloudwatch.HorizontalAnnotation(value=100 * limits.longest_commit, label="commits-slow"),
    ]
    return [
        cloudwatch.GraphWidget(
            title="Checkpoints in percent of checkpoint_minutes",
            left=[age, share],
            left_annotations=lines,
            region=region,
            width=HALF,
            left_y_axis=ZERO,
        )
    ]


def show_executions(machines: Mapping[str, str], region: str) -> list[cloudwatch.IWidget]:
    """Shows how executions of each machine end; `machines` are ARNs by what they are called here."""
    return [
        cloudwatch.GraphWidget(
            title=f"Executions: {name}",
            left=[
                cloudwatch.Metric(
                    namespace="AWS/States",
                    metric_name=metric,
                    dimensions_map={"StateMachineArn": arn},
                    statistic="Sum",
                    period=STEP,
                    label=label,
                )
                for metric, label in {"ExecutionsStarted": "started", **ENDS}.items()
            ],
            region=region,
            width=WIDTH // len(machines),
            left_y_axis=ZERO,
        )
        for name, arn in machines.items()
    ]


def show_reaper(deployment: str, region: str) -> list[cloudwatch.IWidget]:
    """Shows that the reaper works, and what it ends."""
    seen = _ours(metrics.SEEN, deployment, "Maximum", STEP, "seen")
    passes = _ours(metrics.PASSES, deployment, "Sum", STEP, "whole passes")
    reaped = [_ours(name, deployment, "Sum", STEP, label) for name, label in REAPED.items()]
    return [
        cloudwatch.GraphWidget(
            title="Reaper: passes, and what runs",
            left=[seen],
            right=[passes],
            region=region,
            width=HALF,
            left_y_axis=ZERO,
            right_y_axis=ZERO,
        ),
        cloudwatch.GraphWidget(
            title="Reaper: what it did", left=reaped, region=region, width=HALF, stacked=True, left_y_axis=ZERO
        ),
    ]


def show_functions(stacks: Sequence[str], region: str) -> list[cloudwatch.IWidget]:
    """Shows errors and throttles of every function, found by the names of the stacks, with which theirs begin."""
    return [
        _found(title, "AWS/Lambda", "FunctionName", metric, {stack: stack for stack in stacks}, region, "Sum")
        for title, metric in (("Errors of functions", "Errors"), ("Throttles of functions", "Throttles"))
    ]


def show_letters(stacks: Sequence[str], region: str) -> list[cloudwatch.IWidget]:
    """Shows how many messages became letters, which wait for a person."""
    metric = "ApproximateNumberOfMessagesVisible"
    terms = {stack: f"{stack} {LETTERS}" for stack in stacks}
    return [_found("Letters that wait", "AWS/SQS", "QueueName", metric, terms, region, "Maximum")]


ZERO = cloudwatch.YAxisProps(min=0, show_units=False)


def _ours(name: str, deployment: str, statistic: str, period: cdk.Duration, label: str) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=names.METRICS,
        metric_name=name,
        dimensions_map={metrics.DEPLOYMENT: deployment},
        statistic=statistic,
        period=period,
        label=label,
    )


def _found(
    title: str, namespace: str, dimension: str, metric: str, terms: Mapping[str, str], region: str, statistic: str
) -> cloudwatch.IWidget:
    """Searches metrics by words of their dimension, a search for each of `terms`: what they count has names that CloudFormation makes, and
    what is new appears by itself."""
    searches = [
        cloudwatch.SearchExpression(
            expression=(
                f'SEARCH(\'{{{namespace},{dimension}}} MetricName="{metric}" '
                + " ".join(f"{dimension}={word}" for word in words.split())
                + f"', '{statistic}', {STEP.to_seconds():g})"
            ),
            label="",
            search_region=region,
            period=STEP,
        )
        for words in terms.values()
    ]
    return cloudwatch.GraphWidget(title=title, left=searches, region=region, width=HALF, left_y_axis=ZERO)
