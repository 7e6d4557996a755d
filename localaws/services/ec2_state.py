"""The state of EC2 in one region: instances and their parts, what each call may see of them, and how instances end."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from localaws.model import Clock, Pages, Refused
from localaws.services.ec2_capacity import CapacityReservation, no_capacity
from localaws.services.ec2_catalogue import Catalogue
from localaws.services.ec2_instance import NEVER, Machine
from localaws.services.ec2_parts import Parts
from localaws.services.ec2_request import is_spot

INSTANCE_ID = re.compile(r"i-[0-9a-f]{8}([0-9a-f]{9})?")
FORGOTTEN_AFTER_S = 3600.0
"""A terminated instance stays in DescribeInstances for about an hour."""


class Ec2State(ABC):
    """One region, without its API. A subclass supplies durations, receives changes, and may run the machines."""

    def __init__(self, region: str, clock: Clock, catalogue: Catalogue, number: Callable[[], int]) -> None:
        """`number` returns each number once, over all regions of an account."""
        self.region, self.clock, self.catalogue, self._number = region, clock, catalogue, number
        self.machines: dict[str, Machine] = {}
        """The true state, which no lagging read shows."""
        self.launches: dict[str, tuple[str, list[Machine]]] = {}
        """The request's digest and its instances, by client token. Tokens belong to a region."""
        self.without_capacity: dict[str, tuple[str, Refused]] = {}
        """The request's digest and its refusal for want of capacity, by client token."""
        self.parts = Parts(clock, self.name)
        self.pages = Pages(size=1000)
        self.capacity: dict[tuple[str, str], int] = {}
        """How many instances can run, by type and zone; unlimited if there is no entry."""
        self.spot_capacity: dict[tuple[str, str], int] = {}
        """The same of the spot market."""
        self.spot_prices: dict[tuple[str, str], float] = {}
        """USD an hour by type and zone, where a test wants others than ec2_spot.price."""
        self.reservations: dict[str, CapacityReservation] = {}
        """By id; a person makes them (`ec2_reservations.reserve`)."""
        self.vcpu_quota: int | None = None
        self.spot_vcpu_quota: int | None = None

    @property
    def now(self) -> float:
        return self.clock.time()

    @property
    def keeps_refusals(self) -> bool:
        """Whether a client token that once met no capacity meets none again, whatever there is by then."""
        return True

    def name(self, kind: str) -> str:
        return f"{kind}-{self._number():017x}"

    def spot_factor(self, kind: str, zone: str) -> float:  # noqa: ARG002
        """By how much the spot price of a place has moved."""
        return 1.0

    @abstractmethod
    def zone_names(self) -> list[str]:
        """The availability zones of the region."""

    # how long things take, in seconds of the clock

    @property
    @abstractmethod
    def invisible_s(self) -> float:
        """How long describe calls, CreateTags and TerminateInstances do not know a new instance."""

    @property
    @abstractmethod
    def lag_s(self) -> float:
        """Returns the age of the states that DescribeInstances shows."""

    @property
    @abstractmethod
    def iam_s(self) -> float:
        """How long IAM does not see a new instance's tags, and refuses every right that depends on them."""

    @property
    @abstractmethod
    def pending_s(self) -> float: ...

    @property
    @abstractmethod
    def shutting_s(self) -> float:
        """From shutting-down to terminated: many minutes on large instances, unbilled."""

    @property
    def forgotten_s(self) -> float:
        return FORGOTTEN_AFTER_S

    # for whoever runs the machines

    @abstractmethod
    def at(self, when: float, action: Callable[[], None]) -> None:
        """Calls `action` when the clock shows `when`."""

    @abstractmethod
    def tell(self, machine: Machine, state: str) -> None:
        """An "EC2 Instance State-change Notification": instance id and state, no tags."""

    def begin(self, machine: Machine) -> None:
        """Handles a machine that is pending from now on."""
        self.changed(machine, "pending", self.now)
        self.changed(machine, "running", machine.running_at)

    def shut_down(self, machine: Machine) -> None:
        """Handles a machine that is shutting down from now on, and is terminated once nothing on it runs."""
        machine.terminated_at = self.now + self.shutting_s
        self.at(machine.terminated_at, lambda: self.parts.let_go(machine.parts))
        self.changed(machine, "terminated", machine.terminated_at)

    def address(self) -> str:
        """Returns a private address for a new instance."""
        number = len(self.machines)
        return f"10.0.{number // 250}.{number % 250 + 4}"

    def said(self, machine: Machine) -> str:
        """Returns its console output so far."""
        return machine.console

    def check_capacity(self, request: Mapping[str, Any], zone: str) -> None:
        """Raises Refused if a launch finds no capacity."""
        kind, spot = request["InstanceType"], is_spot(request)
        free = (self.spot_capacity if spot else self.capacity).get((kind, zone))
        alike = (one for one in self.running() if one.is_spot == spot)
        here = sum(one.zone == zone and one.request["InstanceType"] == kind for one in alike)
        if free is not None and here + request["MinCount"] > free:
            raise no_capacity(kind, zone)

    @abstractmethod
    def check_reservation(self, request: Mapping[str, Any], zone: str) -> None:
        """Raises Refused if the reservation that a launch names does not take it."""

    def protected(self, machine: Machine) -> bool:
        """Whether its termination protection is on."""
        return machine.protected

    # what calls see, and what they change

    def known(self, identity: str) -> Machine:
        """Returns the instance; raises EC2's errors for ids that are malformed, or that EC2 does not know (yet, or any more)."""
        if not INSTANCE_ID.fullmatch(identity):
            raise Refused("InvalidInstanceID.Malformed", f'Invalid id: "{identity}"')
        machine = self.machines.get(identity)
        if machine is None or not self.sees(machine):
            raise Refused("InvalidInstanceID.NotFound", f"The instance ID '{identity}' does not exist")
        return machine

    def sees(self, machine: Machine) -> bool:
        """Whether describe calls return it: a new instance can be invisible for about a second, an old one is forgotten."""
        return machine.visible_at <= self.now < machine.terminated_at + self.forgotten_s

    def shown(self, machine: Machine, now: float) -> dict[str, Any]:
        """One entry of DescribeInstances, as of `now`."""
        entry = machine.shown(now)
        parts = [one for identity in machine.parts if (one := self.parts.things.get(identity))]
        if parts and entry["State"]["Name"] != "terminated":
            volumes = [one for one in parts if one.id.startswith("vol-")]
            interfaces = [one for one in parts if one.id.startswith("eni-")]
            entry["BlockDeviceMappings"] = [{"Ebs": {"VolumeId": one.id}} for one in volumes]
            entry["NetworkInterfaces"] = [{"NetworkInterfaceId": one.id} for one in interfaces]
        return entry

    def running(self) -> list[Machine]:
        """Lists everything that runs and costs, visible or not."""
        return [machine for machine in self.machines.values() if machine.runs(self.now)]

    def end(self, machine: Machine, code: str, why: str) -> None:
        """Ends an instance: for a call, a power-off, a broken host or a spot interruption."""
        if machine.ending_at <= self.now:
            return
        machine.ending_at, machine.why = self.now, (code, f"{code}: {why}")
        self.changed(machine, "shutting-down", self.now)
        self.shut_down(machine)

    def power_off(self, machine: Machine) -> None:
        """Handles a power-off from within. InstanceInitiatedShutdownBehavior=terminate then ends it without any right, protected or not."""
        code, why = "Client.InstanceInitiatedShutdown", "Instance initiated shutdown"
        if machine.request.get("InstanceInitiatedShutdownBehavior") == "terminate":
            self.end(machine, code, why)
        elif machine.stopping_at == NEVER and machine.runs(self.now):
            machine.stopping_at, machine.why = self.now, (code, f"{code}: {why}")
            machine.stopped_at = self.now + self.shutting_s
            self.changed(machine, "stopping", self.now)
            self.changed(machine, "stopped", machine.stopped_at)

    def changed(self, machine: Machine, state: str, when: float) -> None:
        """Reports the state at that time, unless the machine took another way until then."""

        def report() -> None:
            if machine.state(when) == state:
                self.tell(machine, state)

        self.at(when, report)
