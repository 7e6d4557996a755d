"""The alarm about jobs that have nearly used up their max_cost_usd.

It rests on a metric of the attendant, which code on a node can raise and cannot lower (`Alarms.on_most`).
"""

from __future__ import annotations

from aws_cdk import aws_cloudwatch as cloudwatch

from contract import metrics, names
from contract.money import NEAR_CAP_PERCENT
from stacks.parts.alarms import STEP, AlarmEvidence, Alarms
from stacks.parts.function import Function

NEAR = "the cost is near the cap"
"""What the attendant's log says of a job then."""


def watch_costs(alarms: Alarms, deployment: str, attendant: Function) -> None:
    """The metric is in percent of each job's own cap, so one alarm serves all jobs."""
    alarms.on_most(
        "cost-near-cap",
        cloudwatch.Metric(
            namespace=names.METRICS,
            metric_name=metrics.COST_SHARE,
            dimensions_map={metrics.DEPLOYMENT: deployment},
            statistic="Maximum",
            unit=cloudwatch.Unit.PERCENT,
            period=STEP,
        ),
        f"A job that runs has cost more than {NEAR_CAP_PERCENT:g} % of its max_cost_usd, at on-demand prices: it ends with a last "
        "checkpoint before the rest is used up. The attendant's log says which job.",
        most=NEAR_CAP_PERCENT,
        evidence=AlarmEvidence(function=attendant, lines=f'"{NEAR}"'),
    )
