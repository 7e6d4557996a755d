"""RunInstances as EC2 has it: tokens, all or nothing, templates, refusals, capacity, and a lost answer where it was asked for."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import random
from collections.abc import Mapping
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.instances import Instance
from moto.ec2.models.subnets import Subnet
from moto.ec2.responses.instances import InstanceResponse
from moto.iam import iam_backends

from localaws.services import ec2_checks
from localaws.services.ec2_checks import Refused
from localaws.services.ec2_machines import GONE, Aws, Function, Machines, replace

FROM_TEMPLATE = (
    "ImageId",
    "InstanceType",
    "UserData",
    "InstanceInitiatedShutdownBehavior",
    "MetadataOptions",
    "NetworkInterfaces",
    "SecurityGroupIds",
    "SecurityGroups",
    "IamInstanceProfile",
    "Placement",
    "Monitoring",
    "EbsOptimized",
)
"""What the request overrides as a whole; block devices and tags are merged entry by entry."""
_chance = random.SystemRandom()  # two rehearsals on one computer must not meet on an address, whatever their seeds


def install(aws: Aws, machines: Machines) -> None:
    replace(aws, InstanceResponse, "run_instances", lambda original: _run_instances(machines, original))
    replace(aws, Subnet, "get_available_subnet_ip", _loopback_address)


def _loopback_address(original: Function) -> Function:
    """Instances get addresses of 127.0.0.0/8, so that a node's processes can bind and reach the private address."""

    def get_available_subnet_ip(self: Any, instance: Any) -> str:
        if not isinstance(instance, Instance):
            return str(original(self, instance))
        while True:
            address = f"127.{_chance.randrange(16, 255)}.{_chance.randrange(256)}.{_chance.randrange(4, 255)}"
            if address not in self._subnet_ips:
                self._subnet_ips[address] = instance
                return address

    return get_available_subnet_ip


def _run_instances(machines: Machines, original: Function) -> Function:
    def run_instances(self: Any) -> Any:
        request = dict(self.params)
        try:
            with machines.lock:
                reservation = _launch(machines, original, self, request)
                return _answer(machines, reservation, _marks(request))
        except Refused as refused:
            return refused.response()

    return run_instances


def _marks(request: Mapping[str, Any]) -> dict[str, str]:
    """The tags of what a launch makes."""
    return {tag["Key"]: str(tag["Value"]) for one in request.get("TagSpecifications", []) for tag in one["Tags"]}


def _answer(machines: Machines, reservation: Any, marks: Mapping[str, str]) -> Any:
    """The answer, unless the fault `response-lost` has it."""
    if machines.aws.conditions.fault("response-lost", marks) is not None and not machines.responses_lost:
        machines.responses_lost += 1
        raise Refused("InternalError", "An internal error has occurred", 500)
    return ActionResult(reservation)


def _launch(machines: Machines, original: Function, call: Any, request: Mapping[str, Any]) -> Any:
    backend = call.ec2_backend
    key = (backend.region_name, str(request.get("ClientToken", "")))
    digest = _digest(request)
    if key[1] and key in machines.tokens:
        return _again(machines.tokens[key], digest)
    merged = with_template(request, _template(backend, request.get("LaunchTemplate") or {}))
    profile = _profile(call, merged.get("IamInstanceProfile") or {})
    ec2_checks.check(backend, merged)
    if request.get("DryRun"):
        raise Refused("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
    _check_capacity(machines, backend, merged)
    call.params = {**merged, "ClientToken": key[1]}
    reservation = original(call)._result
    for record in reservation.instances:
        _complete(backend, record, merged, profile)
        instance_tags = backend.tags.get(record.id, {})
        shown = {name: value for name, value in instance_tags.items() if not name.startswith("aws:")}
        machines.launched(record, base64.b64decode(merged.get("UserData") or ""), shown)
    if key[1]:
        machines.tokens[key] = (digest, reservation)
    return reservation


def _digest(request: Mapping[str, Any]) -> str:
    whole = {name: value for name, value in request.items() if name not in {"ClientToken", "DryRun"}}
    return hashlib.sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()


def _again(before: tuple[str, Any], digest: str) -> Any:
    """A token for the second time."""
    if before[0] != digest:
        raise Refused(
            "IdempotentParameterMismatch",
            "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).",
        )
    if any(record._state.name in GONE for record in before[1].instances):
        raise Refused(
            "IdempotentInstanceTerminated",
            "The client token you have provided is associated with a resource that is already terminated.",
        )
    return before[1]


def _template(backend: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    """The data of the launch template's version; empty where none is named."""
    if not named:
        return {}
    templates, identity = backend.launch_templates, named.get("LaunchTemplateId")
    if identity is None:
        identity = backend.launch_template_name_to_ids.get(named.get("LaunchTemplateName"))
    template = templates.get(identity)
    if template is None:
        raise Refused(
            "InvalidLaunchTemplateId.NotFound",
            f"The specified launch template, with template ID {identity}, does not exist.",
        )
    version = str(named.get("Version") or "$Default")
    if not version.startswith("$") and not (version.isdecimal() and 1 <= int(version) <= len(template.versions)):
        raise Refused(
            "InvalidLaunchTemplateId.VersionNotFound",
            f"Could not find launch template version {version} for {identity}.",
        )
    return dict(copy.deepcopy(template.get_version(version).data))


def with_template(request: Mapping[str, Any], template: Mapping[str, Any]) -> dict[str, Any]:
    """The request with what the template adds to it."""
    merged = copy.deepcopy(dict(request))
    for name in FROM_TEMPLATE:
        if template.get(name) and not merged.get(name):
            value = template[name]
            merged[name] = str(value) if name == "UserData" else value
    devices = {one["DeviceName"]: one for one in template.get("BlockDeviceMappings", [])}
    for one in request.get("BlockDeviceMappings", []):
        before = devices.get(one["DeviceName"], {})
        devices[one["DeviceName"]] = {**before, **one, "Ebs": {**before.get("Ebs", {}), **one.get("Ebs", {})}}
    if devices:
        merged["BlockDeviceMappings"] = list(devices.values())
    kinds = [one["ResourceType"] for one in request.get("TagSpecifications", [])]
    merged["TagSpecifications"] = [
        *request.get("TagSpecifications", []),
        *(one for one in template.get("TagSpecifications", []) if one["ResourceType"] not in kinds),
    ]
    if not merged["TagSpecifications"]:
        del merged["TagSpecifications"]
    return merged


def _profile(call: Any, named: Mapping[str, str]) -> str:
    """ARN of the instance profile, empty for none."""
    if not named:
        return ""
    for profile in iam_backends[call.current_account][call.partition].instance_profiles.values():
        if named.get("Arn") in {None, profile.arn} and named.get("Name") in {None, profile.name}:
            return str(profile.arn)
    field, value = next(iter(named.items()))
    raise Refused(
        "InvalidParameterValue",
        f"Value ({value}) for parameter iamInstanceProfile.{field.lower()} is invalid. Invalid IAM Instance Profile {field.upper()}",
    )


def _check_capacity(machines: Machines, backend: Any, request: Mapping[str, Any]) -> None:
    """The fault `no-capacity`: the first `rungs` pairs of type and zone have nothing, once each."""
    fault = machines.aws.conditions.fault("no-capacity", _marks(request))
    if fault is None:
        return
    pair = (request["InstanceType"], ec2_checks.zone(backend, request))
    if pair in machines.without_capacity or len(machines.without_capacity) >= fault.number("rungs"):
        return
    machines.without_capacity.add(pair)
    raise Refused(
        "InsufficientInstanceCapacity",
        f"We currently do not have sufficient {pair[0]} capacity in the Availability Zone you requested ({pair[1]}). "
        "Our system will be working on provisioning additional capacity.",
        500,
    )


def _complete(backend: Any, record: Any, request: Mapping[str, Any], profile: str) -> None:
    """What moto leaves out of an instance: its group, options, profile (but for the first) and tags of its parts."""
    record._placement.group_name = (request.get("Placement") or {}).get("GroupName", "")
    if profile and not record.iam_instance_profile:
        backend.associate_iam_instance_profile(instance_id=record.id, iam_instance_profile_arn=profile)
    for specification in request.get("TagSpecifications", []):
        if specification["ResourceType"] == "network-interface":
            for interface in record.nics.values():
                interface.add_tags({tag["Key"]: tag["Value"] for tag in specification["Tags"]})
