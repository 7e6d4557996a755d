"""The life of an instance: pending, running, shutting down, terminated, with the delays and events of a real account."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from localaws.conditions import Conditions

STATES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
GONE = frozenset({"shutting-down", "terminated"})
KEPT_AFTER = frozenset({"running", "stopped", "terminated"})
"""States after which EC2 keeps what the console shows."""
Function = Callable[..., Any]


class Aws(Protocol):
    """What the gaps of EC2 need of the local AWS (localaws.server.LocalAws)."""

    @property
    def conditions(self) -> Conditions: ...

    @property
    def chance(self) -> random.Random: ...

    def later(self, delay_s: float, function: Callable[[], Any], /) -> Any: ...

    def emit(
        self, source: str, detail_type: str, detail: Mapping[str, Any], resources: Sequence[str], region: str, /
    ) -> Any: ...

    def patch(self, target: Any, name: str, value: Any, /) -> Any:
        """Sets an attribute of moto until the local AWS stops; returns what was there."""


class Host(Protocol):
    """What runs the machines' processes (localaws.machines.nodes.Nodes); calls return at once."""

    def boot(self, machine: Machine) -> None:
        """Starts its user data; the instance becomes running as soon as this returns."""

    def shut_down(self, machine: Machine) -> None:
        """As an operating system shuts down: SIGTERM, a grace period, SIGKILL."""

    def cut_power(self, machine: Machine) -> None:
        """Nothing of the machine runs when this returns."""

    def said(self, machine: Machine) -> bytes:
        """What it wrote to its console until now."""

    def stop(self) -> None:
        """Nothing of any machine runs when this returns."""


class NoHost:
    """Machines without processes."""

    def boot(self, machine: Machine) -> None: ...

    def shut_down(self, machine: Machine) -> None: ...

    def cut_power(self, machine: Machine) -> None: ...

    def said(self, machine: Machine) -> bytes:  # noqa: ARG002
        return b""

    def stop(self) -> None: ...


def replace(aws: Aws, owner: Any, name: str, make: Callable[[Function], Function]) -> None:
    """Puts `make(original)` in the place of moto's `owner.name`, which raises AttributeError where moto has none any more."""
    aws.patch(owner, name, make(getattr(owner, name)))


@dataclass(eq=False)
class Machine:
    """What a rehearsal knows of an instance beyond moto's record of it."""

    record: Any
    """moto.ec2.models.instances.Instance."""
    user_data: bytes
    """Exactly what RunInstances was given."""
    visible_at: float
    """On the monotonic clock: when Describe and Terminate begin to know it."""
    known_to_iam_at: float = 0.0
    """On the monotonic clock: when IAM begins to see its tags."""
    tags: dict[str, tuple[str, float]] = field(default_factory=dict)
    """For instance metadata: key to value and to the moment (monotonic) at which it can be read."""
    launched_at: float = field(default_factory=time.monotonic)
    booted_at: float | None = None
    """On the monotonic clock: when the first line of user data ran."""
    spot_action: dict[str, str] | None = None
    """The body of spot/instance-action."""
    kept: bytes = b""
    """Of its console, by EC2 itself: after it has booted, and after it has ended."""
    lost: bool = False
    """It ended without an operating system's shutdown."""

    @property
    def id(self) -> str:
        return str(self.record.id)

    @property
    def marks(self) -> dict[str, str]:
        """Its tags, however late they are in its metadata, and its rank."""
        return {key: value for key, (value, _) in self.tags.items()} | {"rank": str(self.rank)}

    @property
    def region(self) -> str:
        return str(self.record.region_name)

    @property
    def state(self) -> str:
        return str(self.record._state.name)

    @property
    def address(self) -> str:
        return str(self.record.private_ip)

    @property
    def arn(self) -> str:
        return f"arn:aws:ec2:{self.region}:{self.record.owner_id}:instance/{self.id}"

    @property
    def rank(self) -> int:
        return int(self.record.ami_launch_index)

    def readable_tags(self) -> dict[str, str]:
        """The tags that instance metadata shows by now."""
        now = time.monotonic()
        return {key: value for key, (value, since) in sorted(self.tags.items()) if since <= now}


class Machines:
    """All instances of the rehearsal, in every region."""

    def __init__(self, aws: Aws) -> None:
        self.aws = aws
        self.lock = threading.RLock()
        """Held while instances come into being, so that nobody sees half a launch."""
        self.host: Host = NoHost()
        self.tokens: dict[tuple[str, str], tuple[str, Any]] = {}
        """(region, ClientToken) to a digest of the request and the reservation that it made."""
        self.without_capacity: set[tuple[str, str]] = set()
        """(type, zone) that have answered InsufficientInstanceCapacity."""
        self.responses_lost = 0
        self._machines: dict[str, Machine] = {}

    def begin_faults(self) -> None:
        """Faults that happen once may happen once more."""
        self.without_capacity.clear()
        self.responses_lost = 0

    def all(self) -> list[Machine]:
        with self.lock:
            return list(self._machines.values())

    def get(self, instance: str) -> Machine | None:
        return self._machines.get(instance)

    def hidden(self, instance: str) -> bool:
        """EC2 has made the instance, and most of EC2 does not know it yet."""
        machine = self._machines.get(instance)
        return machine is not None and machine.visible_at > time.monotonic()

    def unknown_to_iam(self, instance: str) -> bool:
        """IAM does not see the tags of a new instance yet, and every right by tag is refused."""
        machine = self._machines.get(instance)
        return machine is not None and machine.known_to_iam_at > time.monotonic()

    def left(self) -> int:
        """How many instances are not terminated."""
        return sum(machine.state != "terminated" for machine in self.all())

    def stop(self) -> None:
        """Ends every process of every machine; instances keep their state."""
        self.host.stop()

    def launched(self, record: Any, user_data: bytes, tags: Mapping[str, str]) -> None:
        """A new instance, pending until it has booted."""
        conditions, now = self.aws.conditions, time.monotonic()
        machine = Machine(record, user_data, now + conditions.scaled(conditions.invisible_s, self.aws.chance))
        machine.known_to_iam_at = now + conditions.scaled(conditions.iam_delay_s, self.aws.chance)
        machine.tags = {key: (value, now) for key, value in tags.items()}
        if fault := conditions.fault("late-tags", machine.marks):
            self._tag(machine, tags, now + fault.seconds("seconds") / conditions.speed)
        self._machines[machine.id] = machine
        self._enter(machine, "pending")
        boots_after = conditions.scaled(conditions.boot_s, self.aws.chance)
        self.aws.later(boots_after, lambda: self._running(machine))

    def _running(self, machine: Machine) -> None:
        """As usual its first line of user data runs now; the fault `slow-boot` has it run later, and EC2 none the wiser."""
        conditions = self.aws.conditions
        with self.lock:
            if machine.state != "pending":
                return
            fault = conditions.fault("slow-boot", machine.marks)
            left = (
                fault.seconds("seconds") / conditions.speed - (time.monotonic() - machine.launched_at) if fault else 0.0
            )
            if left > 0:
                self.aws.later(left, lambda: self._booted(machine))
            else:
                self._booted(machine)
            self._enter(machine, "running")

    def _booted(self, machine: Machine) -> None:
        with self.lock:
            if machine.state in {"pending", "running"}:
                machine.booted_at = time.monotonic()
                self.host.boot(machine)

    def tagged(self, instances: Iterable[str], tags: Mapping[str, str]) -> None:
        """CreateTags on running instances reaches their metadata late."""
        conditions = self.aws.conditions
        for machine in filter(None, map(self._machines.get, instances)):
            fault = conditions.fault("late-tags", machine.marks)
            span = (fault.seconds("seconds"),) * 2 if fault else conditions.tags_delay_s
            self._tag(machine, tags, time.monotonic() + conditions.scaled(span, self.aws.chance))

    @staticmethod
    def _tag(machine: Machine, tags: Mapping[str, str], at: float) -> None:
        machine.tags |= {key: (value, at) for key, value in tags.items()}

    def untagged(self, instances: Iterable[str], keys: Iterable[str]) -> None:
        for machine in filter(None, map(self._machines.get, instances)):
            for key in keys:
                machine.tags.pop(key, None)

    def terminate(self, machine: Machine, code: str = "Client.UserInitiatedShutdown") -> None:
        """TerminateInstances: shutting down at once, terminated after a while; repeating it changes nothing."""
        with self.lock:
            if machine.state in GONE:
                return
            self._explain(machine, code, f"{code}: {'User' if 'User' in code else 'Instance'} initiated shutdown")
            self._enter(machine, "shutting-down")
        self.host.shut_down(machine)
        self._later_off(lambda: self._terminated(machine))

    def powered_off(self, machine: Machine) -> None:
        """Its operating system has ended; what that means is InstanceInitiatedShutdownBehavior's to say."""
        code = "Client.InstanceInitiatedShutdown"
        if machine.lost:
            return
        if machine.record.instance_initiated_shutdown_behavior == "terminate":
            self.terminate(machine, code)
            return
        with self.lock:
            if machine.state in {*GONE, "stopping", "stopped"}:
                return
            self._explain(machine, code, f"{code}: Instance initiated shutdown")
            self._enter(machine, "stopping")
        self._later_off(lambda: self._stopped(machine))

    def vanish(self, machine: Machine, code: str, why: str, told_after_s: float = 0.0) -> None:
        """The machine is lost without notice: nothing of it runs when this returns. EC2 calls it running for `told_after_s` more."""
        machine.lost = True
        self.host.cut_power(machine)

        def end() -> None:
            with self.lock:
                if machine.state != "terminated":
                    self._end(machine, code, f"{code}: {why}")

        if told_after_s:
            self.aws.later(told_after_s, end)
        else:
            end()

    def _later_off(self, then: Callable[[], None]) -> None:
        conditions = self.aws.conditions
        self.aws.later(conditions.scaled(conditions.shutdown_s, self.aws.chance), then)

    def _terminated(self, machine: Machine) -> None:
        self.host.cut_power(machine)
        with self.lock:
            if machine.state != "terminated":
                reason = machine.record.state_reason
                self._end(machine, reason.code, reason.message)

    def _stopped(self, machine: Machine) -> None:
        self.host.cut_power(machine)
        with self.lock:
            if machine.state == "stopping":
                self._enter(machine, "stopped")

    def _end(self, machine: Machine, code: str, message: str) -> None:
        machine.record.terminate()  # moto's own: frees volumes, interfaces, address and profile
        self._explain(machine, code, message)
        self._enter(machine, "terminated")

    def _explain(self, machine: Machine, code: str, message: str) -> None:
        machine.record.state_reason.code, machine.record.state_reason.message = code, message
        machine.record._reason = f"{message} ({time.strftime('%Y-%m-%d %H:%M:%S GMT', time.gmtime())})"

    def _keep_console(self, machine: Machine) -> None:
        machine.kept = self.host.said(machine)

    def _enter(self, machine: Machine, state: str) -> None:
        machine.record._state.name, machine.record._state.code = state, STATES[state]
        if state in KEPT_AFTER:
            delay_s = self.aws.conditions.scaled(self.aws.conditions.console_delay_s, self.aws.chance)
            self.aws.later(delay_s, lambda: self._keep_console(machine))
        detail = {"instance-id": machine.id, "state": state}
        self.aws.emit("aws.ec2", "EC2 Instance State-change Notification", detail, [machine.arn], machine.region)
