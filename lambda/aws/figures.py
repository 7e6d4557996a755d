"""Every CloudWatch metrics call of the functions; they write theirs as lines of their logs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from aws.clients import client
from contract import names
from contract.metrics import DEPLOYMENT

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
