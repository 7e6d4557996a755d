"""SageMaker's stand-in: roles and images that AWS would refuse, its quotas and its pace, and lost answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws.services import sagemaker
from localaws.testing.calm import impatient
from localaws.testing.grid import AWAY, HOME, MANIFEST, Grid, at_rest, create, faults, refused, trained_here

pytestmark = pytest.mark.rehearsal


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with trained_here(tmp_path_factory.mktemp("images")) as made:
        yield made


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"RoleArn": "arn:aws:iam::123456789012:role/nobody"}, "Could not assume role"),
        ({"RoleArn": "arn:aws:iam::123456789012:role/start"}, "Could not assume role"),
    ],
)
def test_a_request_that_sagemaker_would_refuse_is_refused(grid: Grid, change: dict[str, Any], says: str) -> None:
    answer = refused(grid, **{**grid.request("refused"), **change})
    assert answer.startswith("ValidationException: ")
    assert says in answer


@pytest.mark.parametrize(
    ("image", "says"),
    [
        ("{home}:missing", "not found"),
        ("{home}@sha256:" + "0" * 64, "not found"),
        ("123456789012.dkr.ecr.eu-central-1.amazonaws.com/nowhere:v1", "Cannot find repository"),
        ("123456789012.dkr.ecr.us-east-1.amazonaws.com/yard/images:own", "not in the region eu-central-1"),
        ("docker.io/library/python:3", "Invalid image URI"),
    ],
)
def test_an_image_that_is_not_there_is_refused(grid: Grid, image: str, says: str) -> None:
    request = grid.request("image")
    home = grid.image("x").rpartition(":")[0]
    request["AlgorithmSpecification"]["TrainingImage"] = image.replace("{home}", home)
    assert says in refused(grid, **request)


def test_an_image_of_which_there_are_no_files_is_refused_in_words(grid: Grid) -> None:
    ecr = grid.aws.client("ecr", HOME)
    ecr.put_image(repositoryName="yard/images", imageManifest=json.dumps({"mediaType": MANIFEST}), imageTag="bare")
    assert "no build of this rehearsal made the image" in refused(grid, **grid.request("bare", image="bare"))


def test_beyond_the_quota_it_is_a_limit_and_the_name_stays_free(grid: Grid) -> None:
    quotas = sagemaker.here(HOME).quotas
    quotas["ml.m5.large", False] = 1
    try:
        assert refused(grid, **grid.request("quota", count=2)).startswith("ResourceLimitExceeded: ")
    finally:
        quotas.clear()
    create(grid, "quota")
    assert grid.ended("quota")["TrainingJobStatus"] == "Completed"


def test_too_many_creations_at_once_are_throttled(grid: Grid) -> None:
    codes = []
    bad = {**grid.request("pace", AWAY), "TrainingJobName": "under_score"}
    client = impatient(grid.aws, grid.roles["job"], "sagemaker", AWAY, throttled=False)
    for _ in range(8):
        with pytest.raises(ClientError) as problem:
            client.create_training_job(**bad)
        codes.append(problem.value.response["Error"]["Code"])
    assert "ThrottlingException" in codes


def test_a_lost_answer_leaves_a_training_behind(grid: Grid) -> None:
    at_rest(HOME)
    line = [{"Key": "line", "Value": "3"}]
    client = impatient(grid.aws, grid.roles["job"], "sagemaker", HOME, throttled=False)
    with faults(grid, "create-response-lost:line=3"):
        with pytest.raises(ClientError, match="InternalFailure"):
            client.create_training_job(**grid.request("lost", Tags=line))
        with pytest.raises(ClientError, match="ResourceInUse"):
            client.create_training_job(**grid.request("lost", Tags=line))
    assert grid.ended("lost")["TrainingJobStatus"] == "Completed"
