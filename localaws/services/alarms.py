"""CloudWatch alarms: moto stores them and never evaluates them; here each is evaluated once a minute and tells its topic of a change.

A minute and a period are divided by the rehearsal's speed. One thing differs from a real account: an embedded metric is
available at once here, and up to a minute later there.
"""

from __future__ import annotations

import json
import traceback
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from moto.cloudwatch.models import CloudWatchBackend, cloudwatch_backends
from moto.kms.models import kms_backends
from moto.sns.models import sns_backends
from moto.utilities.arns import parse_arn

from localaws.services.metric_math import EXTRA, NO_DATA, OPERATORS, STATISTICS, Values, evaluate, verdict
from localaws.services.permits import lets

if TYPE_CHECKING:
    from localaws.server import LocalAws

MINUTE_S = 60.0
SERVICE = "cloudwatch.amazonaws.com"
FAR = "Threshold Crossed: "
MISSING = "missing"
"""TreatMissingData where an alarm sets none."""
Metric = tuple[str, str, frozenset[tuple[str, str]]]
"""Namespace, name, and the dimensions as pairs of name and value."""
Points = dict[Metric, list[tuple[datetime, float]]]
"""Moments, UTC without a zone as moto keeps them, and values of each metric."""


def install(aws: LocalAws) -> None:
    aws.wrap(CloudWatchBackend, "put_metric_alarm", _put_unchecked)
    aws.later(0, lambda: _watch(aws))


def _put_unchecked(original: Any, backend: Any, name: str, *given: Any, **named: Any) -> Any:
    """Gives a new alarm the state of one without data, where moto says OK; an alarm that is put again keeps its state."""
    before = backend.alarms.get(name)
    alarm = original(backend, name, *given, **named)
    alarm.state_value = before.state_value if before else NO_DATA
    return alarm


def _watch(aws: LocalAws) -> None:
    while not aws.stopping.wait(MINUTE_S / aws.conditions.speed):
        for backend in list(cloudwatch_backends[aws.account].values()):
            alarms = list(backend.alarms.values())
            points = _gather(backend) if alarms else {}
            for alarm in alarms:
                try:
                    _evaluate(aws, points, alarm)
                except Exception:  # one alarm that cannot be evaluated must not silence the others
                    traceback.print_exc()


def _gather(backend: Any) -> Points:
    """Reads the points of all metrics once: there are more of them than each alarm should go through by itself."""
    points: Points = defaultdict(list)
    for datum in list(backend.metric_data):
        metric = _identify(datum.namespace, datum.name, datum.dimensions)
        points[metric].append((datum.timestamp.replace(tzinfo=None), float(datum.value)))
    return points


def _identify(namespace: str, name: str, dimensions: Iterable[Any]) -> Metric:
    return namespace, name, frozenset((one.name, one.value) for one in dimensions)


def _evaluate(aws: LocalAws, points: Points, alarm: Any) -> None:
    values = _values(points, alarm, aws.conditions.speed)
    threshold, compare = float(alarm.threshold), OPERATORS[alarm.comparison_operator]
    periods = int(alarm.evaluation_periods)
    state = verdict(
        values,
        periods=periods,
        to_alarm=int(alarm.datapoints_to_alarm or periods),
        breaches=lambda value: compare(value, threshold),
        missing=alarm.treat_missing_data or MISSING,
        state=alarm.state_value,
    )
    if state == alarm.state_value:
        return
    before, seen = alarm.state_value, ", ".join("none" if one is None else f"{one:g}" for one in values[-periods:])
    reason = f"{FAR}the last {periods} datapoint(s) [{seen}], {alarm.comparison_operator} {threshold:g}."
    alarm.update_state(reason, json.dumps({"recentDatapoints": list(values[-periods:])}), state)
    if alarm.actions_enabled:
        actions = {"ALARM": alarm.alarm_actions, "OK": alarm.ok_actions}.get(state, alarm.insufficient_data_actions)
        for action in actions:
            _tell(aws, action, alarm, before)


def _values(points: Points, alarm: Any, speed: float) -> Values:
    """Returns what the alarm compares, one value per period, the last period ending now."""
    count = int(alarm.evaluation_periods) + EXTRA
    if not alarm.metric_data_queries:
        metric = _identify(alarm.namespace, alarm.metric_name, alarm.dimensions)
        return _series(points.get(metric, ()), alarm.statistic, float(alarm.period) / speed, count)
    known: dict[str, Values] = {}
    for query in alarm.metric_data_queries:
        if stat := query.metric_stat:
            metric = _identify(stat.metric.namespace, stat.metric.metric_name, stat.metric.dimensions)
            known[query.id] = _series(points.get(metric, ()), stat.stat, float(stat.period) / speed, count)
    for query in alarm.metric_data_queries:
        if query.expression:
            known[query.id] = evaluate(query.expression, known)
    (told,) = [query.id for query in alarm.metric_data_queries if str(query.return_data).lower() != "false"]
    return known[told]


def _series(points: Sequence[tuple[datetime, float]], statistic: str, period_s: float, count: int) -> Values:
    now = datetime.now(tz=timezone.utc).replace(tzinfo=None)
    values: list[list[float]] = [[] for _ in range(count)]
    for moment, value in points:
        age_s = (now - moment).total_seconds()
        if 0 <= age_s < period_s * count:
            values[-1 - int(age_s / period_s)].append(value)
    return [STATISTICS[statistic](some) if some else None for some in values]


def _tell(aws: LocalAws, action: str, alarm: Any, before: str) -> None:
    """Tells an SNS topic of the change, if the topic lets CloudWatch publish; otherwise the message is dropped silently, as in AWS."""
    where = parse_arn(action)
    if where.service != "sns":
        raise NotImplementedError(f"an alarm's action {action}: the rehearsal knows topics only")
    topic = sns_backends[where.account][where.region].topics.get(action)
    if topic is None or not lets(topic.policy, SERVICE, "sns:Publish") or not _decrypts(aws, topic, where.region):
        return
    subject = f'{alarm.state_value}: "{alarm.name}" in {where.region}'[:100]
    sns_backends[where.account][where.region].publish(
        json.dumps(_message(aws, alarm, before)), arn=action, subject=subject
    )


def _decrypts(aws: LocalAws, topic: Any, region: str) -> bool:
    """Whether the topic's key, if it has one, lets CloudWatch use it; AWS's own key for SNS never does."""
    if not topic.kms_master_key_id:
        return True
    key = kms_backends[aws.account][region].keys.get(topic.kms_master_key_id.rpartition("/")[2])
    return key is not None and lets(key.policy, SERVICE, "kms:Decrypt", "kms:GenerateDataKey")


def _message(aws: LocalAws, alarm: Any, before: str) -> dict[str, Any]:
    return {
        "AlarmName": alarm.name,
        "AlarmDescription": alarm.description,
        "AWSAccountId": aws.account,
        "AlarmConfigurationUpdatedTimestamp": _moment(alarm.configuration_updated_timestamp),
        "NewStateValue": alarm.state_value,
        "NewStateReason": alarm.state_reason,
        "StateChangeTime": _moment(alarm.state_updated_timestamp),
        "Region": alarm.region_name,
        "AlarmArn": alarm.alarm_arn,
        "OldStateValue": before,
        "OKActions": alarm.ok_actions,
        "AlarmActions": alarm.alarm_actions,
        "InsufficientDataActions": alarm.insufficient_data_actions,
        "Trigger": {
            "Period": alarm.period,
            "EvaluationPeriods": alarm.evaluation_periods,
            "ComparisonOperator": alarm.comparison_operator,
            "Threshold": alarm.threshold,
            "TreatMissingData": alarm.treat_missing_data or MISSING,
        },
    }


def _moment(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000+0000")
