"""What goes wrong with single calls: throttles, errors before and after the effect, answers that never come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase

from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

from localaws.model import Refused
from tests.fakes.wire import Call

TIMEOUT_S = 20.0
"""How long a client waits for an answer that does not come."""
CONNECT_S = 5.0
"""How long a client waits for a connection that does not come (both as in aws.clients)."""


class Kind(str, Enum):
    """What happens to a call."""

    THROTTLED = "throttled"
    ERROR = "error"
    """HTTP 500, without an effect."""
    ERROR_AFTER = "error after the effect"
    """HTTP 500, and yet it was done: the answer says nothing."""
    LOST = "answer lost"
    """The effect happens; the connection ends before the answer."""
    UNREACHABLE = "unreachable"
    """The request never arrives."""
    DENIED = "denied"
    """No right to do it, at once and for good: no client asks again."""

    @property
    def has_effect(self) -> bool:
        return self in {Kind.LOST, Kind.ERROR_AFTER}


THROTTLE = {"ec2": ("RequestLimitExceeded", 503), "s3": ("SlowDown", 503)}
"""EC2 and S3 throttle with 503, the JSON services with 400 and ThrottlingException."""


DENIED = {"ec2": "UnauthorizedOperation", "s3": "AccessDenied"}


class Death(Enum):
    """When a function's process goes away."""

    BEFORE = "before the call"
    AFTER = "after the call"
    """The call has its effect; nobody reads its answer."""


@dataclass
class Mishap:
    """What befalls an invocation at its `nth` call whose `service:Operation` fits `name` (with `*`), and `times` in a row."""

    name: str
    nth: int = 1
    times: float = 1
    region: str = ""
    """Counts the calls of that region alone; empty for all."""
    fault: Kind | None = None
    death: Death | None = None
    meanwhile: Callable[[], None] | None = None
    """What somebody else does just before the call."""
    _count: int = 0

    def strikes(self, call: Call) -> bool:
        if not fnmatchcase(call.name, self.name) or self.region not in {"", call.region}:
            return False
        self._count += 1
        return self.nth <= self._count < self.nth + self.times


@dataclass
class Fault:
    """Befalls the next `times` calls whose `service:Operation` fits `name` (with `*`), whoever makes them."""

    kind: Kind
    name: str
    times: int = 1
    region: str = ""
    """Befalls the calls of that region alone; empty for all."""


@dataclass
class Faults:
    """Faults that wait for their calls."""

    waiting: list[Fault] = field(default_factory=list)

    def add(self, kind: Kind, name: str, *, times: int = 1, region: str = "") -> None:
        self.waiting.append(Fault(kind, name, times, region))

    def take(self, call: Call) -> Kind | None:
        for fault in self.waiting:
            if fnmatchcase(call.name, fault.name) and fault.region in {"", call.region}:
                fault.times -= 1
                if not fault.times:
                    self.waiting.remove(fault)
                return fault.kind
        return None


def raised(kind: Kind, call: Call) -> tuple[Exception, float]:
    """What the client sees, and the seconds that it waits for it."""
    if kind is Kind.THROTTLED:
        code, status = THROTTLE.get(call.service, ("ThrottlingException", 400))
        return Refused(code, "Request limit exceeded.", status), 0.0
    if kind is Kind.DENIED:
        status = 400 if call.service in {"stepfunctions", "dynamodb"} else 403
        return Refused(DENIED.get(call.service, "AccessDeniedException"), "You are not authorized", status), 0.0
    if kind in {Kind.ERROR, Kind.ERROR_AFTER}:
        return Refused("InternalError", "An internal error has occurred", 500), 0.0
    address = f"https://{call.service}.{call.region}.amazonaws.com"
    if kind is Kind.LOST:
        return ReadTimeoutError(endpoint_url=address), TIMEOUT_S
    return ConnectTimeoutError(endpoint_url=address), CONNECT_S
