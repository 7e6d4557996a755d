"""AWS's own registries on the local AWS: a list of their containers comes in pages, and each that is listed can be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from contract.short_tags import EC2, SAGEMAKER, ListedTag, whole_tag
from localaws.server import LocalAws
from tests.localaws.app import CALM

pytestmark = [pytest.mark.rehearsal, pytest.mark.first_half]
HOME, AWSS = "eu-central-1", "763104351884"
TRAINING = {"registryId": AWSS, "repositoryName": "pytorch-training"}


@pytest.fixture(scope="module")
def ecr() -> Iterator[Any]:
    with LocalAws(CALM, gaps=("ecr",)) as aws:
        yield aws.client("ecr", HOME)


def listed(ecr: Any) -> list[ListedTag]:
    pages = ecr.get_paginator("describe_images").paginate(**TRAINING, filter={"tagStatus": "TAGGED"})
    return [
        ListedTag(tag=tag, pushed_at=one["imagePushedAt"].timestamp(), digest=one["imageDigest"])
        for page in pages
        for one in page["imageDetails"]
        for tag in one["imageTags"]
    ]


def test_a_page_of_awss_containers_is_not_all_of_them(ecr: Any) -> None:
    first = ecr.describe_images(**TRAINING)
    assert first["nextToken"]
    assert len(first["imageDetails"]) < len(listed(ecr))


@pytest.mark.parametrize("place", [EC2, SAGEMAKER])
def test_a_short_tag_leads_to_a_container_that_can_be_looked_at(ecr: Any, place: str) -> None:
    whole = whole_tag("2.9-gpu", listed(ecr), place)
    assert whole is not None
    assert whole.tag.endswith(f"-{place}")
    (found,) = ecr.batch_get_image(**TRAINING, imageIds=[{"imageTag": whole.tag}])["images"]
    assert found["imageId"]["imageDigest"] == whole.digest
    assert found["imageManifest"]


def test_a_short_tag_is_no_tag_of_awss(ecr: Any) -> None:
    assert ecr.batch_get_image(**TRAINING, imageIds=[{"imageTag": "2.9-gpu"}])["images"] == []


def test_a_repository_that_aws_lacks_cannot_be_listed(ecr: Any) -> None:
    with pytest.raises(ClientError, match="RepositoryNotFoundException"):
        ecr.describe_images(registryId=AWSS, repositoryName="images")
