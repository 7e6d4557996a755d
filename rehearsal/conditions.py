"""The conditions a rehearsal runs under: delays, losses and throttles of a real account, and the faults that were asked for."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

FAULTS: dict[str, str] = {
    "events-dropped": "no event (EC2 state, S3 object, execution status) is delivered; the clock goes on",
    "no-capacity": "the first `rungs` (1) rungs that are tried answer InsufficientInstanceCapacity, once each",
    "node-lost": "node `rank` (1) of the first attempt vanishes without notice once it trains at step `step` (5)",
    "response-lost": "the answer to the first RunInstances is lost after the instances exist",
}


class UnknownFault(ValueError):
    """`--fault` names a fault that there is not; the message lists those there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Durations are real-world seconds; `scaled` makes them the rehearsal's. Ranges are drawn from uniformly."""

    speed: float = 1.0
    seed: int = 0
    boot_s: tuple[float, float] = (30.0, 90.0)
    """From RunInstances to the first line of user data. EC2 launch to SSH takes 26 s on average in one study; deep-learning
    images are larger and GPU types slower."""
    invisible_s: tuple[float, float] = (0.2, 1.5)
    """How long DescribeInstances does not know a new instance."""
    event_delay_s: tuple[float, float] = (1.0, 60.0)
    """S3 events usually take seconds, sometimes a minute or more."""
    events_lost: float = 0.1
    """Share of events that never arrive. Schedules are not events."""
    events_doubled: float = 0.05
    """Share of events that arrive twice (delivery is at least once)."""
    clock_delay_s: tuple[float, float] = (0.0, 20.0)
    tags_delay_s: tuple[float, float] = (1.0, 10.0)
    """From CreateTags to the tag in instance metadata."""
    shutdown_s: tuple[float, float] = (20.0, 60.0)
    """From shutting-down to terminated."""
    throttled: float = 0.03
    """Share of EC2, Lambda-less control calls answered with the service's throttling error."""
    page_size: int = 2
    """Most entries in a page of DescribeInstances and ListObjectsV2, whatever was asked for."""
    faults: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def scaled(self, span: tuple[float, float], chance: random.Random) -> float:
        """A draw from `span`, in seconds of the rehearsal."""
        return chance.uniform(*span) / self.speed

    def fault(self, name: str) -> Mapping[str, str] | None:
        """The parameters of a fault that was asked for, None where it was not."""
        return self.faults.get(name)


def parse_faults(given: list[str]) -> dict[str, dict[str, str]]:
    """`NAME` or `NAME:key=value,...`, as the command line has them."""
    faults = {}
    for text in given:
        name, _, rest = text.partition(":")
        if name not in FAULTS:
            raise UnknownFault(f"--fault {name}: there is no such fault; there are {', '.join(sorted(FAULTS))}")
        pairs = [pair.partition("=") for pair in rest.split(",") if pair]
        faults[name] = {key: value for key, _, value in pairs}
    return faults
