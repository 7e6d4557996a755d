"""CloudWatch's metrics: embedded metrics that functions print, and the few metrics that AWS's services write themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from moto.cloudwatch.models import cloudwatch_backends
from moto.sqs.models import sqs_backends

from localaws.runtime_api import Outcome
from localaws.services.lambda_functions import SILENT

if TYPE_CHECKING:
    from localaws.server import LocalAws
    from localaws.workers import Function

MINUTE_S = 60.0
"""How often SQS counts, in real-world seconds."""
MARK = '"_aws"'


def install(aws: LocalAws) -> None:
    aws.workers.listeners.append(lambda function, text: _embedded(aws, function, text))
    _functions(aws)
    aws.later(0, lambda: _count_messages(aws))


def put(aws: LocalAws, region: str, namespace: str, name: str, value: float, dimensions: Mapping[str, str]) -> None:
    """Stores one value, now."""
    datum = {
        "MetricName": name,
        "Value": value,
        "Timestamp": _now(),
        "Dimensions": [{"Name": key, "Value": one} for key, one in dimensions.items()],
    }
    cloudwatch_backends[aws.account][region].put_metric_data(namespace, [datum])


def _embedded(aws: LocalAws, function: Function, text: str) -> None:
    """Reads the Embedded Metric Format: one JSON object per line that says which of its members are metrics."""
    for line in text.splitlines():
        if MARK not in line:
            continue
        try:
            document = json.loads(line)
            directives = document["_aws"]["CloudWatchMetrics"]
        except (ValueError, TypeError, KeyError):
            continue  # CloudWatch Logs keeps the line and makes no metric of it
        for directive in directives:
            for keys in directive["Dimensions"]:
                dimensions = {key: str(document[key]) for key in keys}
                for metric in directive["Metrics"]:
                    values = document[metric["Name"]]
                    for value in values if isinstance(values, list) else [values]:
                        put(aws, function.region, directive["Namespace"], metric["Name"], float(value), dimensions)


def _functions(aws: LocalAws) -> None:
    """Writes AWS/Lambda: Invocations and Errors of each function, and of the alias by which it is invoked, at its end (AWS dates them back
    to its begin). A function under the fault that silences it counts as never invoked."""

    def counted(invoke: Any, deployed: Any, payload: bytes) -> Outcome:
        outcome: Outcome = invoke(deployed, payload)
        if not aws.stopping.is_set() and outcome is not SILENT:
            counts = [{"FunctionName": deployed.function_name}]
            if alias := getattr(deployed, "resource", ""):
                counts.append({**counts[0], "Resource": alias})
            for dimensions in counts:
                put(aws, deployed.region, "AWS/Lambda", "Invocations", 1, dimensions)
                put(aws, deployed.region, "AWS/Lambda", "Errors", float(outcome.failed), dimensions)
        return outcome

    aws.wrap(aws.workers, "invoke", counted)


def _count_messages(aws: LocalAws) -> None:
    """Writes AWS/SQS: the number of messages that can be received, once a minute."""
    while not aws.stopping.wait(MINUTE_S / aws.conditions.speed):
        for region, backend in list(sqs_backends[aws.account].items()):
            for queue in list(backend.queues.values()):
                visible = float(len(queue.messages))
                put(aws, region, "AWS/SQS", "ApproximateNumberOfMessagesVisible", visible, {"QueueName": queue.name})


def _now() -> datetime:
    """moto compares with times without a time zone."""
    return datetime.now(tz=timezone.utc).replace(tzinfo=None)
