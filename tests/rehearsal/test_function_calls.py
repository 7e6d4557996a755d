"""What functions ask of a service, asked of the local AWS: zones, the interfaces of a type with EFA, whole tags of AWS's containers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aws.ec2 import Ec2
from aws.types import instance_type
from contract.short_tags import EC2, SAGEMAKER, ListedTag, whole_tag
from job_checks.efa import interfaces
from launcher.interfaces import list_interfaces
from localaws.server import LocalAws
from localaws.testing.calm import CALM
from localaws.testing.ec2 import Yard, local_aws

pytestmark = pytest.mark.rehearsal
AWSS = "763104351884"
TRAINING = {"registryId": AWSS, "repositoryName": "pytorch-training"}


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with local_aws(tmp_path) as made:
        yield made


@pytest.fixture
def ecr() -> Iterator[Any]:
    with LocalAws(CALM, gaps=("ecr",)) as aws:
        yield aws.client("ecr", "eu-central-1")


def test_the_functions_see_the_zones_in_which_nodes_run(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    functions = Ec2("us-east-1")
    monkeypatch.setattr(functions, "_client", yard.ec2)
    assert functions.zones() == [f"us-east-1{letter}" for letter in "abcdef"]


def test_the_interfaces_that_admission_derives_fit_the_network_cards(yard: Yard) -> None:
    entry = yard.ec2.describe_instance_types(InstanceTypes=["p4d.24xlarge"])["InstanceTypes"][0]
    wanted = list_interfaces(
        interfaces(instance_type(entry)), subnet=yard.subnet["SubnetId"], security_groups=[yard.group]
    )
    launch = yard.request(1, InstanceType="p4d.24xlarge", NetworkInterfaces=wanted)
    (made,) = yard.ec2.run_instances(**launch)["Instances"]
    ids = [one["NetworkInterfaceId"] for one in made["NetworkInterfaces"]]
    shown = yard.ec2.describe_network_interfaces(NetworkInterfaceIds=ids)["NetworkInterfaces"]
    assert sorted(one["InterfaceType"] for one in shown) == ["efa", "efa-only", "efa-only", "efa-only"]


def listed(ecr: Any) -> list[ListedTag]:
    pages = ecr.get_paginator("describe_images").paginate(**TRAINING, filter={"tagStatus": "TAGGED"})
    return [
        ListedTag(tag=tag, pushed_at=one["imagePushedAt"].timestamp(), digest=one["imageDigest"])
        for page in pages
        for one in page["imageDetails"]
        for tag in one["imageTags"]
    ]


@pytest.mark.parametrize("place", [EC2, SAGEMAKER])
def test_a_short_tag_leads_to_a_container_that_can_be_looked_at(ecr: Any, place: str) -> None:
    whole = whole_tag("2.9-gpu", listed(ecr), place)
    assert whole is not None
    assert whole.tag.endswith(f"-{place}")
    (found,) = ecr.batch_get_image(**TRAINING, imageIds=[{"imageTag": whole.tag}])["images"]
    assert found["imageId"]["imageDigest"] == whole.digest
    assert found["imageManifest"]
