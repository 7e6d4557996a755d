"""RunInstances of the model of EC2: ClientToken, launch template, and all or nothing."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from localaws.model import ACCOUNT, Refused
from localaws.services.ec2_capacity import MARKETS
from localaws.services.ec2_catalogue import Kind
from localaws.services.ec2_checks import check
from localaws.services.ec2_instance import Machine
from localaws.services.ec2_request import is_spot, tags_for, target
from localaws.services.ec2_spot import check_market, check_quota
from localaws.services.ec2_state import Ec2State

NO_CAPACITY = "InsufficientInstanceCapacity"
FROM_TEMPLATE = (
    "ImageId",
    "InstanceType",
    "UserData",
    "InstanceInitiatedShutdownBehavior",
    "DisableApiTermination",
    "MetadataOptions",
    "NetworkInterfaces",
    "SecurityGroupIds",
    "SecurityGroups",
    "IamInstanceProfile",
    "Placement",
    "Monitoring",
    "EbsOptimized",
)
"""Parameters that the request overrides as a whole; block devices and tags are merged entry by entry."""


def run_instances(ec2: Ec2State, params: Mapping[str, Any]) -> dict[str, Any]:
    """RunInstances.

    A ClientToken makes it idempotent: the same parameters again return the same instances, as they are now; other parameters
    raise IdempotentParameterMismatch; a token with a terminated instance raises IdempotentInstanceTerminated. A launch that met
    no capacity is remembered by its token, as people report of EC2 (Ec2State.keeps_refusals); any other refusal does not use the token
    up. MinCount = MaxCount = N is all or nothing within one type and zone.
    """
    token, digest = params.get("ClientToken", ""), _digest(params)
    if token in ec2.launches and not params.get("DryRun"):
        return _again(ec2, *ec2.launches[token], digest)
    if token in ec2.without_capacity and not params.get("DryRun"):
        raise _refuse_again(*ec2.without_capacity[token], digest)
    named = params.get("LaunchTemplate")
    request = with_template(params, ec2.catalogue.template(named) if named else {})
    kind, zone = check(ec2.catalogue, request)
    check_market(request)
    if (request.get("InstanceMarketOptions") or {}).get("MarketType") in MARKETS and not target(request):
        raise Refused("InvalidParameterCombination", "The market type requires a Capacity Reservation target.")
    if params.get("DryRun"):
        raise Refused("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
    _quota(ec2, request, kind)  # EC2 checks the quota before the capacity
    try:
        ec2.check_reservation(request, zone) if target(request) else ec2.check_capacity(request, zone)
    except Refused as refusal:
        if token and refusal.code == NO_CAPACITY and ec2.keeps_refusals:
            ec2.without_capacity[token] = (digest, refusal)
        raise
    machines = _launch(ec2, request, zone)
    if token:
        ec2.launches[token] = (digest, machines)
    for machine in machines:
        ec2.begin(machine)
    return _reservation(ec2, machines)


def _digest(params: Mapping[str, Any]) -> str:
    whole = {name: value for name, value in params.items() if name not in {"ClientToken", "DryRun"}}
    return hashlib.sha256(json.dumps(whole, sort_keys=True, default=repr).encode()).hexdigest()


def _refuse_again(before: str, refusal: Refused, digest: str) -> Refused:
    return refusal if before == digest else _mismatch()


def _mismatch() -> Refused:
    return Refused(
        "IdempotentParameterMismatch",
        "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).",
    )


def _again(ec2: Ec2State, before: str, machines: list[Machine], digest: str) -> dict[str, Any]:
    if before != digest:
        raise _mismatch()
    if any(machine.ending_at <= ec2.now for machine in machines):
        raise Refused(
            "IdempotentInstanceTerminated",
            "The client token you have provided is associated with a resource that is already terminated.",
        )
    return _reservation(ec2, machines)


def with_template(request: Mapping[str, Any], template: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the request with what the template adds to it."""
    merged = copy.deepcopy(dict(request))
    for name in FROM_TEMPLATE:
        if template.get(name) and not merged.get(name):
            merged[name] = copy.deepcopy(template[name])
    devices = {one["DeviceName"]: one for one in template.get("BlockDeviceMappings", [])}
    for one in request.get("BlockDeviceMappings", []):
        before = devices.get(one["DeviceName"], {})
        devices[one["DeviceName"]] = {**before, **one, "Ebs": {**before.get("Ebs", {}), **one.get("Ebs", {})}}
    merged["BlockDeviceMappings"] = list(devices.values())
    specified = merged.setdefault("TagSpecifications", [])
    kinds = [one["ResourceType"] for one in specified]
    specified += [one for one in template.get("TagSpecifications", []) if one["ResourceType"] not in kinds]
    return merged


def _quota(ec2: Ec2State, request: Mapping[str, Any], kind: Kind) -> None:
    spot = is_spot(request)
    running = [ec2.catalogue.kind(one.request["InstanceType"]) for one in ec2.running() if one.is_spot == spot]
    used = sum(one.vcpus for one in running if one)
    if spot:
        check_quota(ec2, kind.vcpus * request["MaxCount"], used)
    elif ec2.vcpu_quota is not None and used + kind.vcpus * request["MaxCount"] > ec2.vcpu_quota:
        raise Refused(
            "VcpuLimitExceeded", f"You have requested more vCPU capacity than your limit of {ec2.vcpu_quota}."
        )


def _launch(ec2: Ec2State, request: dict[str, Any], zone: str) -> list[Machine]:
    reservation, made, now = ec2.name("r"), [], ec2.now
    for index in range(request["MaxCount"]):
        machine = Machine(
            id=ec2.name("i"),
            region=ec2.region,
            zone=zone,
            request=request,
            index=index,
            address=ec2.address(),
            launched_at=now,
            visible_at=now + ec2.invisible_s,
            running_at=now + ec2.pending_s,
            reservation=reservation,
            tags=tags_for(request, "instance"),
            known_to_iam_at=now + ec2.iam_s,
            protected=bool(request.get("DisableApiTermination")),
        )
        machine.parts = ec2.parts.of_launch(request, tags_for)
        ec2.machines[machine.id] = machine
        made.append(machine)
    return made


def _reservation(ec2: Ec2State, machines: list[Machine]) -> dict[str, Any]:
    """Returns the answer: private addresses are in it at once; the order of instances is not guaranteed."""
    return {
        "ReservationId": machines[0].reservation,
        "OwnerId": ACCOUNT,
        "Instances": [ec2.shown(machine, ec2.now) for machine in reversed(machines)],
    }
