"""EC2 of one region: instances, their ends, tags, types and images."""

from __future__ import annotations

import itertools
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from localaws.model import Pages, Refused
from tests.fakes.clock import Clock
from tests.fakes.ec2_catalogue import Catalogue
from tests.fakes.ec2_describe import describe_instances
from tests.fakes.ec2_launch import TAGS, check_tags, run_instances
from tests.fakes.ec2_leftovers import OPERATIONS, Leftovers
from tests.fakes.ec2_machine import Machine
from tests.fakes.wire import Call

INSTANCE_ID = re.compile(r"i-[0-9a-f]{8}([0-9a-f]{9})?")
Publish = Callable[[str, str, dict[str, Any]], None]
"""Source, detail type, detail."""


@dataclass
class Ec2:
    """A region. The public fields are knobs; `machines` is the truth that no lagging read shows."""

    region: str
    clock: Clock
    catalogue: Catalogue
    publish: Publish
    machines: dict[str, Machine] = field(default_factory=dict)
    launches: dict[str, tuple[str, list[Machine]]] = field(default_factory=dict)
    """Client token to the request's digest and its instances. Tokens belong to a region."""
    pages: Pages = field(default_factory=lambda: Pages(size=1000))
    invisible_s: float = 1.0
    """How long describe calls, CreateTags and TerminateInstances do not know a new instance."""
    lag_s: float = 0.5
    """Age of the states that DescribeInstances shows."""
    pending_s: float = 15.0
    shutting_s: float = 120.0
    """From shutting-down to terminated: many minutes on large instances, unbilled."""
    capacity: dict[tuple[str, str], int] = field(default_factory=dict)
    """Type and zone to how many can run there; unlimited where nothing is said."""
    vcpu_quota: int | None = None
    _number: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.leftovers = Leftovers(self.clock, self.name)

    @property
    def now(self) -> float:
        return self.clock.now

    def name(self, kind: str) -> str:
        return f"{kind}-{next(self._number):017x}"

    def answer(self, call: Call) -> dict[str, Any]:
        params = call.params
        if call.operation in OPERATIONS:
            return self.leftovers.answer(call)
        match call.operation:
            case "RunInstances":
                return run_instances(self, params)
            case "DescribeInstances":
                return describe_instances(self, params)
            case "TerminateInstances":
                return self._terminate(params)
            case "GetConsoleOutput":
                return self._console(params)
            case "CreateTags":
                return self._create_tags(params)
            case "DescribeInstanceTypes":
                return {"InstanceTypes": [kind.shown() for kind in self._kinds(params)]}
            case "DescribeInstanceTypeOfferings":
                return {"InstanceTypeOfferings": self._offerings(params)}
            case "DescribeAvailabilityZones":
                filters = {one["Name"]: one["Values"] for one in params.get("Filters", [])}
                return {"AvailabilityZones": self.catalogue.described(filters)}
            case "GetEbsDefaultKmsKeyId":
                return {"KmsKeyId": "alias/aws/ebs"}
            case "DescribeImages":
                return {"Images": [self._image(identity) for identity in params.get("ImageIds", [])]}
        raise Refused("InvalidAction", f"The fake has no {call.name}")

    def known(self, identity: str) -> Machine:
        """Raises what EC2 says of ids that are none, or that it does not know (yet, or any more)."""
        if not INSTANCE_ID.fullmatch(identity):
            raise Refused("InvalidInstanceID.Malformed", f'Invalid id: "{identity}"')
        machine = self.machines.get(identity)
        if machine is None or not machine.seen(self.now):
            raise Refused("InvalidInstanceID.NotFound", f"The instance ID '{identity}' does not exist")
        return machine

    def running(self) -> list[Machine]:
        """For tests: everything that works and costs, seen or unseen."""
        return [machine for machine in self.machines.values() if machine.runs(self.now)]

    def end(self, machine: Machine, code: str, message: str) -> None:
        """Ends an instance for a reason of its own: a power-off, a broken host, a spot interruption."""
        if machine.end(self.now, self.shutting_s, code, message):
            self.changed(machine, self.now)
            self.changed(machine, machine.terminated_at)

    def power_off(self, machine: Machine) -> None:
        """From within. InstanceInitiatedShutdownBehavior=terminate makes it an end, with no right asked, protected or not."""
        if machine.request.get("InstanceInitiatedShutdownBehavior") == "terminate":
            self.end(
                machine,
                "Client.InstanceInitiatedShutdown",
                "Client.InstanceInitiatedShutdown: Instance initiated shutdown",
            )
        elif machine.runs(self.now):
            machine.stopped_at = self.now
            self.changed(machine, self.now)

    def changed(self, machine: Machine, when: float) -> None:
        """An "EC2 Instance State-change Notification" for the state at that time: instance id and state, no tags."""

        def tell() -> None:
            detail = {"instance-id": machine.id, "state": machine.state(max(when, self.now))}
            self.publish("aws.ec2", "EC2 Instance State-change Notification", detail)

        self.clock.at(when, tell)

    def _terminate(self, params: dict[str, Any]) -> dict[str, Any]:
        """At most 1,000 ids. One id that is malformed or unknown fails the call for all. A protected instance blocks its own
        zone's part of the call: the other zones' instances are terminated, and the call fails all the same."""
        ids = list(dict.fromkeys(params["InstanceIds"]))
        if len(ids) > 1000:
            raise Refused("InvalidParameterValue", "At most 1000 instances can be terminated in a call")
        machines = [self.known(identity) for identity in ids]
        blocked = {machine.zone: machine for machine in machines if machine.protected}
        changes = []
        for machine in machines:
            before = machine.state(self.now)
            if machine.zone not in blocked and not machine.stuck:
                self.end(
                    machine, "Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown"
                )
            changes.append((machine.id, before, "shutting-down" if machine.stuck else machine.state(self.now)))
        if blocked:
            identity = next(iter(blocked.values())).id
            raise Refused(
                "OperationNotPermitted",
                f"The instance '{identity}' may not be terminated. Modify its 'disableApiTermination' instance attribute.",
            )
        return {
            "TerminatingInstances": [
                {"InstanceId": identity, "PreviousState": {"Name": before}, "CurrentState": {"Name": after}}
                for identity, before, after in changes
            ]
        }

    def _console(self, params: dict[str, Any]) -> dict[str, Any]:
        """The newest lines are had of types on Nitro alone. Without lines there is no Output."""
        machine = self.known(params["InstanceId"])
        if params.get("Latest") and machine.request["InstanceType"].startswith("p3."):
            raise Refused(
                "UnsupportedOperation", "This instance type does not support retrieving the latest console logs."
            )
        said = machine.console if params.get("Latest") else machine.kept
        return {"InstanceId": machine.id, **({"Output": b64encode(said.encode()).decode()} if said else {})}

    def _create_tags(self, params: dict[str, Any]) -> dict[str, Any]:
        """All resources or none; a new instance may be unknown for about a second."""
        marks = {tag["Key"]: tag.get("Value", "") for tag in params["Tags"]}
        machines = [self.known(identity) for identity in params["Resources"]]
        for machine in machines:
            shown = machine.request.get("MetadataOptions", {}).get("InstanceMetadataTags") == "enabled"
            check_tags(marks, metadata=shown)
            if len(machine.tags | marks) > TAGS:
                raise Refused("TagLimitExceeded", f"The maximum number of tags for {machine.id} has been reached.")
        for machine in machines:
            machine.tags |= marks
        return {}

    def _kinds(self, params: dict[str, Any]) -> list[Any]:
        """By name: an unknown one fails the call. By filter: it is left out."""
        for name in params.get("InstanceTypes", []):
            if name not in self.catalogue.kinds:
                raise Refused("InvalidInstanceType", f"The following supplied instance types do not exist: [{name}]")
        wanted = set(params.get("InstanceTypes", [])) or self._filtered(params) or set(self.catalogue.kinds)
        return [kind for kind in self.catalogue.kinds.values() if kind.name in wanted]

    def _offerings(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        wanted = self._filtered(params)
        return [
            {"InstanceType": name, "LocationType": "availability-zone", "Location": zone}
            for name in self.catalogue.kinds
            for zone in self.catalogue.zones
            if name in wanted and (name, zone) not in self.catalogue.not_offered
        ]

    @staticmethod
    def _filtered(params: dict[str, Any]) -> set[str]:
        return {value for one in params.get("Filters", []) if one["Name"] == "instance-type" for value in one["Values"]}

    def _image(self, identity: str) -> dict[str, Any]:
        if identity not in self.catalogue.images:
            raise Refused("InvalidAMIID.NotFound", f"The image id '[{identity}]' does not exist")
        root, size = self.catalogue.images[identity]
        devices = [{"DeviceName": root, "Ebs": {"VolumeSize": size, "VolumeType": "gp3"}}]
        return {"ImageId": identity, "RootDeviceName": root, "BlockDeviceMappings": devices, "State": "available"}
