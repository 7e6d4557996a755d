"""Where EFS and FSx of the local account say that a file system lies, asked for with a real boto3."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError

from localaws.machines import file_systems
from localaws.server import LocalAws
from localaws.testing.calm import CALM

pytestmark = [pytest.mark.rehearsal]
HOME, AWAY = "eu-central-1", "us-east-1"


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws(CALM) as made:
        yield made


def test_a_file_system_lies_in_the_network_of_its_machines_where_there_is_one(aws: LocalAws) -> None:
    efs = file_systems.make(aws, aws.work, HOME, "efs").id
    lustre = file_systems.make(aws, aws.work, HOME, "lustre").id
    vpc = aws.client("ec2", HOME).create_vpc(CidrBlock="10.70.0.0/16")["Vpc"]["VpcId"]
    (target,) = aws.client("efs", HOME).describe_mount_targets(FileSystemId=efs)["MountTargets"]
    (shown,) = aws.client("fsx", HOME).describe_file_systems(FileSystemIds=[lustre])["FileSystems"]
    assert target["VpcId"] == shown["VpcId"] == vpc


def test_one_of_another_region_is_not_found(aws: LocalAws) -> None:
    there = file_systems.make(aws, aws.work, AWAY, "efs").id
    with pytest.raises(ClientError, match="FileSystemNotFound"):
        aws.client("efs", HOME).describe_mount_targets(FileSystemId=there)


def test_one_that_there_is_not_is_not_found(aws: LocalAws) -> None:
    with pytest.raises(ClientError, match="FileSystemNotFound"):
        aws.client("fsx", HOME).describe_file_systems(FileSystemIds=["fs-0123456789abcdef9"])
