"""The platform's own images: a deploy has them built by the real Build machine, and one that changes nothing builds nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contract import names
from rehearsal.deployment import ACCOUNT
from rehearsal.yard import Yard
from stacks.grid_settings import GridSettings
from stacks.parts.own_images import child_tag
from tests.rehearsal.regions import REGIONS

pytestmark = [pytest.mark.rehearsal]
STACK = "trainyard-images"
REPOSITORY = names.repository("trainyard", names.PLATFORM)


def builds(yard: Yard) -> list[dict[str, Any]]:
    """Executions of the machine of the platform's own images."""
    client = yard.client("stepfunctions")
    machine = f"arn:aws:states:{yard.region}:{ACCOUNT}:stateMachine:{names.platform_machine('trainyard')}"
    found = client.list_executions(stateMachineArn=machine)["executions"]
    return [client.describe_execution(executionArn=one["executionArn"]) for one in found]


def test_the_childs_image_stands_in_every_region_under_the_tag_of_its_context(yard: Yard) -> None:
    digests = set()
    for place in REGIONS:
        (image,) = yard.client("ecr", place["region"]).describe_images(
            repositoryName=names.repository("trainyard", names.PLATFORM)
        )["imageDetails"]
        assert image["imageTags"] == [child_tag(GridSettings().child_base)]
        digests.add(image["imageDigest"])
    assert len(digests) == 1


def test_the_deploy_waited_for_one_build(yard: Yard) -> None:
    (build,) = builds(yard)
    assert build["status"] == "SUCCEEDED"
    assert json.loads(build["output"])["how"] == "built"


def test_a_deploy_that_changes_nothing_builds_nothing(yard: Yard) -> None:
    before = len(builds(yard))
    yard.cdk.deploy(yard.assembly, STACK)
    assert len(builds(yard)) == before


def test_nobody_but_the_account_may_pull_the_platforms_own_images(yard: Yard) -> None:
    ecr = yard.client("ecr")
    with pytest.raises(ecr.exceptions.RepositoryPolicyNotFoundException):
        ecr.get_repository_policy(repositoryName=REPOSITORY)
