"""ECR and CodeBuild keep AWS's rules: what is looked up and is not there, and one build for one token."""

from __future__ import annotations

from typing import Any

import pytest

from localaws.model import Refused
from localaws.services.codebuild_model import Build, CodeBuild
from localaws.services.ecr_model import Ecr, Image, Wanted

OURS, OTHER = "111122223333", "444455556666"
A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64


class Still:
    """A clock that stands."""

    def time(self) -> float:
        return 1.0


def kept(account: str, name: str, _: list[Wanted]) -> list[Image] | None:
    """The images of the one repository."""
    return [Image(A, ("v1",), ""), Image(B, ("v2",), "")] if (account, name) == (OURS, "images") else None


def looked(operation: str, *wanted: dict[str, str], repository: str = "images", **more: str) -> dict[str, Any]:
    return Ecr(OURS, kept, {}.get).answer(operation, {"repositoryName": repository, "imageIds": list(wanted), **more})


@pytest.mark.parametrize("absent", [{"imageTag": "v3"}, {"imageDigest": A, "imageTag": "v2"}], ids=["tag", "both"])
def test_an_image_that_is_not_there_is_an_error_to_describe_and_a_failure_to_pull(absent: dict[str, str]) -> None:
    with pytest.raises(Refused, match="ImageNotFoundException"):
        looked("DescribeImages", {"imageTag": "v1"}, absent)
    pulled = looked("BatchGetImage", {"imageTag": "v1"}, absent)
    assert [one["imageId"] for one in pulled["images"]] == [{"imageTag": "v1", "imageDigest": A}]
    assert [(one["imageId"], one["failureCode"]) for one in pulled["failures"]] == [(absent, "ImageNotFound")]


@pytest.mark.parametrize("where", [{"repository": "nothing"}, {"registryId": OTHER}], ids=["repository", "registry"])
def test_a_repository_that_is_not_there_is_an_error(where: dict[str, str]) -> None:
    for operation in ("DescribeImages", "BatchGetImage"):
        with pytest.raises(Refused, match="RepositoryNotFoundException"):
            looked(operation, {"imageTag": "v1"}, **where)


class Started(CodeBuild):
    """Notes what was begun."""

    def __init__(self) -> None:
        super().__init__("eu-west-1", Still(), OURS, {"images": {"name": "images"}}.get)
        self.begun: list[str] = []

    def begin(self, build: Build) -> None:
        self.begun.append(build.id)

    def end(self, build: Build) -> None:
        raise AssertionError(f"nothing here stops {build.id}")


def test_one_token_is_one_build() -> None:
    builds = Started()
    tokens = ("a", "a", "b", None, None)
    wanted = [{"projectName": "images"} | ({"idempotencyToken": one} if one else {}) for one in tokens]
    found = [builds.answer("StartBuild", one)["build"]["id"] for one in wanted]
    assert found[0] == found[1]
    assert builds.begun == found[1:]
    assert builds.answer("BatchGetBuilds", {"ids": [found[0], "images:x"]})["buildsNotFound"] == ["images:x"]


@pytest.mark.parametrize("call", [("StartBuild", {"projectName": "none"}), ("StopBuild", {"id": "images:x"})])
def test_a_project_or_a_build_that_is_not_there_is_an_error(call: tuple[str, dict[str, str]]) -> None:
    with pytest.raises(Refused, match="ResourceNotFoundException"):
        Started().answer(*call)


@pytest.mark.parametrize("machine", [("ARM_CONTAINER", "x86_64"), ("LINUX_CONTAINER", "aarch64")])
def test_a_machine_whose_image_is_for_other_processors_starts_no_build(machine: tuple[str, str]) -> None:
    builds = Started()
    kind, processors = machine
    image = f"aws/codebuild/amazonlinux-{processors}-standard:3.0"
    with pytest.raises(Refused, match="does not run in an environment"):
        builds.answer("StartBuild", {"projectName": "images", "environmentTypeOverride": kind, "imageOverride": image})
    assert builds.begun == []
