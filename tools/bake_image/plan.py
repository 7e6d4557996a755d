"""What a bake starts, decided by reading alone: nothing here changes anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from contract import names
from contract.aws_errors import code_of
from contract.codec import decode
from contract.places import Place
from stacks.settings import Settings
from tools.bake_image.recipe import Recipe, Rejected

if TYPE_CHECKING:
    from types_boto3_ec2.client import EC2Client
    from types_boto3_ec2.type_defs import ImageTypeDef
    from types_boto3_ssm.client import SSMClient

ARCHITECTURES = {"x86_64": "x86_64", "arm64": "arm64", "p3": "x86_64", "neuron": "x86_64"}
"""Of a family's images."""
INSTANCE_TYPES = {"x86_64": "m6i.xlarge", "arm64": "m6g.xlarge"}
"""What installs, by architecture: 4 vCPUs and 16 GiB, about $0.20 an hour (list price of us-east-1 from memory)."""
BASE_TAG = "trainyard-image:base"
REQUIREMENTS_TAG = "trainyard-image:requirements"
DIGEST_TAG = "trainyard-image:digest"
BAKED_TAG = "trainyard-image:baked"
"""Tags of our own on the image, its snapshot and the machine. Neither reaper nor rights of the deployment look at them: they look at
`contract.tags.DEPLOYMENT` and at the instance profile, and the machine has neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BakeOptions:
    """The options, as a person gave them."""

    family: str
    region: str
    base: str = ""
    subnet: str = ""
    security_group: str = ""
    instance_type: str = ""
    volume_gb: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One launch, and the image that is made of it."""

    recipe: Recipe
    name: str
    subnet: str
    security_group: str
    instance_type: str
    root_device: str
    volume_gb: int
    further_devices: tuple[str, ...]
    """Further devices of the base that are volumes."""
    volume_key: str
    """The ARN of the key under which the settings have disks encrypted; empty for what the account does by default."""
    tags: Mapping[str, str]
    """The settings' own, for everything that a bake makes."""


def base_of(chosen: BakeOptions, settings: Settings, ec2: EC2Client, ssm: SSMClient) -> ImageTypeDef:
    """Describes the base image. Raises Rejected if there is none, or if it is of another architecture."""
    option, named = ("--base", chosen.base) if chosen.base else (f"images.{chosen.family}", _named(chosen, settings))
    identity = _parameter(ssm, named, option, chosen.region) if named.startswith("/") else named
    try:
        images = ec2.describe_images(ImageIds=[identity])["Images"]
    except ClientError as problem:
        if not code_of(problem).startswith("InvalidAMIID"):
            raise
        images = []
    if not images:
        raise Rejected(f"{option}: {chosen.region} has no image {identity}; allowed: the id of an image of that region")
    image, wanted = images[0], ARCHITECTURES[chosen.family]
    if (state := image.get("State", "available")) != "available":
        raise Rejected(f"{option}: {identity} is {state}; allowed: an image that is available")
    if (architecture := image.get("Architecture", wanted)) != wanted:
        raise Rejected(
            f"{option}: {identity} is for {architecture}; allowed: an image for {wanted} (--family {chosen.family})"
        )
    for tag in image.get("Tags", []):
        if tag.get("Key") == BASE_TAG:
            raise Rejected(
                f"{option}: {identity} was baked itself, from {tag.get('Value')}; allowed: --base with that image, or with a newer one"
            )
    return image


def plan(
    chosen: BakeOptions, settings: Settings, base: ImageTypeDef, requirements: bytes, ec2: EC2Client, ssm: SSMClient
) -> Plan:
    """Looks everything up that a launch needs. Raises Rejected, with the option."""
    recipe = Recipe(base["ImageId"], requirements)
    subnet, network = _subnet(chosen, settings, ec2, ssm)
    root = base.get("RootDeviceName", "")
    sizes = {
        one.get("DeviceName", ""): one["Ebs"].get("VolumeSize", 0)
        for one in base.get("BlockDeviceMappings", [])
        if "Ebs" in one
    }
    snapshot_gb = sizes.pop(root, 0)
    if not snapshot_gb:
        raise Rejected(f"--base: {recipe.base} has no snapshot for its root device; allowed: an image on EBS")
    if chosen.volume_gb and chosen.volume_gb < snapshot_gb:
        raise Rejected(
            f"--volume-gb is {chosen.volume_gb}; allowed: {snapshot_gb} and more, the size of the base's snapshot"
        )
    return Plan(
        recipe=recipe,
        name=recipe.name(settings.deployment, chosen.family),
        subnet=subnet,
        security_group=_group(chosen, network, ec2),
        instance_type=_instance_type(chosen, ec2),
        root_device=root,
        volume_gb=chosen.volume_gb or snapshot_gb,
        further_devices=tuple(sizes),
        volume_key=next((one.volume_key for one in settings.regions if one.region == chosen.region), ""),
        tags=settings.tags,
    )


def _named(chosen: BakeOptions, settings: Settings) -> str:
    images: dict[str, str] = {**settings.images}
    if chosen.family not in images:
        set_ = ", ".join(sorted(images))
        raise Rejected(f"--family: cdk.json has no images.{chosen.family}; allowed: {set_}, or --base with an image")
    return images[chosen.family]


def _parameter(ssm: SSMClient, name: str, option: str, region: str) -> str:
    try:
        return ssm.get_parameter(Name=name)["Parameter"].get("Value", "")
    except ClientError as problem:
        if code_of(problem) != "ParameterNotFound":
            raise
        raise Rejected(
            f"{option}: {region} has no SSM parameter {name}; allowed: one that holds the id of an image"
        ) from None


def _subnet(chosen: BakeOptions, settings: Settings, ec2: EC2Client, ssm: SSMClient) -> tuple[str, str]:
    """Returns subnet and network."""
    described = names.region_parameter(settings.deployment, chosen.region)
    place = decode(Place, _parameter(ssm, described, "--region", chosen.region))
    ours = [zone.subnet for zone in place.zones]
    if not ours:
        raise Rejected(f"--region: {chosen.region} serves grids only; allowed: a region in which the deployment trains")
    subnet = chosen.subnet or ours[0]
    if subnet not in ours:
        raise Rejected(f"--subnet: {subnet} is not of the deployment; allowed: {', '.join(ours)}")
    try:
        found = ec2.describe_subnets(SubnetIds=[subnet])["Subnets"]
    except ClientError as problem:
        if code_of(problem) != "InvalidSubnetID.NotFound":
            raise
        raise Rejected(
            f"--subnet: {chosen.region} has no {subnet}; allowed: {', '.join(ours)}; or deploy again"
        ) from None
    return subnet, found[0].get("VpcId", "")


def _group(chosen: BakeOptions, network: str, ec2: EC2Client) -> str:
    """Returns the security group: by default that of the network, in which no node ever is. What packages run while they are installed
    then reaches no node, as it would in a group of nodes."""
    wanted: list[Any] = [{"Name": "vpc-id", "Values": [network]}]
    wanted.append(
        {"Name": "group-id", "Values": [chosen.security_group]}
        if chosen.security_group
        else {"Name": "group-name", "Values": ["default"]}
    )
    allowed = "allowed: a group of the subnet's network that lets TCP 443 out, and in which no node is"
    found = ec2.describe_security_groups(Filters=wanted)["SecurityGroups"]
    if not found:
        raise Rejected(f"--security-group: {network} has no {chosen.security_group or 'default group'}; {allowed}")
    group = found[0].get("GroupId", "")
    if not _lets_https_out(found[0].get("IpPermissionsEgress", [])):
        why = "" if chosen.security_group else " (the setting compliance closes default groups)"
        raise Rejected(f"--security-group: {group} lets no TCP 443 out{why}; {allowed}")
    return group


def _lets_https_out(rules: Sequence[Any]) -> bool:
    return any(
        rule.get("IpProtocol") == "-1"
        or (rule.get("IpProtocol") == "tcp" and rule.get("FromPort", 0) <= 443 <= rule.get("ToPort", 65_535))
        for rule in rules
        if any(one.get("CidrIp") == "0.0.0.0/0" for one in rule.get("IpRanges", []))
    )


def _instance_type(chosen: BakeOptions, ec2: EC2Client) -> str:
    wanted = ARCHITECTURES[chosen.family]
    kind: Any = chosen.instance_type or INSTANCE_TYPES[wanted]
    try:
        found = ec2.describe_instance_types(InstanceTypes=[kind])["InstanceTypes"]
    except ClientError as problem:
        if code_of(problem) not in {"InvalidInstanceType", "InvalidParameterValue"}:
            raise
        raise Rejected(
            f"--instance-type: {chosen.region} has no {kind}; allowed: a type of {wanted} that the region has"
        ) from None
    supported: list[str] = [*found[0].get("ProcessorInfo", {}).get("SupportedArchitectures", [])]
    if wanted not in supported:
        raise Rejected(f"--instance-type: {kind} is for {', '.join(supported)}; allowed: a type for {wanted}")
    return str(kind)
