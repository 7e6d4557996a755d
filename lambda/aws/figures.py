"""Every CloudWatch metrics call of the functions, which write theirs as lines of their logs: that costs no call and needs no right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from aws.clients import client
from contract import names
from contract.metrics import DEPLOYMENT, UNITS

HOUR_S = 3600


def sums(deployment: str, metrics: Sequence[str], *, days: int, until: float) -> dict[str, float]:
    """Of each metric of the deployment, all that was counted in the last `days` whole days; 0 where there was nothing.

    Raises ClientError or BotoCoreError.
    """
    cloudwatch: Any = client("cloudwatch")
    end = datetime.fromtimestamp(until - until % HOUR_S, timezone.utc)
    queries = [
        {
            "Id": f"m{number}",
            "MetricStat": {
                "Metric": {
                    "Namespace": names.METRICS,
                    "MetricName": metric,
                    "Dimensions": [{"Name": DEPLOYMENT, "Value": deployment}],
                },
                "Period": HOUR_S,
                "Stat": "Sum",
            },
        }
        for number, metric in enumerate(metrics)
    ]
    pages = cloudwatch.get_paginator("get_metric_data").paginate(
        MetricDataQueries=queries, StartTime=end - timedelta(days=days), EndTime=end
    )
    found = dict.fromkeys(metrics, 0.0)
    for result in (one for page in pages for one in page["MetricDataResults"]):
        found[metrics[int(result["Id"][1:])]] += sum(result["Values"])
    return found


def count(deployment: str, numbers: Mapping[str, float]) -> None:
    """Writes one value of each metric, by its name, in one line of the log; no line where there is none."""
    if not numbers:
        return
    line = EphemeralMetrics(namespace=names.METRICS)
    line.add_dimension(DEPLOYMENT, deployment)
    for name, number in numbers.items():
        line.add_metric(name, MetricUnit(UNITS.get(name, MetricUnit.Count.value)), number)
    line.flush_metrics()
