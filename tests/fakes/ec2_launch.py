"""RunInstances of the fake EC2: what it refuses, what a ClientToken means, and all or nothing."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

from localaws.model import Refused
from tests.fakes.ec2_machine import Machine

if TYPE_CHECKING:
    from tests.fakes.ec2 import Ec2

USER_DATA_BYTES = 16 * 1024
TAGS = 50
METADATA_KEY = re.compile(r"[0-9a-zA-Z\-_+=,.@:]{1,255}")
"""Keys that instance metadata can show: no `/`, no space."""


def run_instances(ec2: Ec2, params: dict[str, Any]) -> dict[str, Any]:
    """RunInstances.

    A ClientToken makes it idempotent: the same parameters again answer the same instances, as they are now; other parameters
    are IdempotentParameterMismatch; a token one of whose instances has been terminated is IdempotentInstanceTerminated. A
    launch that was refused uses no token up. MinCount = MaxCount = N is all or nothing within one type and zone.
    """
    token, digest = params.get("ClientToken", ""), _digest(params)
    if len(token) > 64:
        raise Refused("InvalidParameterValue", "Client token exceeds the maximum length of 64 ASCII characters")
    if token in ec2.launches:
        return _again(ec2, *ec2.launches[token], digest)
    request = _with_template(ec2, params)
    zone = _check(ec2, request)
    _capacity(ec2, request, zone)
    machines = _launch(ec2, request, zone)
    if token:
        ec2.launches[token] = (digest, machines)
    return _reservation(ec2, machines)


def _digest(params: dict[str, Any]) -> str:
    whole = {name: value for name, value in params.items() if name not in {"ClientToken", "DryRun"}}
    return hashlib.sha256(json.dumps(whole, sort_keys=True, default=repr).encode()).hexdigest()


def _again(ec2: Ec2, before: str, machines: list[Machine], digest: str) -> dict[str, Any]:
    if before != digest:
        raise Refused(
            "IdempotentParameterMismatch",
            "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).",
        )
    if any(machine.ending_at <= ec2.now for machine in machines):
        raise Refused(
            "IdempotentInstanceTerminated",
            "The client token you have provided is associated with a resource that is already terminated.",
        )
    return _reservation(ec2, machines)


def _with_template(ec2: Ec2, params: dict[str, Any]) -> dict[str, Any]:
    """The request over the template's data. `$Default` is version 1 for ever under CloudFormation: numbers only, here."""
    request = copy.deepcopy(params)
    named = request.get("LaunchTemplate")
    if named is None:
        return request
    template = ec2.catalogue.templates.get(named.get("LaunchTemplateId", ""))
    if template is None:
        raise Refused("InvalidLaunchTemplateId.NotFound", f"The specified launch template {named} does not exist.")
    if named.get("Version") != template.version:
        raise Refused("InvalidLaunchTemplateId.VersionNotFound", f"Could not find version {named.get('Version')}.")
    return copy.deepcopy(template.data) | request


def _check(ec2: Ec2, request: dict[str, Any]) -> str:
    """Everything that no service model says; returns the zone."""
    catalogue = ec2.catalogue
    interfaces = request.get("NetworkInterfaces") or []
    if interfaces and (request.get("SubnetId") or request.get("SecurityGroupIds") or request.get("SecurityGroups")):
        raise Refused(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level subnet ID or security groups may not be specified on the same request",
        )
    if not interfaces:
        interfaces = [{"SubnetId": request.get("SubnetId"), "Groups": request.get("SecurityGroupIds", [])}]
        request["NetworkInterfaces"] = interfaces
    kind = catalogue.kinds.get(request.get("InstanceType", ""))
    if kind is None:
        raise Refused("InvalidParameterValue", f"Invalid value '{request.get('InstanceType')}' for InstanceType.")
    subnet = interfaces[0].get("SubnetId") or ""
    zone = catalogue.subnets.get(subnet)
    if zone is None:
        raise Refused("InvalidSubnetID.NotFound", f"The subnet ID '{subnet}' does not exist")
    if unknown := set(interfaces[0].get("Groups") or []) - catalogue.security_groups:
        raise Refused("InvalidGroup.NotFound", f"The security group '{min(unknown)}' does not exist")
    placement = request.get("Placement") or {}
    if placement.get("AvailabilityZone", zone) != zone:
        raise Refused("InvalidParameterValue", f"The subnet {subnet} is not in {placement['AvailabilityZone']}")
    if group := placement.get("GroupName"):
        if group not in catalogue.groups:
            raise Refused("InvalidPlacementGroup.Unknown", f"The Placement Group '{group}' is unknown.")
        if not kind.cluster:
            raise Refused("InvalidParameterCombination", f"Cluster placement groups are not supported by {kind.name}")
    profile = (request.get("IamInstanceProfile") or {}).get("Arn")
    if profile and profile not in catalogue.profiles:
        raise Refused("InvalidParameterValue", f"Value ({profile}) for parameter iamInstanceProfile.arn is invalid.")
    _check_disk(ec2, request)
    if len(base64.b64decode(request.get("UserData", ""))) > USER_DATA_BYTES:
        raise Refused("InvalidParameterValue", f"User data is limited to {USER_DATA_BYTES} bytes")
    metadata = (request.get("MetadataOptions") or {}).get("InstanceMetadataTags") == "enabled"
    for specification in request.get("TagSpecifications") or []:
        marks = {tag["Key"]: tag.get("Value", "") for tag in specification["Tags"]}
        if len(marks) < len(specification["Tags"]):
            raise Refused("InvalidParameterValue", "Duplicate tag key specified")
        check_tags(marks, metadata=metadata and specification["ResourceType"] == "instance")
    if (kind.name, zone) in catalogue.not_offered:
        raise Refused("Unsupported", f"Your requested instance type ({kind.name}) is not supported in {zone}.")
    return zone


def _check_disk(ec2: Ec2, request: dict[str, Any]) -> None:
    image = ec2.catalogue.images.get(request.get("ImageId", ""))
    if image is None:
        raise Refused("InvalidAMIID.NotFound", f"The image id '[{request.get('ImageId')}]' does not exist")
    root, gigabytes = image
    for device in request.get("BlockDeviceMappings") or []:
        size = device.get("Ebs", {}).get("VolumeSize", gigabytes)
        if device["DeviceName"] == root and size < gigabytes:
            raise Refused(
                "InvalidBlockDeviceMapping",
                f"Volume of size {size}GB is smaller than snapshot, expect size >= {gigabytes}GB",
            )


def check_tags(marks: dict[str, str], *, metadata: bool) -> None:
    """Keys have at most 128 characters, values 256, `aws:` belongs to AWS; with tags in metadata, keys are restricted."""
    if len(marks) > TAGS:
        raise Refused("TagLimitExceeded", f"More than {TAGS} tags were specified")
    for key, value in marks.items():
        if not 1 <= len(key) <= 128 or key.lower().startswith("aws:"):
            raise Refused("InvalidParameterValue", f"Tag key {key!r} is not allowed")
        if len(value) > 256:
            raise Refused("InvalidParameterValue", f"Tag value exceeds the maximum length of 256 characters ({key})")
        if metadata and not METADATA_KEY.fullmatch(key):
            raise Refused("InvalidParameterValue", f"'{key}' is not a valid tag key for tags in instance metadata.")


def _capacity(ec2: Ec2, request: dict[str, Any], zone: str) -> None:
    """Quota first, then capacity. Missing capacity arrives as HTTP 500, which botocore by default asks again five times."""
    kind = ec2.catalogue.kinds[request["InstanceType"]]
    running = [machine for machine in ec2.machines.values() if machine.state(ec2.now) in {"pending", "running"}]
    used = sum(ec2.catalogue.kinds[machine.request["InstanceType"]].vcpus for machine in running)
    if ec2.vcpu_quota is not None and used + kind.vcpus * request["MaxCount"] > ec2.vcpu_quota:
        raise Refused(
            "VcpuLimitExceeded", f"You have requested more vCPU capacity than your limit of {ec2.vcpu_quota}."
        )
    free = ec2.capacity.get((kind.name, zone))
    if free is None:
        return
    here = sum(one.zone == zone and one.request["InstanceType"] == kind.name for one in running)
    if here + request["MinCount"] > free:
        raise Refused(
            "InsufficientInstanceCapacity",
            f"We currently do not have sufficient {kind.name} capacity in the Availability Zone you requested ({zone}).",
            500,
        )


def _launch(ec2: Ec2, request: dict[str, Any], zone: str) -> list[Machine]:
    marks: list[dict[str, str]] = next(
        (s["Tags"] for s in request.get("TagSpecifications") or [] if s["ResourceType"] == "instance"), []
    )
    reservation, made = ec2.name("r"), []
    for index in range(request["MaxCount"]):
        number = len(ec2.machines)
        machine = Machine(
            id=ec2.name("i"),
            zone=zone,
            request=request,
            index=index,
            address=f"10.0.{number // 250}.{number % 250 + 4}",
            launched_at=ec2.now,
            visible_at=ec2.now + ec2.invisible_s,
            running_at=ec2.now + ec2.pending_s,
            reservation=reservation,
            tags={tag["Key"]: tag.get("Value", "") for tag in marks},
        )
        ec2.machines[machine.id] = machine
        made.append(machine)
        ec2.changed(machine, ec2.now)
        ec2.changed(machine, machine.running_at)
    return made


def _reservation(ec2: Ec2, machines: list[Machine]) -> dict[str, Any]:
    """Private addresses are in the answer at once; the order of instances is not a promise."""
    return {
        "ReservationId": machines[0].reservation,
        "OwnerId": "123456789012",
        "Instances": [machine.shown(ec2.now) for machine in reversed(machines)],
    }
