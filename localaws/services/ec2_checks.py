"""Checks launches for what EC2 refuses beyond botocore's model."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from localaws.model import Refused
from localaws.services import ec2_interfaces
from localaws.services.ec2_catalogue import Catalogue, Kind

USER_DATA_BYTES = 16 * 1024
TAGS = 50
METADATA_KEY = re.compile(r"[0-9a-zA-Z\-_+=,.@:]{1,255}")
"""Keys that instance metadata can show: no `/`, no space."""


def check(catalogue: Catalogue, request: dict[str, Any]) -> tuple[Kind, str]:
    """Returns type and zone of a request merged with its template. Completes its interfaces and its profile. Raises Refused."""
    if len(request.get("ClientToken", "")) > 64:
        raise _invalid("Client token exceeds the maximum length of 64 ASCII characters")
    if not 1 <= request["MinCount"] <= request["MaxCount"]:
        raise _invalid("minCount must be at least 1 and not greater than maxCount")
    if len(base64.b64decode(request.get("UserData") or "")) > USER_DATA_BYTES:
        raise _invalid(f"User data is limited to {USER_DATA_BYTES} bytes")
    zone = _network(catalogue, request)
    kind = catalogue.kind(request.get("InstanceType", ""))
    if kind is None:
        raise _invalid(f"Invalid value '{request.get('InstanceType')}' for InstanceType.")
    ec2_interfaces.check(kind, request["NetworkInterfaces"])
    _group(catalogue, request, kind)
    _image(catalogue, request, kind)
    _profile(catalogue, request)
    _specified_tags(request)
    if not catalogue.offers(kind.name, zone):
        raise Refused(
            "Unsupported",
            f"Your requested instance type ({kind.name}) is not supported in your requested Availability Zone ({zone}).",
        )
    return kind, zone


def _invalid(message: str) -> Refused:
    return Refused("InvalidParameterValue", message)


def _network(catalogue: Catalogue, request: dict[str, Any]) -> str:
    interfaces: list[dict[str, Any]] = request.get("NetworkInterfaces") or []
    if interfaces and (request.get("SubnetId") or request.get("SecurityGroupIds") or request.get("SecurityGroups")):
        raise Refused(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level subnet ID or security groups may not be specified on the same request",
        )
    if not interfaces:
        interfaces = [{"SubnetId": request.get("SubnetId"), "Groups": request.get("SecurityGroupIds", [])}]
        request["NetworkInterfaces"] = interfaces
    for one in interfaces:
        if catalogue.zone(one.get("SubnetId") or "") is None:
            raise Refused("InvalidSubnetID.NotFound", f"The subnet ID '{one.get('SubnetId') or ''}' does not exist")
        for group in one.get("Groups") or []:
            _admits(catalogue, group, one["SubnetId"])
    interfaces.sort(key=lambda one: (one.get("NetworkCardIndex", 0), one.get("DeviceIndex", 0)))
    subnet = interfaces[0]["SubnetId"]
    zone = catalogue.zone(subnet) or ""
    wanted = (request.get("Placement") or {}).get("AvailabilityZone", zone)
    if wanted != zone:
        raise _invalid(
            f"Value ({wanted}) for parameter availabilityZone is invalid. Subnet '{subnet}' is in the availability zone {zone}"
        )
    return zone


def _admits(catalogue: Catalogue, group: str, subnet: str) -> None:
    network = catalogue.network(group)
    if network is None:
        raise Refused("InvalidGroup.NotFound", f"The security group '{group}' does not exist")
    if network != catalogue.network(subnet):
        raise Refused("InvalidParameter", f"Security group {group} and subnet {subnet} belong to different networks.")


def _group(catalogue: Catalogue, request: Mapping[str, Any], kind: Kind) -> None:
    name = (request.get("Placement") or {}).get("GroupName")
    if not name:
        return
    strategy = catalogue.strategy(name)
    if strategy is None:
        raise Refused("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    if strategy not in kind.strategies:
        raise Refused(
            "InvalidParameterCombination",
            f"Placement groups with the strategy '{strategy}' may not be used with instances of type '{kind.name}'.",
        )


def _image(catalogue: Catalogue, request: Mapping[str, Any], kind: Kind) -> None:
    image = catalogue.image(request.get("ImageId", ""))
    if image is None:
        raise Refused("InvalidAMIID.NotFound", f"The image id '[{request.get('ImageId')}]' does not exist")
    if image.architecture not in kind.architectures:
        raise _invalid(
            f"The architecture '{image.architecture}' of the specified AMI does not match the architecture of the specified "
            f"instance type '{kind.name}'."
        )
    for device in request.get("BlockDeviceMappings") or []:
        size = device.get("Ebs", {}).get("VolumeSize", image.snapshot_gb)
        if device["DeviceName"] == image.root_device and size < image.snapshot_gb:
            raise Refused(
                "InvalidBlockDeviceMapping",
                f"Volume of size {size}GB is smaller than snapshot, expect size >= {image.snapshot_gb}GB",
            )
        _performance(device.get("Ebs", {}), size)


def _performance(ebs: Mapping[str, Any], size_gb: int) -> None:
    """What EC2 says of a gp3 volume that cannot be as fast as it was asked to be."""
    iops, throughput = ebs.get("Iops", 3000), ebs.get("Throughput", 125)
    if not 3000 <= iops <= 80_000:
        raise _invalid(f"Volume iops of {iops} is out of range; gp3 volumes take 3000 to 80000.")
    if iops > max(3000, 500 * size_gb):
        raise _invalid(f"Iops to volume size ratio of {iops / size_gb:f} is too high; maximum is 500")
    if throughput > iops / 4:
        raise _invalid(
            f"Throughput (MiBps) to iops ratio of {throughput / iops:f} is too high; maximum is 0.250000 MiBps per iops."
        )


def _profile(catalogue: Catalogue, request: dict[str, Any]) -> None:
    named = request.get("IamInstanceProfile")
    if not named:
        return
    arn = catalogue.profile(named)
    if not arn:
        field, value = next(iter(named.items()))
        raise _invalid(f"Value ({value}) for parameter iamInstanceProfile.{field.lower()} is invalid.")
    request["IamInstanceProfile"] = {"Arn": arn}


def _specified_tags(request: Mapping[str, Any]) -> None:
    metadata = (request.get("MetadataOptions") or {}).get("InstanceMetadataTags") == "enabled"
    for specification in request.get("TagSpecifications") or []:
        marks = {tag["Key"]: tag.get("Value", "") for tag in specification["Tags"]}
        if len(marks) < len(specification["Tags"]):
            raise _invalid("Duplicate tag key specified")
        check_tags(marks, metadata=metadata and specification["ResourceType"] == "instance")


def check_tags(marks: Mapping[str, str], *, metadata: bool) -> None:
    """Checks tags: keys have at most 128 characters, values 256, `aws:` is AWS's; with tags in metadata, keys are restricted."""
    if len(marks) > TAGS:
        raise Refused("TagLimitExceeded", f"More than {TAGS} tags were specified")
    for key, value in marks.items():
        if not 1 <= len(key) <= 128 or key.lower().startswith("aws:"):
            raise _invalid(f"Tag key {key!r} is not allowed")
        if len(value) > 256:
            raise _invalid(f"Tag value exceeds the maximum length of 256 characters ({key})")
        if metadata and not METADATA_KEY.fullmatch(key):
            raise _invalid(f"'{key}' is not a valid tag key for tags in instance metadata.")
