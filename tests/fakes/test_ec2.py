"""The fake EC2 says what EC2 says, above all where EC2 is unkind: lost answers, late sight, all or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, ParamValidationError, ReadTimeoutError

from contract import tags
from launcher.arguments import LaunchMarks, build_arguments
from localaws.services.ec2_instance import Machine
from tests.builders import JOB, NOW, PLACE, rung
from tests.fakes.aws import CALL_S, Aws
from tests.fakes.faked import ONCE, connected, ec2, ids, launch, refused
from tests.fakes.faults import Kind
from tests.fakes.functions import PROFILE
from tests.fakes.yard import home


@pytest.fixture
def aws() -> Iterator[Aws]:
    with connected() as fake:
        yield fake


def described(**arguments: Any) -> list[dict[str, Any]]:
    pages = ec2().get_paginator("describe_instances").paginate(**arguments)
    return [one for page in pages for reservation in page["Reservations"] for one in reservation["Instances"]]


def machine(fake: Aws, identity: str) -> Machine:
    return home(fake).machines[identity]


# Launches


def test_a_launch_has_addresses_and_launch_indices_at_once_but_in_no_order(aws: Aws) -> None:
    made = launch(nodes=3)
    assert [one["AmiLaunchIndex"] for one in made] == [2, 1, 0]
    assert len({one["PrivateIpAddress"] for one in made}) == 3
    assert {one["State"]["Name"] for one in made} == {"pending"}
    assert aws.clock.now == NOW + CALL_S


def test_the_same_token_and_bytes_are_the_same_instances(aws: Aws) -> None:
    assert ids(launch()) == ids(launch())
    assert len(home(aws).machines) == 2


def test_the_same_token_with_other_bytes_is_a_mismatch(aws: Aws) -> None:  # noqa: ARG001
    launch()
    assert refused(launch, nodes=3) == "IdempotentParameterMismatch"


def test_a_token_one_of_whose_instances_ended_is_used_up(aws: Aws) -> None:
    first, _ = ids(launch())
    aws.clock.run(5)
    ec2().terminate_instances(InstanceIds=[first])
    assert refused(launch) == "IdempotentInstanceTerminated"


def test_a_lost_answer_has_its_effect_and_its_repeat_finds_it(aws: Aws) -> None:
    aws.faults.add(Kind.LOST, "ec2:RunInstances")
    with pytest.raises(ReadTimeoutError):
        launch()
    assert len(home(aws).machines) == 2
    assert len(launch()) == 2
    assert len(home(aws).machines) == 2


def test_missing_capacity_is_a_500_that_a_default_client_asks_again(aws: Aws) -> None:
    home(aws).capacity["g5.xlarge", "eu-central-1a"] = 1
    assert refused(launch) == "InsufficientInstanceCapacity"
    assert len(aws.calls) == 1
    wanted = build_arguments(
        JOB, 1, rung(), group="group-a-0", security_group="sg-1", marks=LaunchMarks(profile=PROFILE)
    )
    with pytest.raises(ClientError) as problem:
        boto3.client("ec2").run_instances(**wanted)
    assert problem.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    assert len(aws.calls) > 2


def test_a_launch_without_capacity_launches_no_part_and_its_token_meets_none_again(aws: Aws) -> None:
    home(aws).capacity["g5.xlarge", "eu-central-1a"] = 1
    assert refused(launch) == "InsufficientInstanceCapacity"
    assert home(aws).machines == {}
    home(aws).capacity.clear()
    assert refused(launch) == "InsufficientInstanceCapacity"
    assert len(launch("two")) == 2


def test_a_launch_that_a_quota_refused_uses_no_token_up(aws: Aws) -> None:
    home(aws).vcpu_quota = 4
    assert refused(launch) == "VcpuLimitExceeded"
    home(aws).vcpu_quota = None
    assert len(launch()) == 2


def test_the_quota_counts_what_still_runs(aws: Aws) -> None:
    home(aws).vcpu_quota = 8
    first = ids(launch())
    assert refused(launch, token="two") == "VcpuLimitExceeded"
    aws.clock.run(5)
    ec2().terminate_instances(InstanceIds=first)
    assert len(launch("two")) == 2


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"SubnetId": "subnet-a"}, "InvalidParameterCombination"),
        ({"SecurityGroupIds": ["sg-1"]}, "InvalidParameterCombination"),
        ({"ClientToken": "x" * 65}, "InvalidParameterValue"),
        ({"UserData": "x" * (16 * 1024 + 1)}, "InvalidParameterValue"),
        ({"ImageId": "ami-other"}, "InvalidAMIID.NotFound"),
        ({"InstanceType": "g5.nothing"}, "InvalidParameterValue"),
        ({"InstanceType": "t3.medium"}, "InvalidParameterCombination"),
        ({"Placement": {"GroupName": "other"}}, "InvalidPlacementGroup.Unknown"),
        ({"Placement": {"AvailabilityZone": "eu-central-1b"}}, "InvalidParameterValue"),
        ({"IamInstanceProfile": {"Arn": "arn:aws:iam::1:instance-profile/x"}}, "InvalidParameterValue"),
        ({"LaunchTemplate": {"LaunchTemplateId": "lt-9", "Version": "1"}}, "InvalidLaunchTemplateId.NotFound"),
        (
            {"LaunchTemplate": {"LaunchTemplateId": PLACE.launch_template, "Version": "$Default"}},
            "InvalidLaunchTemplateId.VersionNotFound",
        ),
        ({"BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 8}}]}, "InvalidBlockDeviceMapping"),
    ],
)
def test_what_no_model_forbids_is_refused_as_ec2_does(aws: Aws, changes: dict[str, Any], code: str) -> None:
    assert refused(launch, **changes) == code
    assert home(aws).machines == {}


@pytest.mark.parametrize(("key", "value"), [("a/b", ""), ("a b", ""), ("aws:x", ""), ("k" * 129, ""), ("k", "v" * 257)])
def test_tags_that_metadata_could_not_show_are_refused(aws: Aws, key: str, value: str) -> None:  # noqa: ARG001
    specification = {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value}]}
    assert refused(launch, TagSpecifications=[specification]) == "InvalidParameterValue"


def test_user_data_of_exactly_16_kilobytes_passes(aws: Aws) -> None:  # noqa: ARG001
    assert launch(UserData="x" * 16 * 1024)


def test_a_value_out_of_the_models_closed_list_is_refused(aws: Aws) -> None:  # noqa: ARG001
    assert refused(launch, InstanceInitiatedShutdownBehavior="explode") == "InvalidParameterValue"
    with pytest.raises(ParamValidationError):
        launch(Colour="red")


def test_a_tag_after_the_launch_counts_against_the_most_of_fifty(aws: Aws) -> None:
    made = ids(launch(nodes=1))
    aws.clock.run(2)
    ec2().create_tags(Resources=made, Tags=[{"Key": tags.MASTER_ADDRESS, "Value": "10.0.0.4"}])
    assert machine(aws, made[0]).tags[tags.MASTER_ADDRESS] == "10.0.0.4"
    many = [{"Key": f"k{number}", "Value": ""} for number in range(45)]
    assert refused(ec2().create_tags, Resources=made, Tags=many) == "TagLimitExceeded"


# Sight


def test_a_new_instance_is_invisible_for_a_second(aws: Aws) -> None:
    made = ids(launch())
    assert described(Filters=[{"Name": "instance-id", "Values": made}]) == []
    for call, arguments in (
        (ec2().describe_instances, {"InstanceIds": made}),
        (ec2().terminate_instances, {"InstanceIds": made}),
        (ec2().create_tags, {"Resources": made, "Tags": [{"Key": "a", "Value": "b"}]}),
    ):
        assert refused(call, **arguments) == "InvalidInstanceID.NotFound"
    aws.clock.run(1)
    assert len(described(InstanceIds=made)) == 2


def test_states_lag_behind_the_truth(aws: Aws) -> None:
    made = ids(launch())
    aws.clock.run(60)
    ec2().terminate_instances(InstanceIds=made)
    assert {one["State"]["Name"] for one in described(InstanceIds=made)} == {"running"}
    aws.clock.run(1)
    assert {one["State"]["Name"] for one in described(InstanceIds=made)} == {"shutting-down"}


def test_the_end_takes_minutes_and_the_ended_are_forgotten_after_an_hour(aws: Aws) -> None:
    made = ids(launch())
    aws.clock.run(60)
    ec2().terminate_instances(InstanceIds=made)
    aws.clock.run(100)
    assert {one["State"]["Name"] for one in described(InstanceIds=made)} == {"shutting-down"}
    aws.clock.run(60)
    assert {one.get("PrivateIpAddress") for one in described(InstanceIds=made)} == {None}
    aws.clock.run(3600)
    assert described(Filters=[{"Name": "instance-id", "Values": made}]) == []
    assert refused(ec2().describe_instances, InstanceIds=made) == "InvalidInstanceID.NotFound"


def test_pages_are_cut_before_they_are_filtered_and_their_tokens_expire(aws: Aws) -> None:
    for token in "abc":
        launch(token)
    aws.clock.run(2)
    home(aws).pages.size = 2
    last = list(home(aws).machines)[-1]
    wanted = [{"Name": "instance-id", "Values": [last]}]
    first = ec2().describe_instances(Filters=wanted, MaxResults=5)
    assert first["Reservations"] == []
    assert ids(described(Filters=wanted)) == [last]
    aws.clock.run(3601)
    assert refused(ec2().describe_instances, NextToken=first["NextToken"]) == "InvalidPaginationToken"


@pytest.mark.parametrize(
    "arguments",
    [
        {"MaxResults": 4},
        {"MaxResults": 1001},
        {"Filters": [{"Name": "tags:a", "Values": ["b"]}]},
        {"Filters": [{"Name": "instance-id", "Values": ["i-0"] * 201}]},
        {"InstanceIds": ["i-00000000"], "MaxResults": 5},
        {"InstanceIds": ["nonsense"]},
    ],
)
def test_questions_that_ec2_does_not_take_are_refused(aws: Aws, arguments: dict[str, Any]) -> None:  # noqa: ARG001
    assert refused(ec2().describe_instances, **arguments)


def test_an_account_without_a_region_is_told_to_opt_in(aws: Aws) -> None:  # noqa: ARG001
    assert refused(boto3.client("ec2", region_name="ap-east-1", config=ONCE).describe_instances) == "OptInRequired"


# Ends


def test_one_unknown_id_fails_the_end_of_all(aws: Aws) -> None:
    made = ids(launch())
    aws.clock.run(2)
    wanted = {"InstanceIds": [*made, "i-0badbadbadbadbadb"]}
    assert refused(ec2().terminate_instances, **wanted) == "InvalidInstanceID.NotFound"
    assert len(home(aws).running()) == 2


def test_a_protected_instance_blocks_its_own_zone_and_no_other(aws: Aws) -> None:
    here = ids(launch())
    there = ids(
        launch(
            "b", NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": "subnet-b"}], Placement={"GroupName": "group-b-0"}
        )
    )
    aws.clock.run(2)
    machine(aws, here[0]).protected = True
    assert refused(ec2().terminate_instances, InstanceIds=here + there) == "OperationNotPermitted"
    assert sorted(one.id for one in home(aws).running()) == sorted(here)


def test_a_power_off_ends_an_instance_that_was_launched_to_end_so_even_a_protected_one(aws: Aws) -> None:
    one, other = (machine(aws, identity) for identity in ids(launch()))
    one.protected = True
    home(aws).power_off(one)
    assert one.state(aws.clock.now) == "shutting-down"
    other.request = other.request | {"InstanceInitiatedShutdownBehavior": "stop"}
    home(aws).power_off(other)
    assert other.state(aws.clock.now) == "stopping"
    aws.clock.run(120)
    assert other.state(aws.clock.now) == "stopped"


def test_termination_protection_of_a_launch_holds_until_it_powers_itself_off(aws: Aws) -> None:
    made = ids(launch(nodes=1, DisableApiTermination=True))
    aws.clock.run(2)
    assert refused(ec2().terminate_instances, InstanceIds=made) == "OperationNotPermitted"
    home(aws).power_off(machine(aws, made[0]))
    ec2().terminate_instances(InstanceIds=made)


def test_a_dry_run_changes_nothing_and_repeats_no_token(aws: Aws) -> None:
    made = ids(launch())
    aws.clock.run(2)
    marks = [{"Key": "a", "Value": "b"}]
    assert refused(launch, DryRun=True) == "DryRunOperation"
    assert refused(ec2().terminate_instances, InstanceIds=made, DryRun=True) == "DryRunOperation"
    assert refused(ec2().create_tags, Resources=made, Tags=marks, DryRun=True) == "DryRunOperation"
    assert len(home(aws).running()) == 2
    assert "a" not in machine(aws, made[0]).tags


@pytest.mark.parametrize(
    ("second", "code"),
    [
        ({"SubnetId": "subnet-none"}, "InvalidSubnetID.NotFound"),
        ({}, "InvalidSubnetID.NotFound"),
        ({"SubnetId": "subnet-a", "Groups": ["sg-none"]}, "InvalidGroup.NotFound"),
    ],
)
def test_every_interface_of_a_launch_is_checked(aws: Aws, second: dict[str, Any], code: str) -> None:
    interfaces = [{"DeviceIndex": 0, "SubnetId": "subnet-a"}, {"DeviceIndex": 1, **second}]
    assert refused(launch, NetworkInterfaces=interfaces) == code
    assert home(aws).machines == {}


def test_no_page_leaves_an_instance_out_while_another_is_forgotten(aws: Aws) -> None:
    old, *others = [ids(launch(token, nodes=1))[0] for token in "abcdefg"]
    home(aws).end(machine(aws, old), "said", "the test")
    home(aws).pages.size = 5
    aws.clock.run(3719)
    first = ec2().describe_instances()
    aws.clock.run(2)
    second = ec2().describe_instances(NextToken=first["NextToken"])
    found = [
        one["InstanceId"] for page in (first, second) for part in page["Reservations"] for one in part["Instances"]
    ]
    assert found == [old, *others]


def test_ids_of_another_sort_are_refused(aws: Aws) -> None:  # noqa: ARG001
    marks = [{"Key": "a", "Value": "b"}]
    assert refused(ec2().create_tags, Resources=["lt-1"], Tags=marks) == "InvalidID"
    assert refused(ec2().describe_volumes, VolumeIds=["foo"]) == "InvalidID"
    assert refused(launch, MinCount=0, MaxCount=0) == "InvalidParameterValue"


def test_an_instance_can_accept_to_end_and_stay(aws: Aws) -> None:
    made = ids(launch(nodes=1))
    aws.clock.run(2)
    machine(aws, made[0]).stuck = True
    answer = ec2().terminate_instances(InstanceIds=made)
    assert answer["TerminatingInstances"][0]["CurrentState"]["Name"] == "shutting-down"
    assert len(home(aws).running()) == 1
