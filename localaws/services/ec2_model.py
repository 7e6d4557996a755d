"""EC2 of one region: instances, their ends, tags, consoles and parts."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

from localaws.model import Clock, Pages, Refused
from localaws.services.ec2_catalogue import Catalogue
from localaws.services.ec2_checks import TAGS, check_tags
from localaws.services.ec2_describe import describe_instances, describe_profiles
from localaws.services.ec2_instance import NEVER, Machine
from localaws.services.ec2_launch import no_capacity, run_instances
from localaws.services.ec2_parts import OPERATIONS, Part, Parts
from localaws.services.ec2_reservations import CapacityReservation, check_reservation, describe_reservations
from localaws.services.ec2_spot import is_spot, price_history

INSTANCE_ID = re.compile(r"i-[0-9a-f]{8}([0-9a-f]{9})?")
OURS = re.compile(r"(i|vol|eni|sir|cr)-[0-9a-f]+")
"""Forms of the ids that the model knows."""
TERMINATE_AT_ONCE = 1000
KEPT_BYTES = 64 * 1024
"""Bytes of a console that EC2 keeps."""
FORGOTTEN_AFTER_S = 3600.0
"""A terminated instance stays in DescribeInstances for about an hour."""
WITHOUT_NITRO = ("p2.", "p3.", "g3.", "g3s.", "m4.", "c4.", "r4.", "t2.", "x1.", "i3.")
"""Families on Xen, whose newest console lines are not available. p3dn is not one of them."""


class Ec2(ABC):
    """One region. Whoever creates one supplies durations, receives changes, and may run the machines."""

    def __init__(self, region: str, clock: Clock, catalogue: Catalogue, number: Callable[[], int]) -> None:
        """`number` returns each number once, over all regions of an account."""
        self.region, self.clock, self.catalogue, self._number = region, clock, catalogue, number
        self.machines: dict[str, Machine] = {}
        """The true state, which no lagging read shows."""
        self.launches: dict[str, tuple[str, list[Machine]]] = {}
        """The request's digest and its instances, by client token. Tokens belong to a region."""
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

    def check_reservation(self, request: Mapping[str, Any], zone: str) -> None:
        """Raises Refused if the reservation that a launch names does not take it."""
        check_reservation(self, request, zone)

    def protected(self, machine: Machine) -> bool:
        """Whether its termination protection is on."""
        return machine.protected

    # what AWS's API does

    def answer(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if params.get("DryRun") and operation != "RunInstances":  # which looks at the whole request first
            raise Refused("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
        return self.of_the_region(operation, params)

    def of_the_region(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answers a call that is no dry run."""
        if operation in OPERATIONS:
            return self.parts.answer(operation, params)
        match operation:
            case "RunInstances":
                return run_instances(self, params)
            case "DescribeInstances":
                return describe_instances(self, params)
            case "DescribeIamInstanceProfileAssociations":
                return describe_profiles(self, params)
            case "TerminateInstances":
                return self._terminate(params)
            case "DescribeSpotPriceHistory":
                return price_history(self, params)
            case "DescribeCapacityReservations":
                return describe_reservations(self, params)
            case "GetConsoleOutput":
                return self._console(params)
            case "CreateTags":
                return self._create_tags(params)
            case "DeleteTags":
                return self._delete_tags(params)
            case "DescribeTags":
                return self._describe_tags(params)
        raise Refused("InvalidAction", f"The model of EC2 has no {operation}")

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

    def _terminate(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Takes at most 1,000 ids. One malformed or unknown id fails the whole call. A protected instance blocks its own
        zone's part of the call: the instances of other zones are terminated, and the call still fails."""
        ids = list(dict.fromkeys(params.get("InstanceIds", [])))
        if not ids:
            raise Refused("InvalidParameterCombination", "No instances specified")
        if len(ids) > TERMINATE_AT_ONCE:
            raise Refused("InvalidParameterValue", f"At most {TERMINATE_AT_ONCE} instances can be terminated in a call")
        machines = [self.known(identity) for identity in ids]
        working = [machine for machine in machines if machine.ending_at == NEVER]
        blocked = {machine.zone: machine.id for machine in working if self.protected(machine)}
        changes = []
        for machine in machines:
            before = machine.state(self.now)
            if machine.zone not in blocked and not machine.stuck:
                self.end(machine, "Client.UserInitiatedShutdown", "User initiated shutdown")
            after = "shutting-down" if machine.stuck else machine.state(self.now)
            changes.append({"PreviousState": {"Name": before}, "CurrentState": {"Name": after}})
        for identity in blocked.values():
            raise Refused(
                "OperationNotPermitted",
                f"The instance '{identity}' may not be terminated. Modify its 'disableApiTermination' instance attribute.",
            )
        return {"TerminatingInstances": [{"InstanceId": id_, **one} for id_, one in zip(ids, changes, strict=True)]}

    def _console(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the newest lines of a Nitro machine that has not ended; for all others, what EC2 kept. Without lines the answer has no
        Output."""
        machine, newest = self.known(params["InstanceId"]), params.get("Latest")
        if newest and machine.request["InstanceType"].startswith(WITHOUT_NITRO):
            raise Refused(
                "UnsupportedOperation", "This instance type does not support retrieving the latest console logs."
            )
        live = newest and machine.state(self.now) != "terminated"
        said = (self.said(machine) if live else machine.kept).encode()[-KEPT_BYTES:]
        return {"InstanceId": machine.id, **({"Output": b64encode(said).decode()} if said else {})}

    def _create_tags(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Tags all resources or none; a new instance may be unknown for about a second, and its tags for longer."""
        marks = {tag["Key"]: tag.get("Value", "") for tag in params["Tags"]}
        resources = [self._tagged(identity) for identity in params["Resources"]]
        for one in resources:
            if isinstance(one, Machine) and one.known_to_iam_at > self.now:
                raise Refused("UnauthorizedOperation", "You are not authorized to perform this operation.", 403)
            metadata = isinstance(one, Machine) and one.options.get("InstanceMetadataTags") == "enabled"
            check_tags(marks, metadata=metadata)
            if len(one.tags | marks) > TAGS:
                raise Refused("TagLimitExceeded", f"The maximum number of tags for {one.id} has been reached.")
        for one in resources:
            one.tags |= marks
        return {}

    def _delete_tags(self, params: Mapping[str, Any]) -> dict[str, Any]:
        for one in [self._tagged(identity) for identity in params["Resources"]]:
            for tag in params.get("Tags", []):
                one.tags.pop(tag["Key"], None)
        return {}

    def _describe_tags(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Supports only the filter `resource-id`, in one page."""
        filters = {one["Name"]: one["Values"] for one in params.get("Filters", [])}
        if unknown := filters.keys() ^ {"resource-id"}:
            raise Refused(
                "InvalidParameterValue", f"The model takes the filter resource-id and no other: {sorted(unknown)}"
            )
        wanted = filters["resource-id"]
        every: list[Machine | Part | CapacityReservation] = [
            *self.machines.values(),
            *self.parts.things.values(),
            *self.reservations.values(),
        ]
        found = [(one.id, key, value) for one in every if one.id in wanted for key, value in one.tags.items()]
        return {"Tags": [{"ResourceId": id_, "Key": key, "Value": value} for id_, key, value in found]}

    def _tagged(self, identity: str) -> Machine | Part | CapacityReservation:
        if identity in self.reservations:
            return self.reservations[identity]
        return self.known(identity) if identity.startswith("i-") else self.parts.known(identity)
