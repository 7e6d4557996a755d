"""Images that a request names for its container; wrong ones are in the table of refusals."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from aws.facts import Platform, StoredImage
from contract import names
from contract.containers import UNPACKED, Container
from contract.images import ContainerImage
from contract.jobs import Job
from job_checks.containers import find_agreed_image
from job_checks.facts import RegistryAnswer
from job_checks.registries import RegistryAway
from localaws.services.ecr_model import digest_of
from tests.builders import ADMISSION, PLACE
from tests.fakes.faults import Kind
from tests.fakes.yard import ABROAD
from tests.functions.admission.account import (
    ADMITTING,
    CONTAINER,
    CONTAINERS,
    GIB,
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
"""The smallest request of an image that has all that runs."""
BOTH = {**ALONE, "regions": [HOME, AWAY]}
INDEX = "application/vnd.oci.image.index.v1+json"


@pytest.fixture
def there() -> Iterator[Account]:
    images = ADMITTING.images | {"arm64": "/aws/service/g"}
    with account(replace(ADMITTING, regions=(HOME, AWAY), images=images)) as opened:
        yield opened


def job(there: Account, name: str = "job-1") -> Job:
    found = there.job(name)
    assert found is not None
    return found


def container(there: Account) -> Container:
    found = job(there).container
    assert found is not None
    return found


def standing(there: Account, tag: str = "v1", region: str = HOME) -> str:
    return there.ecr[region].repositories[PLACE_ACCOUNT, NAME][tag]


def pushed(there: Account, architecture: str) -> str:
    return there.ecr[HOME].push(
        PLACE_ACCOUNT, NAME, architecture, architecture=architecture, entry_point=["run"], size=GIB
    )


def indexed(there: Account, manifests: list[dict[str, Any]]) -> str:
    """Puts an index of these under the tag `both`. Returns its digest."""
    ecr = there.ecr[HOME]
    index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests})
    digest = digest_of(index.encode())
    ecr.manifests[digest] = index
    ecr.repositories[PLACE_ACCOUNT, NAME]["both"] = digest
    return digest


def test_an_image_with_an_entry_point_needs_neither_code_nor_command(there: Account) -> None:
    told = start(ALONE)
    assert (job(there).code, job(there).command) == (None, ())
    assert told["image"] == f"{registry(PLACE_ACCOUNT)}/{NAME}@{standing(there)}"
    assert there.changes == ["s3:PutObject", "dynamodb:PutItem"]


def test_a_request_without_an_image_asks_no_registry_and_its_job_has_no_container(there: Account) -> None:
    assert start(LEAST)["image"] is None
    assert job(there).container is None
    assert there.regions("ecr") == set()


def test_what_stands_under_the_tag_at_admission_is_what_every_attempt_runs(there: Account) -> None:
    before = standing(there)
    start(ALONE)
    there.ecr[HOME].push(PLACE_ACCOUNT, NAME, "v1", entry_point=["python", "/app/other.py"])
    start(ALONE)  # a second run of the step
    assert container(there).digest == before != standing(there)


def test_code_command_and_arguments_stay_as_they_were_given(there: Account) -> None:
    words = ["a b", "$HOME", "--x='", "", "\u202e", "é"]
    start({**LEAST, "image": "images:v1", "arguments": words})
    assert container(there).arguments == tuple(words)
    assert job(there).command == tuple(LEAST["command"])
    assert job(there).code is not None


def test_arguments_may_follow_a_command_where_the_image_has_no_entry_point(there: Account) -> None:
    start({**ALONE, "image": "images:shell", "command": ["python", "x.py"], "arguments": ["--epochs", "3"]})
    assert container(there).arguments == ("--epochs", "3")


def test_the_same_digest_is_pulled_in_every_region_from_its_own_registry(there: Account) -> None:
    start(BOTH)
    assert container(there).repositories == {
        region: f"{registry(PLACE_ACCOUNT, region)}/{NAME}" for region in (HOME, AWAY)
    }


def test_a_tag_that_names_another_image_elsewhere_does_not_matter_where_the_digest_stands_too(there: Account) -> None:
    there.ecr[AWAY].push(PLACE_ACCOUNT, NAME, "v1", entry_point=["other"])
    start(BOTH)
    assert container(there).digest == standing(there)
    assert container(there).repositories.keys() == {HOME, AWAY}


def test_a_region_whose_tag_names_another_image_and_that_lacks_the_jobs_is_refused(there: Account) -> None:
    lacking = there.ecr[AWAY]
    lacking.manifests.clear()
    lacking.push(PLACE_ACCOUNT, NAME, "v1", entry_point=["other"])
    assert f"image: images:v1 is another image in {AWAY} ({standing(there, region=AWAY)})" in refused(BOTH)
    assert there.changes == []


def test_any_region_leaves_out_the_one_that_lacks_the_image_and_says_why(there: Account) -> None:
    del there.ecr[AWAY].repositories[PLACE_ACCOUNT, NAME]
    told = start({**ALONE, "regions": "auto"})
    assert {rung.region for rung in job(there).ladder} == {HOME} == container(there).repositories.keys()
    assert any(line.startswith(f"{AWAY}: image: images:v1 does not exist in {AWAY}") for line in told["left_out"])


def test_no_region_is_left_where_none_has_the_image(there: Account) -> None:
    said = refused({**ALONE, "image": "images:gone", "regions": "auto"})
    assert there.changes == []
    assert all(f"images:gone does not exist in {region}" in said for region in (HOME, AWAY))


def test_a_named_region_without_the_image_is_refused_although_another_has_it(there: Account) -> None:
    del there.ecr[AWAY].repositories[PLACE_ACCOUNT, NAME]
    assert f"images:v1 does not exist in {AWAY}" in refused(BOTH)


def test_a_container_of_awss_goes_by_its_short_name_and_is_pulled_from_the_regions_registry(there: Account) -> None:
    start({**LEAST, "image": ":".join(CONTAINER)})
    assert container(there).repositories == {HOME: f"{registry(CONTAINERS)}/{CONTAINER[0]}"}


def test_a_whole_address_of_another_region_is_pulled_near_the_nodes(there: Account) -> None:
    start({**ALONE, "image": f"{registry(PLACE_ACCOUNT, AWAY)}/{NAME}:v1"})
    assert container(there).repositories == {HOME: f"{registry(PLACE_ACCOUNT, HOME)}/{NAME}"}


def test_a_digest_is_taken_as_it_is(there: Account) -> None:
    start({**ALONE, "image": f"images@{standing(there)}"})
    assert container(there).digest == standing(there)


def test_the_default_disk_grows_with_what_the_image_takes_unpacked(there: Account) -> None:
    start(ALONE, "small")
    start({**ALONE, "image": "images:large"}, "large")
    # The machine's image, and beside it the container's.
    assert job(there, "small").volume_gb == 100
    assert job(there, "large").volume_gb == 75 + 20 * UNPACKED


def test_an_index_is_read_for_every_processor_and_what_is_attested_beside_them_is_passed_over(there: Account) -> None:
    inner = [pushed(there, one) for one in ("amd64", "arm64")]
    platforms = [{"os": "linux", "architecture": one} for one in ("amd64", "arm64")]
    many = [{"digest": digest, "platform": one} for digest, one in zip(inner, platforms, strict=True)]
    strange = {"digest": f"sha256:{'0' * 64}", "platform": {"os": "unknown", "architecture": "unknown"}}
    digest = indexed(there, [*many, strange])
    start({**ALONE, "image": "images:both", "instance_types": ["g5.xlarge", "t4g.large"]})
    assert container(there).digest == digest
    assert {rung.instance_type for rung in job(there).ladder} == {"g5.xlarge", "t4g.large"}


def test_an_index_that_does_not_say_for_what_its_images_are_is_read_as_docker_reads_it(there: Account) -> None:
    """Docker takes such an image for any processor; what it is for stands in its configuration."""
    ecr = there.ecr[HOME]
    artifact = json.dumps({"schemaVersion": 2, "artifactType": "application/x"})
    ecr.manifests[digest_of(artifact.encode())] = artifact
    indexed(there, [{"digest": pushed(there, "arm64")}, {"digest": digest_of(artifact.encode())}])
    assert "is for arm64, and g5.xlarge has x86_64" in refused({**ALONE, "image": "images:both"})
    start({**ALONE, "image": "images:both", "instance_types": ["t4g.large"]})


@pytest.mark.parametrize("system", ["windows", "unknown"])
def test_an_index_without_an_image_for_linux_is_refused(there: Account, system: str) -> None:
    indexed(there, [{"digest": pushed(there, "amd64"), "platform": {"os": system, "architecture": "amd64"}}])
    assert "its index names no image for Linux that the registry has" in refused({**ALONE, "image": "images:both"})


def test_an_image_for_windows_is_refused(there: Account) -> None:
    ecr = there.ecr[HOME]
    config = json.dumps({"architecture": "amd64", "os": "windows", "config": {"Entrypoint": ["run"]}}).encode()
    manifest = json.dumps({"schemaVersion": 2, "config": {"digest": digest_of(config)}, "layers": []})
    ecr.blobs[digest_of(config)] = config
    ecr.manifests[digest_of(manifest.encode())] = manifest
    ecr.repositories[PLACE_ACCOUNT, NAME]["panes"] = digest_of(manifest.encode())
    assert "it is an image for windows" in refused({**ALONE, "image": "images:panes"})


def test_a_configuration_that_is_not_the_manifests_is_refused(there: Account) -> None:
    blobs = there.ecr[HOME].blobs
    for digest in blobs:
        blobs[digest] += b" "
    assert "its configuration is not the one that its manifest names" in refused(ALONE)


def test_a_wrong_field_beside_it_does_not_keep_the_image_from_being_looked_up(there: Account) -> None:
    said = refused({**ALONE, "image": "images:gone", "nodes": 0})
    assert there.changes == []
    assert re.search(r"nodes: 0 .*\n- image: images:gone does not exist", said)


def test_an_image_that_may_not_be_pulled_is_not_even_asked_for(there: Account) -> None:
    refused({**ALONE, "image": f"{registry('999999999999')}/images:v1"})
    assert there.regions("ecr") == set()


@pytest.mark.parametrize(
    "inner", [(), (("linux", "amd64", f"sha256:{'0' * 64}"),), (("unknown", "unknown", "sha256:1"),)]
)
def test_an_index_without_an_image_that_the_registry_has_is_refused(
    there: Account, inner: tuple[tuple[str, str, str], ...]
) -> None:
    there.ecr[HOME].push_index(PLACE_ACCOUNT, NAME, "hollow", *inner)
    assert "its index names no image for Linux that the registry has" in refused({**ALONE, "image": "images:hollow"})
    assert there.changes == []


def test_an_image_whose_digest_nobody_tells_is_refused(there: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = there.ecr[HOME].answer

    def answer(operation: str, params: Any) -> dict[str, Any]:
        told = honest(operation, params)
        return {**told, "images": [{**one, "imageId": {}} for one in told.get("images", [])]}

    monkeypatch.setattr(there.ecr[HOME], "answer", answer)
    said = refused(ALONE)
    assert f"images:v1 cannot be read in {registry(PLACE_ACCOUNT)} (the registry gives no digest for it)" in said
    assert there.changes == []


@pytest.mark.parametrize("kind", [Kind.THROTTLED, Kind.ERROR, Kind.UNREACHABLE])
def test_a_registry_that_is_away_is_no_refusal_and_is_told_with_the_image_and_its_region(
    there: Account, kind: Kind
) -> None:
    there.faults.add(kind, "ecr:BatchGetImage", times=100)
    with pytest.raises(RegistryAway) as problem:
        start(ALONE)
    assert str(problem.value).startswith(f"image: {registry(PLACE_ACCOUNT)}/{NAME}:v1 cannot be checked")
    assert there.changes == []
    there.faults.waiting.clear()
    assert start(ALONE)["job"] == "job-1"


def test_any_region_leaves_out_the_one_whose_registry_is_away(there: Account) -> None:
    there.faults.add(Kind.THROTTLED, "ecr:BatchGetImage", times=100, region=AWAY)
    told = start({**ALONE, "regions": "auto"})
    assert [rung.region for rung in job(there).ladder if rung.region == AWAY] == []
    assert any(line.startswith(f"{AWAY}: image: images:v1 cannot be read in") for line in told["left_out"])


def test_a_registry_that_lets_nobody_look_is_a_refusal_that_names_it(there: Account) -> None:
    there.faults.add(Kind.DENIED, "ecr:BatchGetImage")
    assert f"images:v1 cannot be read in {registry(PLACE_ACCOUNT)} (AccessDenied" in refused(ALONE)


WITHOUT = replace(ADMITTING, regions=(HOME, AWAY), base_accounts={"": CONTAINERS, AWAY: ""})
"""A deployment that trains in a region of which no registry of AWS's containers is known."""


def test_a_container_of_awss_where_no_registry_of_them_is_known_is_refused_with_the_region() -> None:
    request = {**LEAST, "image": ":".join(CONTAINER), "regions": [HOME, AWAY]}
    with account(WITHOUT) as there:
        assert f"and the settings have no registry of these in {AWAY}" in refused(request)
        assert f"and the settings have no registry of these in {AWAY}" in refused(
            {**LEAST, "image": ":".join(CONTAINER), "region": AWAY}
        )
        assert there.changes == []


def test_any_region_leaves_out_the_one_without_a_registry_of_awss_containers() -> None:
    with account(WITHOUT) as there:
        start({**LEAST, "image": ":".join(CONTAINER), "regions": "auto"})
        assert {rung.region for rung in job(there).ladder} == {HOME} == container(there).repositories.keys()


LOOK = RegistryAnswer(
    image=ContainerImage("r.example.com", "images", "v1"),
    stored=StoredImage(digest="sha256:a", platforms=(Platform(architecture="amd64", size=1),)),
)


def test_the_first_region_that_has_the_image_says_which_it_is() -> None:
    other = replace(LOOK, stored=StoredImage(digest="sha256:b"))
    silent = replace(LOOK, stored=None, trouble="AccessDeniedException")
    assert find_agreed_image({"a": silent, "b": LOOK, "c": other}) == LOOK.stored
    assert find_agreed_image({"a": replace(other, other="sha256:b"), "b": LOOK}) == LOOK.stored
    assert find_agreed_image({"a": silent}) is None


def test_an_admission_that_runs_twice_keeps_its_first_digest_although_the_tag_has_moved_between(there: Account) -> None:
    start(ALONE)
    first = container(there).digest
    there.ecr[HOME].push(PLACE_ACCOUNT, NAME, "v1", entry_point=["other"], size=GIB)
    assert standing(there) != first
    assert start(ALONE)["image"].endswith(f"@{first}")
    assert container(there).digest == first
