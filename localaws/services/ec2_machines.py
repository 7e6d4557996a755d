"""The instances of the local AWS: the model of EC2 with the delays of a real account, and a process group behind each instance."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from localaws.conditions import Conditions, Marks
from localaws.model import Pages, Refused
from localaws.services import ec2_groups, ec2_spot
from localaws.services.ec2_capacity import full, no_capacity, not_launched
from localaws.services.ec2_instance import Machine
from localaws.services.ec2_model import Ec2
from localaws.services.ec2_moto import MotoCatalogue, zones
from localaws.services.ec2_request import is_spot, tags_for, target
from localaws.services.ec2_reservations import end_nodes
from localaws.services.ec2_state import FORGOTTEN_AFTER_S
from localaws.services.ec2_zones import described

if TYPE_CHECKING:
    from localaws.server import LocalAws

KEPT_AFTER = frozenset({"running", "stopped", "terminated"})
"""States after which EC2 keeps the console's output."""
LEAST_PAGE = 5
"""DescribeInstances takes a MaxResults of at least 5."""


class MachineHost(Protocol):
    """Runs the processes of the machines."""

    def boot(self, machine: Machine, /) -> None:
        """Starts its user data; returns at once."""

    def shut_down(self, machine: Machine, /) -> None:
        """Shuts down as an operating system does; returns at once."""

    def end(self, machine: Machine, /) -> None:
        """Kills everything on the machine before it returns."""

    def said(self, machine: Machine, /) -> str:
        """Returns its console output so far."""

    def stop(self) -> None:
        """Ends every process of every machine."""


class Machines:
    """Holds all instances of the rehearsal, in every region."""

    host: MachineHost

    def __init__(self, aws: LocalAws) -> None:
        self.aws = aws
        self.lock = threading.RLock()
        """Held while instances change, so that nobody sees half of a launch."""
        self.regions: dict[str, Region] = {}
        self.number = itertools.count(1).__next__
        self.without_capacity: set[tuple[str, str, str]] = set()
        """Types, zones and markets that have answered InsufficientInstanceCapacity."""
        self.responses_lost = 0

    def begin_faults(self) -> None:
        """Lets faults that happen once happen once more."""
        self.without_capacity.clear()
        self.responses_lost = 0

    def open_region(self, region: str) -> Region:
        self.regions[region] = Region(region, self)
        return self.regions[region]

    def all(self) -> list[Machine]:
        with self.lock:
            return [machine for region in list(self.regions.values()) for machine in region.machines.values()]

    def get(self, instance: str) -> Machine | None:
        return next((machine for machine in self.all() if machine.id == instance), None)

    def left(self) -> int:
        """Returns how many instances are not terminated."""
        return sum(machine.state(time.time()) != "terminated" for machine in self.all())

    def stop(self) -> None:
        """Ends every process of every machine; instances keep their state."""
        self.host.stop()

    def powered_off(self, machine: Machine) -> None:
        """Handles the end of a machine's operating system; InstanceInitiatedShutdownBehavior decides what it means."""
        with self.lock:
            if not machine.lost:
                self.regions[machine.region].power_off(machine)

    def interrupt(self, machine: Machine, *, notice: bool) -> None:
        """Takes a spot machine back."""
        with self.lock:
            region = self.regions[machine.region]
            notice_s = self.aws.conditions.spot_notice_s / self.aws.conditions.speed
            ec2_spot.interrupt(region, machine, notice_s=notice_s if notice else None)

    def end_block(self, machine: Machine) -> None:
        """Ends everything that runs in the machine's reservation."""
        with self.lock:
            region = self.regions[machine.region]
            end_nodes(region, region.reservations[target(machine.request)])

    def vanish(self, machine: Machine, code: str, why: str, told_after_s: float = 0.0) -> None:
        """Loses the machine without notice: nothing on it runs when this returns. EC2 shows it as running for `told_after_s` more."""
        machine.lost = True
        self.host.end(machine)
        end = partial(self.regions[machine.region].lost, machine, code, f"{code}: {why}")
        if told_after_s:
            self.aws.later(told_after_s, end)
        else:
            end()


def _each_time(span: Callable[[Conditions], tuple[float, float]]) -> Any:
    """Returns a property that draws a duration from a range of the conditions each time."""
    return property(lambda region: region._drawn(span(region._aws.conditions)))


class Region(Ec2):
    """One region. Every instance draws its own delays."""

    def __init__(self, region: str, owner: Machines) -> None:
        self.groups = ec2_groups.Groups(region, self.name, self._uses)
        super().__init__(region, time, MotoCatalogue(region, self.groups), owner.number)
        self._owner, self._aws = owner, owner.aws
        self.pages = Pages(size=max(LEAST_PAGE, owner.aws.conditions.page_size))

    def _drawn(self, span: tuple[float, float]) -> float:
        return self._aws.conditions.scaled(span, self._aws.chance)

    invisible_s = _each_time(lambda conditions: conditions.invisible_s)
    lag_s = _each_time(lambda conditions: conditions.state_lag_s)
    iam_s = _each_time(lambda conditions: conditions.iam_delay_s)
    pending_s = _each_time(lambda conditions: conditions.boot_s)
    shutting_s = _each_time(lambda conditions: conditions.shutdown_s)

    @property
    def keeps_refusals(self) -> bool:
        return self._aws.conditions.refusals_kept

    @property
    def forgotten_s(self) -> float:
        return FORGOTTEN_AFTER_S / self._aws.conditions.speed

    def zone_names(self) -> list[str]:
        return [one["ZoneName"] for one in zones(self.region)]

    def answer(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if operation == "DescribeAvailabilityZones":
            return {"AvailabilityZones": described(zones(self.region), params)}
        with self._owner.lock:
            answer = super().answer(operation, params)
            if operation == "RunInstances":
                self._lose(tags_for(params, "instance"))
            if operation == "CreateTags":
                self._show_tags(params)
        return answer

    def of_the_region(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if operation in ec2_groups.OPERATIONS:
            return self.groups.answer(operation, params)
        return super().of_the_region(operation, params)

    def _uses(self, group: str) -> bool:
        """Whether the placement group has an instance that is not terminated."""
        return any(one.group == group and one.state(self.now) != "terminated" for one in self.machines.values())

    def _lose(self, marks: Marks) -> None:
        """Applies the fault `response-lost`, once."""
        if self._aws.conditions.fault("response-lost", marks) and not self._owner.responses_lost:
            self._owner.responses_lost += 1
            raise Refused("InternalError", "An internal error has occurred", 500)

    def _show_tags(self, params: Mapping[str, Any]) -> None:
        """Makes the tags of CreateTags reach the metadata of running instances late."""
        conditions = self._aws.conditions
        for machine in filter(None, map(self.machines.get, params["Resources"])):
            fault = conditions.fault("late-tags", machine.marks)
            at = self.now + self._drawn((fault.seconds("seconds"),) * 2 if fault else conditions.tags_delay_s)
            machine.in_metadata |= {tag["Key"]: at for tag in params["Tags"]}

    def at(self, when: float, action: Callable[[], None]) -> None:
        def act() -> None:
            with self._owner.lock:
                action()

        self._aws.later(when - self.now, act)

    def tell(self, machine: Machine, state: str) -> None:
        detail = {"instance-id": machine.id, "state": state}
        self._aws.emit("aws.ec2", "EC2 Instance State-change Notification", detail, [machine.arn], machine.region)
        if state in KEPT_AFTER:
            delay_s = self._drawn(self._aws.conditions.console_delay_s)
            self.at(self.now + delay_s, lambda: setattr(machine, "kept", self.said(machine)))

    def begin(self, machine: Machine) -> None:
        super().begin(machine)
        fault = self._aws.conditions.fault("late-tags", machine.marks)
        late_s = fault.seconds("seconds") / self._aws.conditions.speed if fault else 0.0
        machine.in_metadata = dict.fromkeys(machine.tags, self.now + late_s)
        slow = self._aws.conditions.fault("slow-boot", machine.marks)
        boots_at = self.now + slow.seconds("seconds") / self._aws.conditions.speed if slow else 0.0
        self.at(max(boots_at, machine.running_at), lambda: self._boot(machine))

    def _boot(self, machine: Machine) -> None:
        """Runs the first line of user data once the instance is running, or later under the fault `slow-boot`, which EC2 does not see."""
        if machine.runs(self.now):
            machine.booted_at = self.now
            self._owner.host.boot(machine)

    def shut_down(self, machine: Machine) -> None:
        self._owner.host.shut_down(machine)
        self._aws.later(self.shutting_s, lambda: self._off(machine))

    def _off(self, machine: Machine) -> None:
        self._owner.host.end(machine)
        self.lost(machine, *machine.why)

    def lost(self, machine: Machine, code: str, message: str) -> None:
        """Handles a machine on which nothing runs any more."""
        with self._owner.lock:
            if machine.terminated_at <= self.now:
                return
            machine.ending_at = min(machine.ending_at, self.now)
            machine.terminated_at, machine.why = self.now, (code, message)
            self.parts.let_go(machine.parts)
            self.tell(machine, "terminated")

    def address(self) -> str:
        """Returns an address in 127.0.0.0/8, so that a node's processes can bind and reach the private address."""
        return self._aws.addresses.take()

    def said(self, machine: Machine) -> str:
        return self._owner.host.said(machine)

    def check_capacity(self, request: Mapping[str, Any], zone: str) -> None:
        """Applies the faults `no-capacity` (the first `rungs` places have none, once each) and `capacity-away` (those that it names have
        none, or are beyond a quota, or throttled, while it lasts)."""
        kind, market = request["InstanceType"], "spot" if is_spot(request) else "on-demand"
        marks, conditions = tags_for(request, "instance"), self._aws.conditions
        place = {"region": self.region, "zone": zone, "type": kind, "market": market}
        for away in conditions.all_under("capacity-away"):
            if away.meets(marks) and all(away.text(key) in {"", value} for key, value in place.items()):
                raise not_launched(away.text("as"), kind, zone, spot=market == "spot")
        fault = conditions.fault("no-capacity", marks)
        found, known = (kind, zone, market), self._owner.without_capacity
        if fault and found not in known and len(known) < fault.number("rungs"):
            known.add(found)
            raise no_capacity(kind, zone)

    def check_reservation(self, request: Mapping[str, Any], zone: str) -> None:
        """Applies the fault `reservation-full`: another job has taken all that is left of it."""
        fault = self._aws.conditions.now_under("reservation-full")
        if fault and fault.meets(tags_for(request, "instance")):
            raise full(target(request))
        super().check_reservation(request, zone)

    def spot_factor(self, kind: str, zone: str) -> float:
        """Applies the fault `spot-price-moves`."""
        place = {"region": self.region, "zone": zone, "type": kind}
        factor = 1.0
        for moved in self._aws.conditions.all_under("spot-price-moves"):
            if all(moved.text(key) in {"", value} for key, value in place.items()):
                factor *= float(moved.text("factor"))
        return factor

    def protected(self, machine: Machine) -> bool:
        """Applies the fault `terminate-refused`: acts as if the instance's termination protection were on."""
        fault = self._aws.conditions.now_under("terminate-refused")
        return super().protected(machine) or (fault is not None and fault.meets(machine.marks))
