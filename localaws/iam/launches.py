"""What IAM checks before it allows RunInstances: every resource that a launch makes or uses, its tags, its role, and spot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from localaws.iam.account import Account
from localaws.iam.parameters import Asked, Context, account_of, arn, asking, numbered, specified, tagged
from localaws.recorder import Call

SPOT_ROLE = "aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
SPOT = "spot-instances-request"
TARGET = "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId"
OF_DEVICE = re.compile(r"BlockDeviceMapping\.(\d+)\.(DeviceName|Ebs\.\w+)")
OF_INTERFACE = re.compile(r"NetworkInterface\.(\d+)\.(\w+)")


def questions(call: Call, account: Account) -> Asked:
    """Yields nothing about what the account's own defaults would add: a launch that needs them is denied."""
    given = call.parameters
    named = given.get("LaunchTemplate.LaunchTemplateId", "")
    template = account.template(call.region, named, given.get("LaunchTemplate.Version", "$Default")) if named else {}
    image = account.image(call.region, given["ImageId"])
    for kind, contexts in (
        ("instance", [_instance(call, template)]),
        ("volume", list(_volumes(call, template, image))),
        ("network-interface", list(_interfaces(call))),
    ):
        tags = asking(specified(call, kind))
        for context in contexts:
            yield call.name, arn(call, f"{kind}/*"), tags | context
        if tags:
            yield "ec2:CreateTags", arn(call, f"{kind}/*"), tags | {"ec2:CreateAction": call.action}
    owner: Context = {"ec2:Owner": image["ImageOwnerAlias"] if image.get("ImageOwnerAlias") else image["OwnerId"]}
    yield call.name, f"arn:aws:ec2:{call.region}::image/{given['ImageId']}", owner
    yield from _used(call, account)
    if profile := given.get("IamInstanceProfile.Arn") or given.get("IamInstanceProfile.Name"):
        yield "iam:PassRole", account.role(profile), {"iam:PassedToService": "ec2.amazonaws.com"}
    if given.get("InstanceMarketOptions.MarketType") == "spot":
        tags = asking(specified(call, SPOT))
        yield call.name, arn(call, f"{SPOT}/*"), tags
        if tags:
            yield "ec2:CreateTags", arn(call, f"{SPOT}/*"), tags | {"ec2:CreateAction": call.action}
        # An account's first spot launch creates the service's role, on behalf of the caller.
        role = f"arn:aws:iam::{account_of(call)}:role/{SPOT_ROLE}"
        yield "iam:CreateServiceLinkedRole", role, {"iam:AWSServiceName": "spot.amazonaws.com"}


def _used(call: Call, account: Account) -> Asked:
    given = call.parameters
    for snapshot in (value for key, value in given.items() if key.endswith(".Ebs.SnapshotId")):
        yield call.name, f"arn:aws:ec2:{call.region}::snapshot/{snapshot}", {}
    used = [
        *(("subnet", one) for one in numbered(call, "NetworkInterface.", ".SubnetId")),
        *(("security-group", value) for key, value in given.items() if ".SecurityGroupId." in key),
        *(("launch-template", given[key]) for key in ("LaunchTemplate.LaunchTemplateId",) if key in given),
        *(("placement-group", given[key]) for key in ("Placement.GroupName",) if key in given),
        *(("capacity-reservation", given[key]) for key in (TARGET,) if key in given),
        *(("key-pair", given[key]) for key in ("KeyName",) if key in given),
    ]
    for kind, one in used:
        yield call.name, arn(call, f"{kind}/{one}"), tagged("ResourceTag", account.tags(call.region, one))


def _instance(call: Call, template: Mapping[str, Any]) -> Context:
    """What the request says goes before what the template says."""
    given, context = call.parameters, Context()
    options, profile = template.get("MetadataOptions", {}), template.get("IamInstanceProfile", {})
    if tokens := given.get("MetadataOptions.HttpTokens") or options.get("HttpTokens"):
        context["ec2:MetadataHttpTokens"] = tokens
    name = given.get("IamInstanceProfile.Name") or profile.get("Name")
    named = f"arn:aws:iam::{account_of(call)}:instance-profile/{name}" if name else ""
    if asked := given.get("IamInstanceProfile.Arn") or profile.get("Arn") or named:
        context["ec2:InstanceProfile"] = asked
    return context


def _volumes(call: Call, template: Mapping[str, Any], image: Mapping[str, Any]) -> Iterator[Context]:
    """One volume for each device of the image, the template and the request; each says only what the one before leaves open."""
    devices: dict[str, dict[str, Any]] = {}
    for one in (*image.get("BlockDeviceMappings", []), *template.get("BlockDeviceMappings", []), *_devices(call)):
        if "Ebs" in one:
            devices.setdefault(one["DeviceName"], {}).update(one["Ebs"])
    for ebs in devices.values():
        yield {"ec2:Encrypted": str(ebs.get("Encrypted", False)).lower()}


def _devices(call: Call) -> Iterator[dict[str, Any]]:
    for fields in _by_number(call, OF_DEVICE).values():
        ebs = {key.removeprefix("Ebs."): value for key, value in fields.items() if key.startswith("Ebs.")}
        yield {"DeviceName": fields.get("DeviceName", ""), **({"Ebs": ebs} if ebs else {})}


def _interfaces(call: Call) -> Iterator[Context]:
    """A request without interfaces leaves it to the subnet whether there is a public address."""
    for fields in _by_number(call, OF_INTERFACE).values() or [{}]:
        public = fields.get("AssociatePublicIpAddress")
        yield {} if public is None else {"ec2:AssociatePublicIpAddress": str(public).lower()}


def _by_number(call: Call, pattern: re.Pattern[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for key, value in call.parameters.items():
        if match := pattern.fullmatch(key):
            found.setdefault(match[1], {})[match[2]] = value
    return found
