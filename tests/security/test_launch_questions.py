"""What IAM asks of a launch: every resource, every tag, every right on the side; a launch with less safety than ours is denied."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contract import tags
from localaws.iam.simulator import Policies
from localaws.recorder import Call
from tests.security.policies import ACCOUNT
from tests.security.questions import LAUNCH, Account, denied, list_questions
from tools.configurations import SUBNETS


def test_a_launch_is_asked_for_each_resource_each_tag_and_its_role() -> None:
    assert list_questions(LAUNCH) == {
        *(("ec2:RunInstances", f"{kind}/*") for kind in ("instance", "volume", "network-interface")),
        *(("ec2:CreateTags", f"{kind}/*") for kind in ("instance", "volume", "network-interface")),
        *(
            ("ec2:RunInstances", one)
            for one in (
                "image/ami-1",
                "subnet/subnet-1",
                "security-group/sg-1",
                "launch-template/lt-1",
                "placement-group/group-1",
            )
        ),
        ("iam:PassRole", "role/NodeRole"),
    }


def test_the_launch_is_allowed(policies: dict[str, Policies]) -> None:
    assert denied(policies, LAUNCH) == set()


@pytest.mark.parametrize(
    ("theirs", "kind"),
    [("subnet", "subnet"), ("sg", "security-group"), ("lt", "launch-template"), ("group", "placement-group")],
)
def test_a_launch_into_what_is_not_ours_is_denied(policies: dict[str, Policies], theirs: str, kind: str) -> None:
    assert denied(policies, LAUNCH, Account(**{theirs: {tags.DEPLOYMENT: "other"}})) == {kind}
    assert denied(policies, LAUNCH, Account(**{theirs: {}})) == {kind}


def into(subnet: str) -> Call:
    return replace(LAUNCH, parameters={**LAUNCH.parameters, "NetworkInterface.1.SubnetId": subnet})


@pytest.mark.parametrize("subnet", SUBNETS.values())
def test_a_launch_into_a_subnet_that_the_settings_name_is_allowed_without_a_tag(
    zoned_policies: dict[str, Policies], subnet: str
) -> None:
    assert denied(zoned_policies, into(subnet), Account(subnet={})) == set()


@pytest.mark.parametrize("subnet", ["subnet-0123456789abcdef9", "subnet-1"])
def test_a_launch_into_another_subnet_of_that_network_is_denied(
    zoned_policies: dict[str, Policies], subnet: str
) -> None:
    assert denied(zoned_policies, into(subnet), Account(subnet={})) == {"subnet"}


@pytest.mark.parametrize(
    ("theirs", "kind"), [("sg", "security-group"), ("lt", "launch-template"), ("group", "placement-group")]
)
def test_a_launch_there_with_what_is_not_ours_is_denied(
    zoned_policies: dict[str, Policies], theirs: str, kind: str
) -> None:
    (subnet, *_) = SUBNETS.values()
    assert denied(zoned_policies, into(subnet), Account(subnet={}, **{theirs: {}})) == {kind}


def test_a_launch_with_the_tags_of_the_settings_is_allowed(zoned_policies: dict[str, Policies]) -> None:
    further = {
        f"TagSpecification.{number}.Tag.9.{part}": word
        for number in (1, 2, 3)
        for part, word in (("Key", "CostCenter"), ("Value", "4711"))
    }
    assert denied(zoned_policies, replace(LAUNCH, parameters={**LAUNCH.parameters, **further})) == set()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_launch_that_leaves_something_untagged_is_denied(policies: dict[str, Policies], number: int) -> None:
    prefix = f"TagSpecification.{number}."
    left = {key: value for key, value in LAUNCH.parameters.items() if not key.startswith(f"{prefix}Tag")}
    kind = LAUNCH.parameters[f"{prefix}ResourceType"]
    assert denied(policies, replace(LAUNCH, parameters=left)) == {kind}


@pytest.mark.parametrize("extra", [{"KeyName": "mine"}, {"BlockDeviceMapping.1.Ebs.SnapshotId": "snap-1"}])
def test_a_launch_with_what_no_launch_of_ours_has_is_denied(
    policies: dict[str, Policies], extra: dict[str, str]
) -> None:
    assert denied(policies, replace(LAUNCH, parameters={**LAUNCH.parameters, **extra})) != set()


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"IamInstanceProfile.Arn": f"arn:aws:iam::{ACCOUNT}:instance-profile/admin"}, "instance"),
        ({"IamInstanceProfile.Arn": ""}, "instance"),
        ({"MetadataOptions.HttpTokens": "optional"}, "instance"),
        ({"BlockDeviceMapping.1.Ebs.Encrypted": "false"}, "volume"),
        ({"BlockDeviceMapping.1.DeviceName": "/dev/sda1"}, "volume"),
        ({"BlockDeviceMapping.2.DeviceName": "/dev/sdf", "BlockDeviceMapping.2.Ebs.VolumeSize": "9"}, "volume"),
        ({"NetworkInterface.1.AssociatePublicIpAddress": "true"}, "network-interface"),
        ({"NetworkInterface.2.AssociatePublicIpAddress": "true"}, "network-interface"),
    ],
)
def test_a_launch_that_asks_for_less_safety_than_ours_is_denied(
    policies: dict[str, Policies], changed: dict[str, str], kind: str
) -> None:
    assert denied(policies, replace(LAUNCH, parameters={**LAUNCH.parameters, **changed})) == {kind}


@pytest.mark.parametrize(
    "left",
    ["BlockDeviceMapping.1.Ebs.Encrypted", "IamInstanceProfile.Arn"],
)
def test_a_launch_that_leaves_its_safety_to_the_account_is_denied(policies: dict[str, Policies], left: str) -> None:
    less = {key: value for key, value in LAUNCH.parameters.items() if key != left}
    assert denied(policies, replace(LAUNCH, parameters=less)) != set()


def test_the_launch_template_answers_where_the_request_says_nothing(policies: dict[str, Policies]) -> None:
    account = Account()
    account.data = {}
    assert denied(policies, LAUNCH, account) == {"instance"}
    account.data = {"MetadataOptions": {"HttpTokens": "optional"}}
    assert denied(policies, LAUNCH, account) == {"instance"}
    own = {**LAUNCH.parameters, "MetadataOptions.HttpTokens": "required"}
    assert denied(policies, replace(LAUNCH, parameters=own), account) == set()


def test_a_volume_that_only_the_template_adds_is_asked_for_as_well(policies: dict[str, Policies]) -> None:
    account = Account()
    account.data["BlockDeviceMappings"] = [{"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 9}}]
    assert denied(policies, LAUNCH, account) == {"volume"}
    account.data["BlockDeviceMappings"] = [{"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 9, "Encrypted": True}}]
    assert denied(policies, LAUNCH, account) == set()


def test_a_volume_that_only_the_image_adds_is_asked_for_as_well(policies: dict[str, Policies]) -> None:
    account = Account()
    account.picture["BlockDeviceMappings"] = [{"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 9}}]
    assert denied(policies, LAUNCH, account) == {"volume"}


@pytest.mark.parametrize("owner", ["999988887777", "aws-marketplace", "Amazon"])
def test_a_launch_from_somebody_elses_image_is_denied(policies: dict[str, Policies], owner: str) -> None:
    account = Account()
    account.picture |= {"OwnerId": owner, "ImageOwnerAlias": ""} if owner.isdecimal() else {"ImageOwnerAlias": owner}
    assert denied(policies, LAUNCH, account) == {"image"}


def test_a_launch_with_a_faster_disk_is_allowed(policies: dict[str, Policies]) -> None:
    faster = {"BlockDeviceMapping.1.Ebs.Iops": "16000", "BlockDeviceMapping.1.Ebs.Throughput": "1000"}
    assert denied(policies, replace(LAUNCH, parameters={**LAUNCH.parameters, **faster})) == set()


def with_efa(**changed: str) -> Call:
    """A launch whose nodes have two interfaces, as the launcher asks for them."""
    plain = {key: value for key, value in LAUNCH.parameters.items() if not key.endswith("AssociatePublicIpAddress")}
    second = {"NetworkInterface.2.SubnetId": "subnet-1", "NetworkInterface.2.SecurityGroupId.1": "sg-1"}
    kinds = {"NetworkInterface.1.InterfaceType": "efa", "NetworkInterface.2.InterfaceType": "efa-only"}
    return replace(LAUNCH, parameters={**plain, **second, **kinds, **changed})


def test_a_launch_with_several_interfaces_which_may_not_speak_of_a_public_address_is_allowed(
    policies: dict[str, Policies],
) -> None:
    assert denied(policies, with_efa()) == set()


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"NetworkInterface.1.AssociatePublicIpAddress": "true"}, "network-interface"),
        ({"NetworkInterface.2.AssociatePublicIpAddress": "true"}, "network-interface"),
        ({"NetworkInterface.2.SubnetId": "theirs-1"}, "subnet"),
        ({"NetworkInterface.2.SecurityGroupId.1": "theirs-1"}, "security-group"),
    ],
)
def test_every_interface_of_a_launch_is_asked_for(
    policies: dict[str, Policies], changed: dict[str, str], kind: str
) -> None:
    assert denied(policies, with_efa(**changed), Account(theirs={tags.DEPLOYMENT: "other"})) == {kind}


def test_a_launch_from_the_accounts_own_image_is_allowed(policies: dict[str, Policies]) -> None:
    account = Account()
    account.picture |= {"OwnerId": ACCOUNT, "ImageOwnerAlias": ""}
    assert denied(policies, LAUNCH, account) == set()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_nothing_is_born_protected(policies: dict[str, Policies], number: int) -> None:
    tag = f"TagSpecification.{number}.Tag.3"
    extra = {f"{tag}.Key": tags.PROTECTED, f"{tag}.Value": "for ever"}
    kind = LAUNCH.parameters[f"TagSpecification.{number}.ResourceType"]
    assert denied(policies, replace(LAUNCH, parameters={**LAUNCH.parameters, **extra})) == {kind}


def test_a_spot_launch_asks_for_the_request_and_for_awss_own_role(policies: dict[str, Policies]) -> None:
    spot = replace(LAUNCH, parameters={**LAUNCH.parameters, "InstanceMarketOptions.MarketType": "spot"})
    assert list_questions(spot) - list_questions(LAUNCH) == {
        ("ec2:RunInstances", "spot-instances-request/*"),
        ("iam:CreateServiceLinkedRole", "role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"),
    }
    assert denied(policies, spot) == set()
