"""EventBridge: moto matches patterns and reaches few targets at once; here events are late, lost or doubled, and schedules fire."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from moto.events.models import EventsBackend, events_backends
from moto.events.utils import EventTemplateParser
from moto.utilities.arns import parse_arn

if TYPE_CHECKING:
    from rehearsal.server import LocalAws

Event = dict[str, Any]
LOOK_S = 0.1
"""How often the clock looks for rules that are due."""
_UNITS = {"minute": 60.0, "hour": 3600.0, "day": 86400.0}


def install(aws: LocalAws) -> None:
    """Delivery of AWS's and custom events, and a clock for scheduled rules."""
    bus = Bus(aws)
    aws.on_emit(bus.emit)
    aws.patch(EventsBackend, "put_events", _with_delivery(EventsBackend.put_events, bus))
    aws.later(0, Clock(aws, bus).tick)


class Bus:
    """From an event to the targets of the rules that match it."""

    def __init__(self, aws: LocalAws) -> None:
        self._aws = aws

    def emit(
        self, source: str, detail_type: str, detail: Mapping[str, Any], resources: Sequence[str], region: str
    ) -> None:
        """Draws the event's fate; a copy that arrives does so later."""
        event = self.event(source, detail_type, detail, resources, region)
        self.send(event, "default")

    def event(
        self, source: str, detail_type: str, detail: Mapping[str, Any], resources: Sequence[str], region: str
    ) -> Event:
        return {
            "version": "0",
            "id": str(uuid.uuid4()),
            "detail-type": detail_type,
            "source": source,
            "account": self._aws.account,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "region": region,
            "resources": list(resources),
            "detail": dict(detail),
        }

    def send(self, event: Event, bus: str) -> None:
        conditions, chance = self._aws.conditions, self._aws.chance
        if conditions.now_under("events-dropped"):
            return
        late = conditions.fault("events-late")
        copies = 2 if chance.random() < conditions.events_doubled else 1
        for _ in range(copies):
            delay = conditions.scaled(conditions.event_delay_s, chance)
            delay += late.seconds("seconds") / conditions.speed if late else 0.0
            if chance.random() >= conditions.events_lost:
                self._aws.later(delay, lambda: self._deliver(event, bus))

    def _deliver(self, event: Event, bus: str) -> None:
        for rule in _rules(self._aws.account, event["region"], bus):
            if rule.event_pattern.get_pattern() and rule.event_pattern.matches_event(event):
                self.fire(rule, event)

    def fire(self, rule: Any, event: Event) -> None:
        """Hands the event to every target of a rule."""
        for target in list(rule.targets):
            self._to(target, json.dumps(_input(target, event)))

    def _to(self, target: Mapping[str, Any], body: str) -> None:
        arn = parse_arn(target["Arn"])
        if arn.service == "lambda":
            from moto.awslambda_simple.models import lambda_simple_backends

            if function := lambda_simple_backends[arn.account][arn.region].get_function_by_arn(target["Arn"]):
                self._aws.workers.invoke_later(function, body.encode())
        elif arn.service == "states":
            from moto.stepfunctions.parser.models import stepfunctions_parser_backends

            stepfunctions_parser_backends[arn.account][arn.region].start_execution(target["Arn"], None, body)
        elif arn.service == "sqs":
            from moto.sqs.models import sqs_backends

            group = target.get("SqsParameters", {}).get("MessageGroupId")
            sqs_backends[arn.account][arn.region].send_message(
                queue_name=arn.resource_id, message_body=body, group_id=group
            )
        elif arn.service == "sns":
            from moto.sns.models import sns_backends

            sns_backends[arn.account][arn.region].publish(arn=target["Arn"], message=body)
        elif arn.service == "logs":
            self._to_log_group(arn.region, arn.resource_id, body)
        else:
            raise NotImplementedError(f"a rule's target {target['Arn']}: the rehearsal delivers to no {arn.service}")

    def _to_log_group(self, region: str, group: str, body: str) -> None:
        from moto.logs.models import logs_backends

        backend, stream = logs_backends[self._aws.account][region], str(uuid.uuid4())
        backend.create_log_stream(group, stream)
        backend.put_log_events(group, stream, [{"timestamp": int(time.time() * 1000), "message": body}])


class Clock:
    """Scheduled rules: every rate/speed seconds from the rule's creation on, each time a little late. No event, so never lost."""

    def __init__(self, aws: LocalAws, bus: Bus) -> None:
        self._aws, self._bus = aws, bus
        self._due: dict[str, float] = {}

    def tick(self) -> None:
        while not self._aws.stopping.wait(LOOK_S):
            for rule in list(_scheduled(self._aws.account)):
                self._look(rule)

    def _look(self, rule: Any) -> None:
        now, period = time.monotonic(), period_s(rule.scheduled_expression) / self._aws.conditions.speed
        due = self._due.setdefault(rule.arn, now + period)
        if now < due:
            return
        self._due[rule.arn] = max(due + period, now)
        event = self._bus.event("aws.events", "Scheduled Event", {}, [rule.arn], rule.region_name)
        conditions, late = self._aws.conditions, self._aws.conditions.fault("clock-late")
        span = (late.seconds("seconds"),) * 2 if late else conditions.clock_delay_s
        delay = conditions.scaled(span, self._aws.chance)
        self._aws.later(delay, lambda: self._bus.fire(rule, event))


def period_s(expression: str) -> float:
    """Real-world seconds between two firings. Of a cron expression, only how often it fires is kept: clocks run faster here."""
    if rate := re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", expression):
        return int(rate[1]) * _UNITS[rate[2]]
    minute, hour, *_ = expression.removeprefix("cron(").split()
    for part, unit in ((minute, "minute"), (hour, "hour")):
        if part == "*":
            return _UNITS[unit]
        if "/" in part:
            return int(part.split("/")[1]) * _UNITS[unit]
        if "," in part:
            return _UNITS["hour" if unit == "minute" else "day"] / len(part.split(","))
    return _UNITS["day"] if hour.isdigit() else _UNITS["hour"]


def _rules(account: str, region: str, bus: str) -> Iterator[Any]:
    for one in list(events_backends[account][region].event_buses.values()):
        if one.name == bus:
            yield from [rule for rule in list(one.rules.values()) if rule.state == "ENABLED"]


def _scheduled(account: str) -> Iterator[Any]:
    for region in list(events_backends[account]):
        yield from (rule for rule in _rules(account, region, "default") if rule.scheduled_expression)


def _input(target: Mapping[str, Any], event: Event) -> Any:
    """What the target receives: the event, a part of it, a constant, or a transformation."""
    if "Input" in target:
        return json.loads(target["Input"])
    if path := target.get("InputPath"):
        part: Any = event
        for name in path.removeprefix("$").strip(".").split("."):
            part = part[name] if name else part
        return part
    if transformer := target.get("InputTransformer"):
        whole = {**event, "ingestion-time": event["time"]}
        return EventTemplateParser.parse(transformer["InputTemplate"], transformer.get("InputPathsMap", {}), whole)
    return event


def _with_delivery(original: Callable[..., Any], bus: Bus) -> Callable[..., Any]:
    """PutEvents keeps moto's checks of its entries; delivery is ours."""

    def put(self: Any, events: list[dict[str, Any]]) -> Any:
        buses, self.event_buses = self.event_buses, {name: _Silent() for name in self.event_buses}
        try:
            entries = original(self, events)
        finally:
            self.event_buses = buses
        for entry, answer in zip(events, entries, strict=True):
            if "EventId" in answer:
                detail = json.loads(entry["Detail"])
                event = bus.event(
                    entry["Source"], entry["DetailType"], detail, entry.get("Resources", []), self.region_name
                )
                bus.send({**event, "id": answer["EventId"]}, self._normalize_event_bus_arn(entry.get("EventBusName")))
        return entries

    return put


class _Silent:
    """A bus without rules."""

    rules: Mapping[str, Any] = {}
