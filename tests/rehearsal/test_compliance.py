"""A deployment with `compliance`: its templates deploy, its network is closed, and a job on two nodes runs under the region's key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract import names
from contract.codec import decode
from contract.places import Place
from localaws.conditions import Conditions
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import TWO, succeeded, train

pytestmark = [pytest.mark.rehearsal, pytest.mark.faults]
TRAINER = Path(__file__).with_name("trainer")


@pytest.fixture(scope="module")
def complying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    work = tmp_path_factory.mktemp("complying") / "work"
    with Yard(work, Conditions(speed=10.0), settings={"compliance": True}, wanted=["workflow"]) as yard:
        yield yard


@pytest.fixture(scope="module")
def job(complying: Yard) -> StartedJob:
    code = complying.upload(TRAINER, "trainer")
    started = complying.start({**TWO, "code": code, "command": train(3, 0.2)}, "keyed")
    succeeded(started)
    return started


@pytest.fixture(scope="module")
def place(complying: Yard) -> Place:
    name = names.region_parameter("trainyard", complying.region)
    return decode(Place, complying.client("ssm").get_parameter(Name=name)["Parameter"]["Value"])


@pytest.mark.usefixtures("job")
def test_a_job_ends_well_and_its_disks_have_the_regions_key(complying: Yard, place: Place) -> None:
    assert place.volume_key.startswith(f"arn:aws:kms:{complying.region}:")
    launches = [call for call in list(complying.aws.recorder.calls) if call.action == "RunInstances"]
    assert launches
    assert {call.parameters["BlockDeviceMapping.1.Ebs.KmsKeyId"] for call in launches} == {place.volume_key}


def test_the_default_security_group_of_the_network_lets_nothing_through(complying: Yard, place: Place) -> None:
    ec2 = complying.client("ec2")
    (nodes,) = ec2.describe_security_groups(GroupIds=[place.security_group])["SecurityGroups"]
    filters = [{"Name": "vpc-id", "Values": [nodes["VpcId"]]}, {"Name": "group-name", "Values": ["default"]}]
    (default,) = ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
    assert (default["IpPermissions"], default["IpPermissionsEgress"]) == ([], [])
    assert nodes["IpPermissions"]


def test_the_network_has_flow_logs(complying: Yard, place: Place) -> None:
    ec2 = complying.client("ec2")
    (nodes,) = ec2.describe_security_groups(GroupIds=[place.security_group])["SecurityGroups"]
    flows = ec2.describe_flow_logs(Filters=[{"Name": "resource-id", "Values": [nodes["VpcId"]]}])["FlowLogs"]
    assert [one["TrafficType"] for one in flows] == ["ALL"]


def test_buckets_and_the_table_were_made_with_keys_of_the_account(complying: Yard, place: Place) -> None:
    s3, kms = complying.client("s3"), complying.client("kms")
    used = set()
    for bucket in (complying.places.home, complying.places.bytes_):
        configuration = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]
        (rule,) = configuration["Rules"]
        assert rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
        used.add(rule["ApplyServerSideEncryptionByDefault"]["KMSMasterKeyID"])
    table = complying.client("dynamodb").describe_table(TableName=names.state_table("trainyard"))["Table"]
    used.add(table["SSEDescription"]["KMSMasterKeyArn"])
    assert place.volume_key in used
    assert len(used) == 2
    for key in used:
        assert kms.get_key_rotation_status(KeyId=key)["KeyRotationEnabled"] is True
        policy = json.dumps(kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"])
        assert f"logs.{complying.region}.amazonaws.com" in policy
