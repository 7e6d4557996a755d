"""Faults that the local AWS knows by itself, for whoever has no catalogue of their own: a name, keys, and the marks of what it meets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LASTING = {"after": "0", "seconds": "inf"}
"""From the beginning of all faults to this one's, and how long it lasts."""
KEYS: dict[str, dict[str, str]] = {
    "abort-in-state": {"state": "", "after": "0"},
    "capacity-away": {"region": "", "zone": "", "type": "", "market": "", "as": "capacity", **LASTING},
    "child-killed": {"after": "30"},
    "cleanup-event-lost": {},
    "clock-late": {"seconds": "120"},
    "create-response-lost": {},
    "database-away": LASTING,
    "events-dropped": LASTING,
    "events-late": {"seconds": "120"},
    "function-dead": {"handlers": "", "how": "fails", **LASTING},
    "keys-short": {"seconds": "200"},
    "late-tags": {"seconds": "300"},
    "no-capacity": {"rungs": "1"},
    "quota-reached": {"after": "0", "seconds": "120"},
    "reservation-full": LASTING,
    "response-lost": {},
    "s3-failing": {"as": "slow-down", "share": "1", "calls": "all", "part": "", "who": "nodes", **LASTING},
    "s3-slow": {"each": "5", "rate": "", "who": "nodes", **LASTING},
    "sagemaker-throttled": {"after": "0", "seconds": "60"},
    "session-service-away": {"how": "fails", "after": "0", "seconds": "600"},
    "slow-boot": {"seconds": "600"},
    "spot-interrupted": {"after": "60", "times": "1"},
    "spot-price-moves": {"factor": "3", "region": "", "zone": "", "type": "", **LASTING},
    "stop-lost": {},
    "task-retired": {"after": "30"},
    "terminate-refused": LASTING,
}
"""The keys of each fault with their defaults; README.md says what each does. Seconds are real-world seconds."""


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault that meets whatever has all of its `marks`: an instance's tag, a session's tag, a rank."""

    name: str
    given: Mapping[str, str] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)
    since: float | None = None
    """When it began, on the monotonic clock; None for the beginning of all."""

    @property
    def handlers(self) -> str:
        """Prefix of the handlers whose functions are dead while it lasts; empty for none."""
        return self.given.get("handlers", "")

    def text(self, key: str) -> str:
        return self.given.get(key, KEYS[self.name][key])

    def seconds(self, key: str) -> float:
        """Returns the key's real-world seconds; infinity for what never ends."""
        return float(self.text(key))

    def number(self, key: str) -> int:
        return int(self.text(key))

    def meets(self, marks: Mapping[str, str]) -> bool:
        """Whether it applies to something with these marks."""
        return self.marks.items() <= marks.items()


def plan_faults(*texts: str) -> tuple[PlannedFault, ...]:
    """Reads faults: each `NAME` or `NAME:key=value,...`; a key that the fault lacks is a mark. Raises ValueError for an unknown name."""
    return tuple(map(_planned, texts))


def _planned(text: str) -> PlannedFault:
    name, _, rest = text.partition(":")
    if name not in KEYS:
        raise ValueError(f"there is no fault {name!r}; there are {', '.join(KEYS)}")
    pairs = dict(pair.split("=", 1) for pair in rest.split(",") if pair)
    given = {key: value for key, value in pairs.items() if key in KEYS[name]}
    return PlannedFault(name, given, {key: value for key, value in pairs.items() if key not in given})
