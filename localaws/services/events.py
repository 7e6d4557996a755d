"""EventBridge: moto matches patterns and reaches few targets at once; here events are late, lost or doubled, and schedules run."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from moto.events.models import EventsBackend, events_backends
from moto.events.utils import EventTemplateParser
from moto.utilities.arns import parse_arn

from localaws.conditions import EXECUTION
from localaws.recorder import Answer
from localaws.services.targets import RULES, Targets

if TYPE_CHECKING:
    from localaws.recorder import Call, Environ
    from localaws.server import LocalAws

Event = dict[str, Any]
LOOK_S = 0.1
"""How often the clock checks for rules that are due."""
OF_AWS = "aws."
"""How the sources of AWS's own events begin; nobody else may send such an event."""
DURABLE = frozenset({"aws.s3"})
"""Sources whose events arrive at least once: EventBridge's reference says of each service whether its delivery is durable or a best
effort. What would be lost of others is late here: the service tries again."""
FORGED = {"ErrorCode": "NotAuthorizedForSourceException", "ErrorMessage": "Not authorized for the source."}
TRIED_AGAIN = 10
"""How many times the usual delay until an event arrives whose first try failed. A guess: services try for a day."""
_UNITS = {"minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0}


def install(aws: LocalAws) -> None:
    """Installs delivery of AWS's and custom events, and a clock for scheduled rules."""
    bus = Bus(aws)
    aws.on_emit(bus.emit)
    aws.wrap(EventsBackend, "put_events", bus.put_events)
    aws.recorder.interceptors.append(accept_deliveries)
    aws.later(0, Clock(aws, bus).tick)


def accept_deliveries(call: Call, _: Environ) -> Answer | None:
    """Accepts what EventBridge itself sends to a bus with a rule's role, so that the call is on record; `Bus` delivers the event."""
    own = call.name == "events:PutEvents" and call.session == RULES
    return Answer(200, b'{"FailedEntryCount": 0, "Entries": []}') if own else None


class Bus:
    """Delivers an event to the targets of the rules that match it."""

    def __init__(self, aws: LocalAws) -> None:
        self._aws, self._targets = aws, Targets(aws)

    def emit(
        self, source: str, detail_type: str, detail: Mapping[str, Any], resources: Sequence[str], region: str
    ) -> None:
        """Draws whether the event is lost or doubled; each copy that arrives is late."""
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

    def put_events(self, original: Any, backend: Any, events: list[dict[str, Any]]) -> Any:
        """Keeps moto's checks of PutEvents' entries, refuses forged ones, and delivers the events itself."""
        buses, backend.event_buses = backend.event_buses, {name: _Silent() for name in backend.event_buses}
        try:
            entries = original(backend, events)
        finally:
            backend.event_buses = buses
        for place, (entry, answer) in enumerate(zip(events, entries, strict=True)):
            if "EventId" not in answer:
                continue
            if entry["Source"].startswith(OF_AWS):
                entries[place] = dict(FORGED)
            else:
                what, detail = (entry["Source"], entry["DetailType"]), json.loads(entry["Detail"])
                event = self.event(*what, detail, entry.get("Resources", []), backend.region_name)
                bus = backend._normalize_event_bus_arn(entry.get("EventBusName"))
                self.send({**event, "id": answer["EventId"]}, bus)
        return entries

    def send(self, event: Event, bus: str, region: str = "") -> None:
        """Sends to a bus, of the event's own region unless one is named."""
        conditions, chance = self._aws.conditions, self._aws.chance
        copies = 2 if chance.random() < conditions.events_doubled else 1
        if conditions.now_under("events-dropped") or self._lost(event):
            copies = 0
        # A rule that sends to another region's bus tries again itself.
        durable = bool(region) or event["source"] in DURABLE
        fates = [chance.random() >= conditions.events_lost for _ in range(copies)]
        late = conditions.fault("events-late", {})
        for arrives in fates:
            if arrives or durable:
                delay = conditions.scaled(conditions.event_delay_s, chance) * (1 if arrives else TRIED_AGAIN)
                delay += late.seconds("seconds") / conditions.speed if late else 0.0
                self._aws.later(delay, lambda: self._deliver(event, bus, region or event["region"]))
        if not any(arrives or durable for arrives in fates):
            self._aws.lost_events.append(event)

    def _lost(self, event: Event) -> bool:
        """Whether the fault `cleanup-event-lost` applies to the execution whose status this is."""
        marks = {EXECUTION: str(event["detail"].get("name", ""))}
        return event["source"] == "aws.states" and self._aws.conditions.fault("cleanup-event-lost", marks) is not None

    def _deliver(self, event: Event, bus: str, region: str) -> None:
        for rule in _rules(self._aws.account, region, bus):
            if rule.event_pattern.get_pattern() and rule.event_pattern.matches_event(event):
                self.fire(rule, event)

    def fire(self, rule: Any, event: Event) -> None:
        """Passes the event to every target of a rule. One that goes to another bus keeps the region in which it happened."""
        for target in list(rule.targets):
            if (other := parse_arn(target["Arn"])).resource_type != "event-bus":
                self._targets.by_policy(target, json.dumps(_input(target, event)), rule.arn)
            elif self._targets.to_bus(target, event, rule.arn):
                self.send(event, other.resource_id, other.region)


class Clock:
    """Fires scheduled rules every rate/speed seconds from the rule's creation on, a little late. These are not events, so never lost."""

    def __init__(self, aws: LocalAws, bus: Bus) -> None:
        self._aws, self._bus = aws, bus

    def tick(self) -> None:
        each_period(
            self._aws,
            lambda: {rule.arn: (rule.scheduled_expression, rule) for rule in _scheduled(self._aws)},
            self._fire,
        )

    def _fire(self, rule: Any) -> None:
        event = self._bus.event("aws.events", "Scheduled Event", {}, [rule.arn], rule.region_name)
        late = self._aws.conditions.fault("clock-late", {})
        delay_s = late.seconds("seconds") / self._aws.conditions.speed if late else lateness_s(self._aws)
        self._aws.later(delay_s, lambda: self._bus.fire(rule, event))


def lateness_s(aws: LocalAws) -> float:
    """Draws how late a schedule fires this time."""
    return aws.conditions.scaled(aws.conditions.clock_delay_s, aws.chance)


Scheduled = Callable[[], Mapping[str, tuple[str, Any]]]
"""The current schedules: expression and thing by ARN."""


def each_period(aws: LocalAws, scheduled: Scheduled, fire: Callable[[Any], None]) -> None:
    """Calls `fire` for each thing whenever its period is over, first one period after it appeared or got another
    expression, until the end."""
    due: dict[tuple[str, str], float] = {}
    while not aws.stopping.wait(LOOK_S):
        known = {(arn, expression): thing for arn, (expression, thing) in scheduled().items()}
        due = {name: at for name, at in due.items() if name in known}
        for name, thing in known.items():
            now, period = time.monotonic(), period_s(name[1]) / aws.conditions.speed
            at = due.setdefault(name, now + period)
            if now >= at:
                due[name] = max(at + period, now)
                fire(thing)


@lru_cache(maxsize=256)
def period_s(expression: str) -> float:
    """Returns the real-world seconds between two firings. Of a cron expression only the frequency is kept: clocks run faster here."""
    if rate := re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", expression):
        return int(rate[1]) * _UNITS[rate[2]]
    minute, hour, _, _, weekday, _ = expression.removeprefix("cron(").removesuffix(")").split()
    for part, unit in ((minute, "minute"), (hour, "hour")):
        if part == "*":
            return _UNITS[unit]
        if "/" in part:
            return int(part.split("/")[1]) * _UNITS[unit]
        if "," in part:
            return _UNITS["hour" if unit == "minute" else "day"] / len(part.split(","))
    if not hour.isdigit():
        return _UNITS["hour"]
    return _UNITS["week"] / len(weekday.split(",")) if weekday not in "*?" else _UNITS["day"]


def _rules(account: str, region: str, bus: str) -> Iterator[Any]:
    for one in list(events_backends[account][region].event_buses.values()):
        if one.name == bus:
            yield from [rule for rule in list(one.rules.values()) if rule.state == "ENABLED"]


def _scheduled(aws: LocalAws) -> Iterator[Any]:
    for region in list(events_backends[aws.account]):
        yield from (rule for rule in _rules(aws.account, region, "default") if rule.scheduled_expression)


def _input(target: Mapping[str, Any], event: Event) -> Any:
    """Returns what the target receives: the event, a part of it, a constant, or a transformation."""
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


class _Silent:
    """A bus without rules."""

    rules: Mapping[str, Any] = {}
