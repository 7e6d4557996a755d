"""EC2 of one region: which function answers each call; and ends, consoles and tags."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from localaws.model import Refused
from localaws.services.ec2_capacity import CapacityReservation
from localaws.services.ec2_checks import TAGS, check_tags
from localaws.services.ec2_describe import describe_instances, describe_profiles
from localaws.services.ec2_instance import NEVER, Machine
from localaws.services.ec2_launch import run_instances
from localaws.services.ec2_parts import OPERATIONS, Part
from localaws.services.ec2_reservations import check_reservation, describe_reservations
from localaws.services.ec2_spot import price_history
from localaws.services.ec2_state import Ec2State

OURS = re.compile(r"(i|vol|eni|sir|cr)-[0-9a-f]+")
"""Forms of the ids that the model knows."""
TERMINATE_AT_ONCE = 1000
KEPT_BYTES = 64 * 1024
"""Bytes of a console that EC2 keeps."""
WITHOUT_NITRO = ("p2.", "p3.", "g3.", "g3s.", "m4.", "c4.", "r4.", "t2.", "x1.", "i3.")
"""Families on Xen, whose newest console lines are not available. p3dn is not one of them."""


class Ec2(Ec2State):
    """One region, with its API. Whoever creates one supplies durations, receives changes, and may run the machines."""

    def check_reservation(self, request: Mapping[str, Any], zone: str) -> None:
        check_reservation(self, request, zone)

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
