"""The local EC2's catalogue: what it launches and what it refuses. The rules of EC2 itself are in tests/fakes/test_ec2.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from admission.efa import interfaces
from aws.types import instance_type
from launcher.interfaces import list_interfaces
from localaws.services import ec2
from tests.localaws.ec2 import PARAMETER, Yard, local_aws, refusal
from tests.waiting import until

pytestmark = pytest.mark.rehearsal
NEURON = "/aws/service/neuron/dlami/pytorch-2.9/ubuntu-24.04/latest/image_id"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    with local_aws(tmp_path_factory.mktemp("yard")) as made:
        yield made


def root_disk(**ebs: int) -> dict[str, Any]:
    return {"BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": ebs}]}


def test_a_disk_that_is_as_fast_as_its_size_takes_is_launched(yard: Yard) -> None:
    assert len(yard.run(1, **root_disk(VolumeSize=100, Iops=50_000, Throughput=2_000))) == 1


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"ImageId": "ami-00000000000000000"}, "InvalidAMIID.NotFound"),
        ({"InstanceType": "g5.enormous"}, "InvalidParameterValue"),
        ({"InstanceType": "p5.48xlarge", "Placement": {"AvailabilityZone": "us-east-1e"}}, "InvalidParameterValue"),
        ({"InstanceType": "g5g.xlarge"}, "InvalidParameterValue"),
        ({"NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": "subnet-1"}]}, "InvalidSubnetID.NotFound"),
        ({"Placement": {"AvailabilityZone": "us-east-1b"}}, "InvalidParameterValue"),
        ({"Placement": {"GroupName": "nowhere"}}, "InvalidPlacementGroup.Unknown"),
        (
            {"BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 50}}]},
            "InvalidBlockDeviceMapping",
        ),
        (root_disk(VolumeSize=100, Iops=3_000, Throughput=751), "InvalidParameterValue"),
        (root_disk(VolumeSize=100, Iops=50_001), "InvalidParameterValue"),
        (root_disk(VolumeSize=100, Iops=2_999), "InvalidParameterValue"),
        ({"IamInstanceProfile": {"Name": "nobody"}}, "InvalidParameterValue"),
        ({"LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": "1"}}, "InvalidLaunchTemplateId.NotFound"),
    ],
    ids=str,
)
def test_a_launch_that_ec2_refuses_leaves_nothing(yard: Yard, changes: dict[str, Any], code: str) -> None:
    before = len(ec2.machines().all())
    assert refusal(yard.ec2.run_instances, **yard.request(2, **changes)) == code
    assert len(ec2.machines().all()) == before


def test_a_template_version_that_is_not_there_is_refused(yard: Yard) -> None:
    template = {"LaunchTemplateId": yard.template, "Version": "2"}
    code = refusal(yard.ec2.run_instances, **yard.request(LaunchTemplate=template))
    assert code == "InvalidLaunchTemplateId.VersionNotFound"


def test_a_cluster_group_refuses_types_without_it_and_is_in_use_until_its_instances_are_gone(yard: Yard) -> None:
    yard.ec2.create_placement_group(GroupName="close", Strategy="cluster")
    assert (
        refusal(yard.ec2.create_placement_group, GroupName="close", Strategy="cluster")
        == "InvalidPlacementGroup.Duplicate"
    )
    placed: dict[str, Any] = {"Placement": {"GroupName": "close", "AvailabilityZone": "us-east-1a"}}
    small = yard.request(InstanceType="t3.micro", **placed)
    assert refusal(yard.ec2.run_instances, **small) == "InvalidParameterCombination"
    instances = yard.run(**placed)
    until(lambda: yard.states(instances) == {"running"})
    described = yard.ec2.describe_instances(InstanceIds=instances)["Reservations"][0]["Instances"]
    assert {one["Placement"]["GroupName"] for one in described} == {"close"}
    assert refusal(yard.ec2.delete_placement_group, GroupName="close") == "InvalidPlacementGroup.InUse"
    yard.ec2.terminate_instances(InstanceIds=instances)
    until(lambda: yard.states(instances) == {"terminated"})
    yard.ec2.delete_placement_group(GroupName="close")
    assert refusal(yard.ec2.describe_placement_groups, GroupNames=["close"]) == "InvalidPlacementGroup.Unknown"


def test_a_network_cannot_be_deleted_under_an_instance(yard: Yard) -> None:
    vpc = yard.subnet["VpcId"]
    subnet = yard.ec2.create_subnet(VpcId=vpc, CidrBlock="172.31.240.0/24", AvailabilityZone="us-east-1a")["Subnet"][
        "SubnetId"
    ]
    group = yard.ec2.create_security_group(GroupName="short", Description="short", VpcId=vpc)["GroupId"]
    instances = yard.run(1, NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": subnet, "Groups": [group]}])
    until(lambda: yard.states(instances) == {"running"})
    assert refusal(yard.ec2.delete_subnet, SubnetId=subnet) == "DependencyViolation"
    assert refusal(yard.ec2.delete_security_group, GroupId=group) == "DependencyViolation"
    assert refusal(yard.ec2.delete_security_group, GroupName="short") == "DependencyViolation"
    yard.ec2.terminate_instances(InstanceIds=instances)
    until(lambda: yard.states(instances) == {"terminated"})
    yard.ec2.delete_subnet(SubnetId=subnet)
    yard.ec2.delete_security_group(GroupId=group)


def test_a_launch_into_a_security_group_that_is_not_of_its_network_is_refused(yard: Yard) -> None:
    def into(*groups: str) -> str:
        interface = {"DeviceIndex": 0, "SubnetId": yard.subnet["SubnetId"], "Groups": list(groups)}
        return refusal(yard.ec2.run_instances, **yard.request(1, NetworkInterfaces=[interface]))

    other = yard.ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    foreign = yard.ec2.create_security_group(GroupName="foreign", Description="foreign", VpcId=other)["GroupId"]
    assert into(foreign) == "InvalidParameter"
    assert into(yard.group, foreign) == "InvalidParameter"
    assert into("sg-00000000000000000") == "InvalidGroup.NotFound"


def test_an_instance_shows_its_security_group_until_its_network_is_gone(yard: Yard) -> None:
    (one,) = yard.run(1)
    until(lambda: yard.states([one]) == {"running"})

    def shown() -> list[str]:
        found = yard.ec2.describe_instances(InstanceIds=[one])["Reservations"][0]["Instances"][0]
        return [group["GroupId"] for group in found.get("SecurityGroups", [])]

    assert shown() == [yard.group]
    yard.ec2.terminate_instances(InstanceIds=[one])
    until(lambda: yard.states([one]) == {"terminated"})
    assert shown() == []


def test_a_launch_carries_its_template_profile_and_tags(yard: Yard) -> None:
    instances = yard.run(2)
    until(lambda: yard.states(instances) == {"running"})
    for one in yard.ec2.describe_instances(InstanceIds=instances)["Reservations"][0]["Instances"]:
        assert one["MetadataOptions"]["HttpTokens"] == "required"
        assert one["IamInstanceProfile"]["Arn"] == yard.profile
        assert one["PrivateIpAddress"].startswith("127.")
        volume = yard.ec2.describe_volumes(VolumeIds=[one["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]])["Volumes"][0]
        assert (volume["Encrypted"], volume["VolumeType"], volume["Size"]) == (True, "gp3", 100)
        assert {"Key": "trainyard:job", "Value": "digits"} in volume["Tags"]
        nic = one["NetworkInterfaces"][0]["NetworkInterfaceId"]
        card = yard.ec2.describe_network_interfaces(NetworkInterfaceIds=[nic])["NetworkInterfaces"][0]
        assert {"Key": "trainyard:job", "Value": "digits"} in card["TagSet"]
        assert yard.instance(one["InstanceId"]).request["InstanceInitiatedShutdownBehavior"] == "terminate"


def pages(yard: Yard, instances: list[str]) -> list[list[str]]:
    """Those of the instances that each page of DescribeInstances shows; pages are cut before they are filtered."""
    wanted: Any = [{"Name": "instance-id", "Values": instances}]
    found = yard.ec2.get_paginator("describe_instances").paginate(Filters=wanted, PaginationConfig={"PageSize": 1000})
    return [[one["InstanceId"] for part in page["Reservations"] for one in part["Instances"]] for page in found]


def shown(yard: Yard, instances: list[str]) -> list[str]:
    return sorted(one for page in pages(yard, instances) for one in page)


def test_pages_are_small_and_lead_on(yard: Yard) -> None:
    everything = [one for _ in range(6) for one in yard.run(1)]
    until(lambda: shown(yard, everything) == sorted(everything))
    assert len(pages(yard, everything)) > 1
    assert max(map(len, pages(yard, everything))) <= 5


def test_the_public_parameters_name_images_that_exist(yard: Yard) -> None:
    ssm = yard.aws.client("ssm")
    image = yard.ec2.describe_images(ImageIds=[ssm.get_parameter(Name=PARAMETER)["Parameter"]["Value"]])["Images"][0]
    assert (image["Architecture"], image["RootDeviceName"]) == ("x86_64", "/dev/xvda")
    assert image["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] == 75
    assert refusal(ssm.get_parameter, Name=PARAMETER.replace("nvidia", "intel")) == "ParameterNotFound"


def test_the_public_parameter_of_neuron_names_an_image_that_exists(yard: Yard) -> None:
    ssm = yard.aws.client("ssm")
    image = yard.ec2.describe_images(ImageIds=[ssm.get_parameter(Name=NEURON)["Parameter"]["Value"]])["Images"][0]
    assert (image["Architecture"], image["RootDeviceName"]) == ("x86_64", "/dev/sda1")
    assert refusal(ssm.get_parameter, Name=NEURON.replace("ubuntu", "windows")) == "ParameterNotFound"


def efa(yard: Yard, name: str) -> dict[str, Any]:
    """A launch with the interfaces that the local EC2's own description of the type asks for."""
    entry = yard.ec2.describe_instance_types(InstanceTypes=[name])["InstanceTypes"][0]
    wanted = list_interfaces(
        interfaces(instance_type(entry)), subnet=yard.subnet["SubnetId"], security_groups=[yard.group]
    )
    return yard.request(1, InstanceType=name, NetworkInterfaces=wanted)


def test_the_local_ec2_describes_network_cards_as_a_launch_may_use_them(yard: Yard) -> None:
    (made,) = yard.ec2.run_instances(**efa(yard, "p4d.24xlarge"))["Instances"]
    ids = [one["NetworkInterfaceId"] for one in made["NetworkInterfaces"]]
    shown = yard.ec2.describe_network_interfaces(NetworkInterfaceIds=ids)["NetworkInterfaces"]
    assert sorted(one["InterfaceType"] for one in shown) == ["efa", "efa-only", "efa-only", "efa-only"]
    assert "PublicIpAddress" not in made
    until(lambda: yard.states([made["InstanceId"]]) == {"running"})
    yard.ec2.terminate_instances(InstanceIds=[made["InstanceId"]])
    until(lambda: yard.states([made["InstanceId"]]) == {"terminated"})
    assert (
        refusal(yard.ec2.describe_network_interfaces, NetworkInterfaceIds=ids) == "InvalidNetworkInterfaceID.NotFound"
    )


def test_a_launch_with_the_cards_of_another_type_leaves_nothing(yard: Yard) -> None:
    before = len(ec2.machines().all())
    other = efa(yard, "p4d.24xlarge") | {"InstanceType": "g5.xlarge"}
    assert refusal(yard.ec2.run_instances, **other) == "InvalidParameterCombination"
    assert len(ec2.machines().all()) == before
