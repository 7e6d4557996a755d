"""EventBridge: events that come late, twice, never, and in any order; and its one-minute clock."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from tests.fakes.clock import Clock

Event = dict[str, Any]
Weather = Callable[[Event], Iterable[float]]
"""An event to the delays, in seconds, after which it is delivered: none when it is lost, two when it is doubled."""


def fair(event: Event) -> Iterable[float]:
    """The usual: once, within a second or two."""
    return (0.5 if event["source"] == "aws.ec2" else 1.5,)


@dataclass
class Events:
    """At least once, unordered, usually within seconds, best effort. Rules see events of their own region alone."""

    clock: Clock
    region: str
    weather: Weather = fair
    targets: list[tuple[Callable[[Event], bool], Callable[[Event], None]]] = field(default_factory=list)
    """A rule and what it starts."""
    _number: itertools.count[int] = field(default_factory=itertools.count)

    def publish(self, source: str, detail_type: str, detail: dict[str, Any]) -> None:
        event = self.event(source, detail_type, detail)
        for delay in self.weather(event):
            self.clock.at(self.clock.now + delay, lambda: self.deliver(event))

    def event(self, source: str, detail_type: str, detail: dict[str, Any]) -> Event:
        return {
            "version": "0",
            "id": f"event-{next(self._number)}",
            "source": source,
            "detail-type": detail_type,
            "account": "123456789012",
            "time": datetime.fromtimestamp(self.clock.now, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": self.region,
            "detail": detail,
        }

    def deliver(self, event: Event) -> None:
        for fits, target in self.targets:
            if fits(event):
                target(event)

    def every(self, seconds: float, target: Callable[[Event], None]) -> None:
        """A schedule rule: `target` for ever, first in `seconds`."""

        def tick() -> None:
            self.clock.at(self.clock.now + seconds, tick)
            target(self.event("aws.events", "Scheduled Event", {}))

        self.clock.at(self.clock.now + seconds, tick)
