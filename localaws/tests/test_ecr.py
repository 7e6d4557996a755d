"""AWS's own registries on the local AWS: a list of their containers comes in pages, and each that is listed can be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws.server import LocalAws
from localaws.testing.calm import CALM

pytestmark = [pytest.mark.rehearsal]
HOME, AWSS = "eu-central-1", "763104351884"
TRAINING = {"registryId": AWSS, "repositoryName": "pytorch-training"}


@pytest.fixture(scope="module")
def ecr() -> Iterator[Any]:
    with LocalAws(CALM, gaps=("ecr",)) as aws:
        yield aws.client("ecr", HOME)


def listed(ecr: Any) -> list[dict[str, Any]]:
    pages = ecr.get_paginator("describe_images").paginate(**TRAINING, filter={"tagStatus": "TAGGED"})
    return [one for page in pages for one in page["imageDetails"]]


def test_a_page_of_awss_containers_is_not_all_of_them(ecr: Any) -> None:
    first = ecr.describe_images(**TRAINING)
    assert first["nextToken"]
    assert len(first["imageDetails"]) < len(listed(ecr))


def test_each_that_is_listed_can_be_looked_at(ecr: Any) -> None:
    for one in listed(ecr)[:: max(1, len(listed(ecr)) // 5)]:
        (found,) = ecr.batch_get_image(**TRAINING, imageIds=[{"imageTag": one["imageTags"][0]}])["images"]
        assert found["imageId"]["imageDigest"] == one["imageDigest"]
        assert found["imageManifest"]


def test_a_short_tag_is_no_tag_of_awss(ecr: Any) -> None:
    assert ecr.batch_get_image(**TRAINING, imageIds=[{"imageTag": "2.9-gpu"}])["images"] == []


def test_a_repository_that_aws_lacks_cannot_be_listed(ecr: Any) -> None:
    with pytest.raises(ClientError, match="RepositoryNotFoundException"):
        ecr.describe_images(registryId=AWSS, repositoryName="images")
