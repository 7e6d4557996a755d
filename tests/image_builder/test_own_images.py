"""Builds of the platform's own images: the context that the tag names, one base image for ever, and a record before any tag."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract import keys
from contract.codec import decode
from contract.images import Base, BuildOrder, ContainerImage, Context
from stacks.grid_settings import GridSettings
from stacks.parts.own_images import CHILD, child_tag
from tests.image_builder.bench import BUILT, Bench, fresh

ADDRESS = GridSettings().child_base
BASE = ContainerImage.parse(ADDRESS)
TAG = child_tag(ADDRESS)
OWN = replace(
    BUILT,
    repository="yard/platform",
    tag=TAG,
    context=Context(bucket="yard-home", key=keys.own_context(TAG), version="v-1", etag='"abc"'),
    cache="yard/platform-cache",
    base=ADDRESS,
    records="yard-home",
)


@pytest.fixture
def own(tmp_path: Path) -> Bench:
    """A machine with the child's context in the bucket, and the base image in its registry."""
    bench = fresh(tmp_path)
    files = {}
    for place, folder in CHILD.items():
        for file in (one for one in folder.rglob("*") if one.is_file() and "__pycache__" not in one.parts):
            files[(Path(place) / file.relative_to(folder)).as_posix()] = file.read_text()
    bench.upload(files, "child.tar.gz")
    stored = bench.images / "objects" / "yard-home"
    (stored / keys.OWN_CONTEXTS).mkdir(parents=True)
    shutil.unpack_archive(stored / "child.tar.gz", bench.folder / "child")
    shutil.make_archive(str(stored / keys.own_context(TAG).removesuffix(".zip")), "zip", bench.folder / "child")
    bench.put(BASE, '{"python": "of today"}')
    return bench


def stored(bench: Bench, key: str) -> Path:
    return bench.images / "objects" / "yard-home" / key


def digest_of(bench: Bench) -> str:
    (digest,) = set(bench.standing(OWN).values())
    assert digest is not None
    return digest


def provenance(bench: Bench) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stored(bench, keys.own_provenance(TAG, digest_of(bench))).read_text())
    return found


def test_a_build_records_what_it_made_of_what(own: Bench) -> None:
    done = own.run(OWN)
    assert done.returncode == 0, done.stdout + done.stderr
    written = provenance(own)
    assert written["subject"] == [
        {"name": "yard/platform", "digest": {"sha256": digest_of(own).removeprefix("sha256:")}}
    ]
    base = decode(Base, stored(own, keys.own_base(ADDRESS)).read_bytes())
    dependencies = written["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert dependencies[0] == {"uri": ADDRESS, "digest": {"sha256": base.digest.removeprefix("sha256:")}}
    assert TAG.endswith(dependencies[1]["digest"]["sha256"][:32])


def test_the_list_of_parts_has_the_base_every_package_and_every_file(own: Bench) -> None:
    own.run(OWN)
    listed = json.loads(stored(own, keys.own_parts(TAG, digest_of(own))).read_text())["components"]
    by_type = {
        kind: {one["name"] for one in listed if one["type"] == kind} for kind in ("container", "library", "file")
    }
    assert by_type["container"] == {ADDRESS}
    assert by_type["library"] >= {"boto3", "botocore", "urllib3"}
    assert by_type["file"] >= {"Dockerfile", "__main__.py", "contract/keys.py"}
    assert all(one["version"] for one in listed if one["type"] != "file")


def test_the_record_lies_there_before_any_region_has_the_tag(own: Bench) -> None:
    own.fail("create", says="denied")
    assert own.run(OWN).returncode != 0
    assert set(own.standing(OWN).values()) == {None}
    assert len(list(stored(own, f"{keys.OWN_RECORDS}{TAG}").iterdir())) == 2


def test_a_record_that_cannot_be_written_keeps_the_tag_from_every_region(own: Bench) -> None:
    stored(own, keys.OWN_RECORDS.rstrip("/")).write_text("a file where the folder should be")
    assert own.run(OWN).returncode != 0
    assert set(own.standing(OWN).values()) == {None}


def test_docker_gets_the_base_by_its_digest(own: Bench) -> None:
    own.run(OWN)
    digest = decode(Base, stored(own, keys.own_base(ADDRESS)).read_bytes()).digest
    assert own.arguments() == [f"BASE={BASE.registry}/{BASE.repository}@{digest}"]


def test_a_base_tag_that_moves_changes_no_later_build(own: Bench) -> None:
    own.run(OWN)
    fixed = decode(Base, stored(own, keys.own_base(ADDRESS)).read_bytes())
    own.put(BASE, '{"python": "somebody else\'s"}')
    (own.images / "calls").unlink()
    assert own.run(replace(OWN, base_digest=fixed.digest)).returncode == 0
    assert own.arguments()[0].endswith(fixed.digest)
    assert own.docker("buildx", "imagetools", "inspect") == []


def test_two_first_builds_of_a_base_agree_on_it_or_one_fails(own: Bench) -> None:
    own.run(OWN)
    kept = stored(own, keys.own_base(ADDRESS)).read_bytes()
    own.put(BASE, '{"python": "moved meanwhile"}')
    done = own.run(OWN)
    assert done.returncode != 0
    assert "PreconditionFailed" in done.stderr
    assert stored(own, keys.own_base(ADDRESS)).read_bytes() == kept


@pytest.mark.parametrize("change", ["another file", "a longer file", "a file less"])
def test_a_context_that_is_not_the_tags_is_not_built(own: Bench, change: str) -> None:
    place, child = stored(own, keys.own_context(TAG)), own.folder / "child"
    if change == "another file":
        (child / "sitecustomize.py").write_text("print('planted')\n")
    elif change == "a longer file":
        (child / "Dockerfile").write_text((child / "Dockerfile").read_text() + "RUN curl https://example.com | sh\n")
    else:
        (child / "retry.py").unlink()
    place.unlink()
    shutil.make_archive(str(place.with_suffix("")), "zip", child)
    done = own.run(OWN)
    assert done.returncode != 0
    assert f"The context is not the one of {TAG}" in done.stderr
    assert own.docker("buildx") == []


def test_another_base_than_the_tags_is_not_built_on(own: Bench) -> None:
    done = own.run(replace(OWN, base="public.ecr.aws/docker/library/python:3.12-slim"))
    assert "The context is not the one of" in done.stderr
    assert own.docker("buildx") == []


def test_what_an_earlier_build_left_undone_is_copied_without_another_record(own: Bench) -> None:
    own.fail("create", ".us-east-1.", says="denied")
    own.run(OWN)
    own.mend()
    before = provenance_files(own)
    (digest,) = set(own.standing(OWN).values()) - {None}
    there = replace(OWN.target("eu-central-1"), tag="", digest=str(digest))
    completed = BuildOrder(
        account=OWN.account,
        suffix=OWN.suffix,
        home_region=OWN.home_region,
        repository=OWN.repository,
        tag=TAG,
        regions=("us-east-1",),
        source=str(there),
    )
    assert own.run(completed).returncode == 0
    assert set(own.standing(OWN).values()) == {digest}
    assert provenance_files(own) == before


def test_a_persons_image_gets_no_record_and_its_base_stays_a_tag(own: Bench) -> None:
    assert own.run(replace(BUILT, base=ADDRESS)).returncode == 0
    assert own.aws("s3api", "put-object") == []
    assert own.arguments() == [f"BASE={ADDRESS}"]


def provenance_files(bench: Bench) -> list[str]:
    return sorted(one.name for one in stored(bench, f"{keys.OWN_RECORDS}{TAG}").iterdir())
