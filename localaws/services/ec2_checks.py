"""What EC2 refuses about a launch; moto takes nearly everything."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES

from localaws import model
from localaws.services.ec2_groups import groups
from localaws.services.ec2_images import snapshot_gb

USER_DATA_BYTES = 16 * 1024
METADATA_TAG_KEY = re.compile(r"[0-9a-zA-Z\-_+=,.@:]{1,255}")


class Refused(model.Refused):
    """An EC2 error with its own HTTP status: moto's errors are all 400, and botocore judges by the status."""

    def response(self) -> tuple[int, dict[str, Any], str]:
        """As a moto response method returns it."""
        body = (
            '<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error>'
            f"<Code>{self.code}</Code><Message>{escape(self.message)}</Message></Error></Errors>"
            "<RequestID>00000000-0000-4000-8000-000000000000</RequestID></Response>"
        )
        return self.status, {"status": self.status, "Content-Type": "text/xml;charset=UTF-8"}, body


def check(backend: Any, request: Mapping[str, Any]) -> None:
    """Raises Refused for a request (its template merged in) that EC2 would not take."""
    if len(str(request.get("ClientToken", ""))) > 64:
        raise Refused("InvalidParameterValue", "Client token must be no longer than 64 ASCII characters")
    if int(request["MinCount"]) > int(request["MaxCount"]):
        raise Refused("InvalidParameterValue", "minCount must not be greater than maxCount")
    if len(base64.b64decode(request.get("UserData") or "")) > USER_DATA_BYTES:
        raise Refused("InvalidParameterValue", f"User data is limited to {USER_DATA_BYTES} bytes")
    _check_network(backend, request)
    _check_type(backend, request)
    _check_group(backend, request)
    _check_image(backend, request)
    _check_tags(request)


def subnet(backend: Any, request: Mapping[str, Any]) -> Any:
    """The subnet of the primary interface, None where the request names none."""
    interfaces = request.get("NetworkInterfaces") or []
    primary: Mapping[str, Any] = next((one for one in interfaces if int(one.get("DeviceIndex", 0)) == 0), {})
    name = primary.get("SubnetId") or request.get("SubnetId")
    if name is None:
        return None
    for zones in backend.subnets.values():
        if name in zones:
            return zones[name]
    raise Refused("InvalidSubnetID.NotFound", f"The subnet ID '{name}' does not exist")


def zone(backend: Any, request: Mapping[str, Any]) -> str:
    """Where the request wants to be, empty where it leaves that to EC2."""
    place = subnet(backend, request)
    return str(place.availability_zone) if place else str((request.get("Placement") or {}).get("AvailabilityZone", ""))


def _check_network(backend: Any, request: Mapping[str, Any]) -> None:
    interfaces = request.get("NetworkInterfaces") or []
    if interfaces and request.get("SubnetId"):
        raise Refused(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level subnet ID may not be specified on the same request",
        )
    if interfaces and (request.get("SecurityGroupIds") or request.get("SecurityGroups")):
        raise Refused(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level security groups may not be specified on the same request",
        )
    place = subnet(backend, request)
    wanted = (request.get("Placement") or {}).get("AvailabilityZone")
    if place and wanted and place.availability_zone != wanted:
        raise Refused(
            "InvalidParameterValue",
            f"Value ({wanted}) for parameter availabilityZone is invalid. Subnet '{place.id}' is in the availability zone "
            f"{place.availability_zone}",
        )
    named = [group for one in interfaces for group in one.get("Groups", [])] + list(
        request.get("SecurityGroupIds") or []
    )
    for group in named:
        if backend.get_security_group_from_id(group) is None:
            raise Refused("InvalidGroup.NotFound", f"The security group '{group}' does not exist")


def _check_type(backend: Any, request: Mapping[str, Any]) -> None:
    kind = request.get("InstanceType", "m1.small")
    if kind not in INSTANCE_TYPES:
        raise Refused("InvalidParameterValue", f"Invalid value '{kind}' for InstanceType.")
    wanted = zone(backend, request)
    offered = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(backend.region_name, [])
    zones = sorted(one["Location"] for one in offered if one["InstanceType"] == kind)
    if wanted and wanted not in zones:
        raise Refused(
            "Unsupported",
            f"Your requested instance type ({kind}) is not supported in your requested Availability Zone ({wanted}). "
            f"Please retry your request by not specifying an Availability Zone or choosing {', '.join(zones)}.",
        )


def _check_group(backend: Any, request: Mapping[str, Any]) -> None:
    name = (request.get("Placement") or {}).get("GroupName")
    if not name:
        return
    group = groups(backend).get(name)
    if group is None:
        raise Refused("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    kind = request["InstanceType"]
    if group.strategy not in INSTANCE_TYPES[kind].get("PlacementGroupInfo", {}).get("SupportedStrategies", []):
        raise Refused(
            "InvalidParameterCombination",
            f"Placement groups with the strategy '{group.strategy}' may not be used with instances of type '{kind}'.",
        )


def _check_image(backend: Any, request: Mapping[str, Any]) -> None:
    image = backend.amis.get(request.get("ImageId"))
    if image is None:
        raise Refused("InvalidAMIID.NotFound", f"The image id '[{request.get('ImageId')}]' does not exist")
    if image.architecture not in INSTANCE_TYPES[request["InstanceType"]]["ProcessorInfo"]["SupportedArchitectures"]:
        raise Refused(
            "InvalidParameterValue",
            f"The architecture '{image.architecture}' of the specified AMI does not match the architecture of the specified "
            f"instance type '{request['InstanceType']}'.",
        )
    for device in request.get("BlockDeviceMappings", []):
        size, least = int(device.get("Ebs", {}).get("VolumeSize") or 0), snapshot_gb(image)
        if device["DeviceName"] == image.root_device_name and 0 < size < least:
            raise Refused(
                "InvalidBlockDeviceMapping",
                f"Volume of size {size}GB is smaller than snapshot '{image.ebs_snapshot.id}', expect size >= {least}GB",
            )


def _check_tags(request: Mapping[str, Any]) -> None:
    for specification in request.get("TagSpecifications", []):
        for tag in specification["Tags"]:
            if len(tag["Key"]) > 128 or len(tag.get("Value", "")) > 256:
                raise Refused("InvalidParameterValue", f"Tag {tag['Key']!r} exceeds 128 characters, or its value 256")
            shown = (request.get("MetadataOptions") or {}).get("InstanceMetadataTags") == "enabled"
            if shown and specification["ResourceType"] == "instance" and not METADATA_TAG_KEY.fullmatch(tag["Key"]):
                raise Refused(
                    "InvalidParameterValue",
                    f"'{tag['Key']}' is not a valid tag key. Tag keys must match pattern ({METADATA_TAG_KEY.pattern}), "
                    "and must not be a reserved name ('.', '..', '_index')",
                )
