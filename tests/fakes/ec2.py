"""EC2 of one region on a virtual clock, without machines behind the instances; and the catalogue's own describe calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from contract import names
from localaws.model import Refused
from localaws.services.ec2_instance import Machine
from localaws.services.ec2_model import Ec2
from localaws.services.ec2_zones import described
from tests.fakes.clock import Clock
from tests.fakes.ec2_catalogue import Catalogue

Publish = Callable[[str, str, dict[str, Any]], None]
"""Source, detail type, detail."""


class FakeEc2(Ec2):
    """The public fields are knobs."""

    clock: Clock
    catalogue: Catalogue
    invisible_s = 1.0
    lag_s = 0.5
    iam_s = 0.0
    keeps_refusals = True
    pending_s = 15.0
    shutting_s = 120.0
    volume_key = "alias/aws/ebs"

    def __init__(
        self, region: str, clock: Clock, catalogue: Catalogue, publish: Publish, number: Callable[[], int]
    ) -> None:
        super().__init__(region, clock, catalogue, number)
        self._publish = publish
        self.rules: dict[str, dict[str, list[dict[str, Any]]]] = {}
        """Of security groups, by their ids: `Ingress` and `Egress`."""
        self.described: dict[str, Any] = {}
        """For tests: operations with answers of their own."""

    def at(self, when: float, action: Callable[[], None]) -> None:
        self.clock.at(when, action)

    def tell(self, machine: Machine, state: str) -> None:
        detail = {"instance-id": machine.id, "state": state}
        self._publish("aws.ec2", "EC2 Instance State-change Notification", detail)

    def put(self, tags: Mapping[str, str], *, launched_at: float, profile: str = "", **fields: Any) -> Machine:
        """For tests: an instance that is there, however it came to be."""
        request: dict[str, Any] = {
            "ImageId": "ami-1",
            "InstanceType": "g5.xlarge",
            "NetworkInterfaces": [{"SubnetId": "subnet-a"}],
            "IamInstanceProfile": {"Arn": profile},
        }
        given: dict[str, Any] = {
            "id": self.name("i"),
            "region": self.region,
            "zone": self.catalogue.zones[0],
            "request": request,
            "index": 0,
            "address": "10.9.9.9",
            "launched_at": launched_at,
            "visible_at": launched_at,
            "running_at": launched_at,
            "reservation": self.name("r"),
            "tags": dict(tags),
        }
        machine = Machine(**(given | fields))
        self.machines[machine.id] = machine
        return machine

    def zone_names(self) -> list[str]:
        return list(self.catalogue.zones)

    def answer(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if operation in self.described:
            return dict(self.described[operation])
        match operation:
            case "DescribeInstanceTypes":
                return {"InstanceTypes": [kind.shown() for kind in self._kinds(params)]}
            case "DescribeInstanceTypeOfferings":
                return {"InstanceTypeOfferings": self._offerings(params)}
            case "DescribeAvailabilityZones":
                return {"AvailabilityZones": described(self.catalogue.every_zone(), params)}
            case "GetEbsDefaultKmsKeyId":
                return {"KmsKeyId": self.volume_key}
            case "DescribeVpcs":
                return {"Vpcs": []}
            case "DescribeSecurityGroups" if "GroupIds" not in params:
                return {"SecurityGroups": []}
            case "DescribeSecurityGroups":
                return {"SecurityGroups": [self._rules(group) for group in params["GroupIds"]]}
            case "RevokeSecurityGroupIngress" | "RevokeSecurityGroupEgress":
                self._revoke(operation.removeprefix("RevokeSecurityGroup"), params)
                return {"Return": True}
            case "DescribeImages":
                return {"Images": [self._image(identity) for identity in params.get("ImageIds", [])]}
        return super().answer(operation, params)

    def _rules(self, group: str) -> dict[str, Any]:
        if group not in self.rules:
            raise Refused("InvalidGroup.NotFound", f"The security group '{group}' does not exist")
        found = self.rules[group]
        return {"GroupId": group, "IpPermissions": found["Ingress"], "IpPermissionsEgress": found["Egress"]}

    def _revoke(self, way: str, params: Mapping[str, Any]) -> None:
        found = self.rules[params["GroupId"]][way]
        for rule in params["IpPermissions"]:
            # On its way a rule gains and loses empty lists.
            same = [one for one in found if _without_empty(one) == _without_empty(rule)]
            if not same:
                raise Refused("InvalidPermission.NotFound", "The specified rule does not exist in this security group.")
            found.remove(same[0])

    def _kinds(self, params: Mapping[str, Any]) -> list[Any]:
        """By name: an unknown one fails the call. By filter: it is left out."""
        for name in params.get("InstanceTypes", []):
            if name not in self.catalogue.kinds:
                raise Refused("InvalidInstanceType", f"The following supplied instance types do not exist: [{name}]")
        wanted = set(params.get("InstanceTypes", [])) or self._filtered(params) or set(self.catalogue.kinds)
        return [kind for kind in self.catalogue.kinds.values() if kind.name in wanted]

    def _offerings(self, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        wanted = self._filtered(params)
        return [
            {"InstanceType": name, "LocationType": "availability-zone", "Location": zone}
            for name in self.catalogue.kinds
            for zone in self.catalogue.zones
            if name in wanted and self.catalogue.offers(name, zone)
        ]

    @staticmethod
    def _filtered(params: Mapping[str, Any]) -> set[str]:
        return {value for one in params.get("Filters", []) if one["Name"] == "instance-type" for value in one["Values"]}

    def _image(self, identity: str) -> dict[str, Any]:
        image = self.catalogue.image(identity)
        if image is None:
            raise Refused("InvalidAMIID.NotFound", f"The image id '[{identity}]' does not exist")
        ebs = {"VolumeSize": image.snapshot_gb, "VolumeType": "gp3"}
        root = {"RootDeviceName": image.root_device, "State": "available", "Architecture": image.architecture}
        owner = self.catalogue.image_owners.get(identity, names.AWS_IMAGES)
        whose = {"OwnerId": owner} if owner.isdecimal() else {"OwnerId": "898082745236", "ImageOwnerAlias": owner}
        devices = (image.root_device, *self.catalogue.further_devices.get(identity, ()))
        mapped = [{"DeviceName": device, "Ebs": ebs} for device in devices]
        return {"ImageId": identity, **root, **whose, "BlockDeviceMappings": mapped}


def _without_empty(rule: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in rule.items() if value != []}
