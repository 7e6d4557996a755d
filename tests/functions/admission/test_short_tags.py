"""Short tags of AWS's containers at Admit: one image for all regions, what is listed and what is not, and what a denial reads like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from contract import names
from contract.containers import Container
from localaws.model import Refused
from tests.builders import ADMISSION, PLACE
from tests.fakes.yard import ABROAD
from tests.functions.admission.account import (
    ADMITTING,
    CONTAINER,
    CONTAINERS,
    PARTNER,
    PLACE_ACCOUNT,
    Account,
    account,
    refused,
    registry,
    start,
)
from tools.refusals.jobs import LEAST

HOME, AWAY = PLACE.region, ABROAD.region
NAME = names.repository(ADMISSION.deployment, "images")
ALONE = {"image": "images:v1", "instance_types": ["g5.xlarge"]}


@pytest.fixture
def there() -> Iterator[Account]:
    with account(replace(ADMITTING, regions=(HOME, AWAY))) as made:
        yield made


def container(there: Account) -> Container:
    found = there.job("job-1")
    assert found is not None
    assert found.container is not None
    return found.container


def listings(there: Account) -> int:
    return [(one.service, one.operation) for one in there.calls].count(("ecr", "DescribeImages"))


def test_a_short_tag_of_awss_is_the_newest_container_for_ec2_that_it_begins(there: Account) -> None:
    listed = there.ecr[HOME]
    for tag in (
        "2.9.0-gpu-py312-ec2",
        "2.9.1-cpu-py312-ec2",
        "2.9.1-gpu-py312-cu130-ec2",
        "2.9.1-gpu-py312-sagemaker",
        "2.10.0-gpu-ec2",
    ):
        listed.push(CONTAINERS, CONTAINER[0], tag, command=["/bin/bash"])
    start({**LEAST, "image": f"{CONTAINER[0]}:2.9-gpu"})
    found = container(there)
    assert found.digest == listed.repositories[CONTAINERS, CONTAINER[0]]["2.9.1-gpu-py312-cu130-ec2"]
    assert (found.source, found.repositories) == (
        f"{CONTAINER[0]}:2.9-gpu",
        {HOME: f"{registry(CONTAINERS)}/{CONTAINER[0]}"},
    )


@pytest.mark.parametrize("regions", [[HOME, AWAY], [AWAY, HOME]])
def test_a_short_tag_is_the_newest_image_that_every_region_has(there: Account, regions: list[str]) -> None:
    name = CONTAINER[0]
    old = [there.ecr[region].push(CONTAINERS, name, "2.9.0-gpu-ec2", command=["/bin/bash"]) for region in (HOME, AWAY)]
    there.ecr[AWAY].push(CONTAINERS, name, "2.9.1-gpu-ec2", command=["/bin/bash"])
    start({**LEAST, "image": f"{name}:2.9-gpu", "regions": regions})
    assert {container(there).digest} == set(old)


def test_regions_without_a_common_image_are_refused_with_the_digests_of_both(there: Account) -> None:
    name = CONTAINER[0]
    here = there.ecr[HOME].push(CONTAINERS, name, "2.9.0-gpu-ec2", command=["/bin/bash"])
    away = there.ecr[AWAY].push(CONTAINERS, name, "2.9.1-gpu-ec2", command=["/bin/bash"])
    said = refused({**LEAST, "image": f"{name}:2.9-gpu", "regions": [HOME, AWAY]})
    assert f"is another image in {AWAY} ({away}), whose registry lacks the job's, {here}" in said


def test_a_list_that_aws_denies_is_told_as_such(there: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = there.ecr[HOME].answer

    def denied(operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if operation == "DescribeImages":
            raise Refused("AccessDeniedException", "User is not authorized to perform: ecr:DescribeImages")
        return answer(operation, params)

    monkeypatch.setattr(there.ecr[HOME], "answer", denied)
    said = refused({**LEAST, "image": f"{CONTAINER[0]}:2.9-gpu"})
    assert "cannot be checked in 763104351884.dkr.ecr" in said
    assert "AccessDeniedException" in said


@pytest.mark.parametrize("tag", ["latest", "2.9", "v1", f"2.9-gpu@sha256:{'0' * 64}"])
def test_what_can_be_no_short_tag_is_not_looked_for_in_a_list(there: Account, tag: str) -> None:
    assert "does not exist in" in refused({**LEAST, "image": f"{CONTAINER[0]}:{tag}"})
    assert listings(there) == 0


def test_an_index_for_lazy_loading_beside_the_image_is_no_image_of_its_own(there: Account) -> None:
    here = there.ecr[HOME]
    digest = here.push(CONTAINERS, "other", "x", command=["/bin/bash"])
    inner = here.push(CONTAINERS, "other", "soci")
    here.blobs.update({name: b"{}" for name in here.blobs if name in here.manifests[inner]})
    here.push_index(
        CONTAINERS, CONTAINER[0], "2.9-gpu-soci", ("linux", "amd64", digest), ("linux", "amd64", inner), beside=inner
    )
    start({**LEAST, "image": f"{CONTAINER[0]}:2.9-gpu-soci"})
    assert container(there).digest == here.repositories[CONTAINERS, CONTAINER[0]]["2.9-gpu-soci"]


def test_a_whole_tag_is_not_looked_for_in_a_list(there: Account) -> None:
    start({**LEAST, "image": ":".join(CONTAINER)})
    assert listings(there) == 0


@pytest.mark.parametrize("image", ["images:2.9-gpu", f"{registry(PARTNER)}/models:2.9-gpu"])
def test_a_tag_of_anybody_else_stands_for_itself_alone(there: Account, image: str) -> None:
    there.ecr[HOME].closed = frozenset()
    there.ecr[HOME].push(PLACE_ACCOUNT, NAME, "2.9.0-gpu-py312-ec2", entry_point=["python"])
    there.ecr[HOME].push(PARTNER, "models", "2.9.0-gpu-py312-ec2", entry_point=["python"])
    assert "2.9-gpu does not exist in" in refused({**ALONE, "image": image})
