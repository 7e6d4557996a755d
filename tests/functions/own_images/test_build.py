"""Both ends of a build of the platform's own image: what is ordered, what is believed, and what is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from contract import keys, names
from contract.codec import decode, encode
from contract.errors import BuildFailed
from contract.images import Base, BuildOrder
from tests.builders import JOB
from tests.fakes.aws import Aws
from tests.fakes.ecr import FakeEcr
from tests.fakes.functions import Functions, Outcome
from tests.fakes.yard import ABROAD, PLACE, deployed

HOME, AWAY = PLACE.region, ABROAD.region
ACCOUNT = "123456789012"
REPOSITORY = names.repository(JOB.deployment, names.PLATFORM)
TAG = names.child_image_tag("c0ffee" * 8)
BASE = "public.ecr.aws/docker/library/python:3.13-slim-bookworm"
OURS, STRANGE, OF_BASE = (f"sha256:{letter * 64}" for letter in "abc")


class Registry:
    """A deployment of two regions whose platform repositories exist."""

    def __init__(self, aws: Aws, functions: Functions) -> None:
        self.aws, self.functions = aws, functions

    def stand(self, **digests: str) -> None:
        """Digest under the tag, `home` or `away`."""
        for name, digest in digests.items():
            region = {"home": HOME, "away": AWAY}[name]
            self.aws.ecr[region].repositories[ACCOUNT, REPOSITORY][TAG] = digest

    def record(self, digest: str = OURS) -> None:
        self.aws.s3.write(JOB.home_bucket, keys.own_provenance(TAG, digest), b"{}")

    def check(self, base: str = BASE, **more: str) -> Outcome:
        return self.functions.invoke("own_images", {"action": "check", "request": {"tag": TAG, "base": base, **more}})

    def plan(self, base: str = BASE) -> dict[str, Any]:
        outcome = self.check(base)
        assert outcome.error == "", outcome.cause
        found: dict[str, Any] = outcome.value
        return found

    def order(self, base: str = BASE) -> BuildOrder:
        return decode(BuildOrder, self.plan(base)["order"])

    def collect(self, problem: dict[str, str] | None = None) -> Outcome:
        event = {"action": "collect", "plan": {"tag": TAG, "how": "built"}, "build": "b:1", "problem": problem}
        return self.functions.invoke("own_images", event)


@pytest.fixture
def there() -> Iterator[Registry]:
    aws = deployed(places=(PLACE, ABROAD))
    for region in (HOME, AWAY):
        aws.ecr[region] = FakeEcr(ACCOUNT, {(ACCOUNT, REPOSITORY): {}})
    aws.s3.write(JOB.home_bucket, keys.own_context(TAG), b"a context")
    made = Registry(aws, Functions(aws))
    with made.functions.installed():
        yield made


def test_the_order_is_of_the_platforms_own_room(there: Registry) -> None:
    order = there.order()
    assert order.context is not None
    assert (order.repository, order.tag, order.context.key) == (REPOSITORY, TAG, keys.own_context(TAG))
    assert (order.cache, order.records) == (names.platform_cache("yard"), JOB.home_bucket)
    assert set(order.regions) == {HOME, AWAY}
    assert order.source == ""


def test_a_first_build_finds_the_digest_of_its_base_and_later_ones_are_told(there: Registry) -> None:
    assert (there.order().base, there.order().base_digest) == (BASE, "")
    there.aws.s3.write(JOB.home_bucket, keys.own_base(BASE), encode(Base(address=BASE, digest=OF_BASE)))
    assert (there.order().base, there.order().base_digest) == (BASE, OF_BASE)


def test_a_base_that_the_settings_name_by_its_digest_is_that_one(there: Registry) -> None:
    assert there.order(f"{BASE}@{OF_BASE}").base_digest == OF_BASE


def test_a_record_of_another_base_is_not_believed(there: Registry) -> None:
    there.aws.s3.write(JOB.home_bucket, keys.own_base(BASE), encode(Base(address="x.y/z:1", digest=OF_BASE)))
    assert there.check().error == BuildFailed.__name__


def test_an_image_that_no_build_of_ours_recorded_is_not_believed(there: Registry) -> None:
    """Somebody computed the tag, and pushed an image of his own under it before the deploy."""
    there.stand(home=STRANGE, away=STRANGE)
    outcome = there.check()
    assert outcome.error == BuildFailed.__name__
    assert STRANGE in outcome.cause
    assert "aws ecr batch-delete-image" in outcome.cause


def test_a_strange_image_in_one_region_is_not_copied_to_the_others(there: Registry) -> None:
    there.stand(away=STRANGE)
    assert there.check().error == BuildFailed.__name__


def test_a_strange_image_beside_ours_ends_the_build(there: Registry) -> None:
    there.record()
    there.stand(home=OURS, away=STRANGE)
    assert there.check().error == BuildFailed.__name__


def test_two_images_of_ours_under_one_tag_are_told(there: Registry) -> None:
    for digest in (OURS, STRANGE):
        there.record(digest)
    there.stand(home=OURS, away=STRANGE)
    assert "different image in different regions" in there.check().cause


def test_a_record_of_another_tag_is_none(there: Registry) -> None:
    other = names.child_image_tag("d" * 64)
    there.aws.s3.write(JOB.home_bucket, keys.own_provenance(other, OURS), b"{}")
    there.stand(home=OURS, away=OURS)
    assert there.check().error == BuildFailed.__name__


def test_what_our_own_build_pushed_everywhere_is_not_built_again(there: Registry) -> None:
    there.record()
    there.stand(home=OURS, away=OURS)
    assert there.plan() == {"tag": TAG, "how": "unchanged", "order": ""}


def test_what_our_own_build_left_undone_is_copied_by_its_digest(there: Registry) -> None:
    there.record()
    there.stand(home=OURS)
    order = there.order()
    assert (order.regions, order.context) == ((AWAY,), None)
    assert order.source.endswith(f"{HOME}.amazonaws.com/{REPOSITORY}@{OURS}")


def test_a_context_that_is_gone_is_said(there: Registry) -> None:
    there.aws.s3.buckets[JOB.home_bucket].objects.clear()
    assert "is gone" in there.check().cause


def test_a_region_without_the_repository_is_said(there: Registry) -> None:
    there.aws.ecr[AWAY] = FakeEcr(ACCOUNT, {})
    assert f"{AWAY} has no repository" in there.check().cause


@pytest.mark.parametrize("field", ["copy", "context", "repository", "if_absent"])
def test_a_request_has_no_field_that_names_another_image(there: Registry, field: str) -> None:
    assert there.check(**{field: "s3://anywhere/else"}).error == TypeError.__name__


def test_the_end_of_a_build_names_image_provenance_and_parts(there: Registry) -> None:
    there.record()
    there.stand(home=OURS, away=OURS)
    outcome = there.collect()
    assert outcome.value["digest"] == OURS
    assert outcome.value["provenance"] == f"s3://{JOB.home_bucket}/{keys.own_provenance(TAG, OURS)}"


def test_the_end_of_a_build_believes_no_image_without_its_record(there: Registry) -> None:
    there.stand(home=STRANGE, away=STRANGE)
    assert there.collect().error == BuildFailed.__name__


def test_the_end_of_a_build_believes_no_image_that_a_region_lacks(there: Registry) -> None:
    there.record()
    there.stand(home=OURS)
    assert there.collect().error == BuildFailed.__name__


def test_a_build_that_never_ran_is_told(there: Registry) -> None:
    outcome = there.collect({"Error": "CodeBuild.X", "Cause": json.dumps({"no": "build"})})
    assert (outcome.error, "did not start" in outcome.cause) == (BuildFailed.__name__, True)
