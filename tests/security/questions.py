"""An account in which recorded calls are judged, a launch like ours, and what IAM asks of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contract import tags
from localaws.iam.permissions import judge
from localaws.iam.questions import requests
from localaws.iam.simulator import Policies
from localaws.recorder import Call
from tests.security.policies import ACCOUNT, PROFILE, REGION, TOPIC_KEY, role

OURS = {tags.DEPLOYMENT: "trainyard"}
BUCKET = f"trainyard-home-{ACCOUNT}-{REGION}"
ROLE_ID = "AROAEXAMPLE"
HOME = f"arn:aws:s3:::{BUCKET}"


class Account:
    """Everything in it carries the tags, but what is named; instances have our profile, templates ask for IMDSv2, images are AWS's."""

    def __init__(self, **others: Mapping[str, str]) -> None:
        self._others = others
        self.profiles: dict[str, str] = {}
        self.data: dict[str, Any] = {"MetadataOptions": {"HttpTokens": "required"}}
        self.picture: dict[str, Any] = {
            "OwnerId": "898082745236",
            "ImageOwnerAlias": "amazon",
            "BlockDeviceMappings": [
                {"DeviceName": "/dev/xvda", "Ebs": {"Encrypted": False}},
                {"DeviceName": "/dev/sdb", "VirtualName": "ephemeral0"},
            ],
        }

    def instance_profile(self, region: str, instance: str) -> str:  # noqa: ARG002
        return self.profiles.get(instance, PROFILE)

    def template(self, region: str, template: str, version: str) -> Mapping[str, Any]:  # noqa: ARG002
        return self.data

    def image(self, region: str, image: str) -> Mapping[str, Any]:  # noqa: ARG002
        return self.picture

    def tags(self, region: str, resource: str) -> Mapping[str, str]:  # noqa: ARG002
        return self._others.get(resource.partition("-")[0], OURS)

    def role(self, profile: str) -> str:  # noqa: ARG002
        return role("Node")

    def secret(self, region: str, secret: str) -> str:
        return f"arn:aws:secretsmanager:{region}:{ACCOUNT}:secret:{secret}-AbCdEf"

    def machine(self, region: str) -> str:
        return f"arn:aws:states:{region}:{ACCOUNT}:stateMachine:trainyard-train"

    def key_policy(self, key: str) -> Mapping[str, Any]:  # noqa: ARG002
        return {}

    def trust(self, role: str) -> Mapping[str, Any]:
        raise AssertionError(role)

    def role_id(self, role: str) -> str:  # noqa: ARG002
        return ROLE_ID

    def table_keys(self, region: str, table: str) -> tuple[str, ...]:  # noqa: ARG002
        return "pk", "sk"

    def key(self, region: str, topic: str) -> str:  # noqa: ARG002
        return TOPIC_KEY


def call(who: str, name: str, status: int = 200, /, **parameters: Any) -> Call:
    service, action = name.split(":")
    return Call(
        at=0.0, role=role(who), service=service, region=REGION, action=action, status=status, parameters=parameters
    )


def specified(number: int, kind: str) -> dict[str, str]:
    tag = f"TagSpecification.{number}"
    return {
        f"{tag}.ResourceType": kind,
        f"{tag}.Tag.1.Key": tags.DEPLOYMENT,
        f"{tag}.Tag.1.Value": "trainyard",
        f"{tag}.Tag.2.Key": tags.JOB,
        f"{tag}.Tag.2.Value": "resnet",
    }


LAUNCH = call(
    "Launcher",
    "ec2:RunInstances",
    **{
        "ImageId": "ami-1",
        "LaunchTemplate.LaunchTemplateId": "lt-1",
        "IamInstanceProfile.Arn": PROFILE,
        "Placement.GroupName": "group-1",
        "NetworkInterface.1.SubnetId": "subnet-1",
        "NetworkInterface.1.SecurityGroupId.1": "sg-1",
        "NetworkInterface.1.AssociatePublicIpAddress": "false",
        "BlockDeviceMapping.1.DeviceName": "/dev/xvda",
        "BlockDeviceMapping.1.Ebs.Encrypted": "true",
        "BlockDeviceMapping.1.Ebs.VolumeSize": "200",
        **specified(1, "instance"),
        **specified(2, "volume"),
        **specified(3, "network-interface"),
    },
)


def list_questions(one: Call) -> set[tuple[str, str]]:
    """(action, end of the resource)."""
    return {(request.action, request.resource.split(":", 5)[5]) for request in requests(one, Account())}


def denied(policies: Mapping[str, Policies], one: Call, account: Account | None = None) -> set[str]:
    """Kinds of the resources that a call would be denied for."""
    judged = judge([one], policies, account or Account())
    assert [verdict for verdict in judged if verdict.answer.error or verdict.answer.ignored] == []
    return {verdict.request.resource.split(":", 5)[5].split("/")[0] for verdict in judged if not verdict.answer.allowed}
