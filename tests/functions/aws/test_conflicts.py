"""Conditional writes that meet others: the first one wins, and one that was only in the way of another is written again."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest
from botocore.exceptions import ClientError

import aws.s3
from aws.s3 import Bucket, Raced
from tests.fakes.aws import Aws
from tests.fakes.faked import BUCKET, connected


@pytest.fixture
def fake() -> Iterator[Aws]:
    with connected() as made, mock.patch.object(aws.s3, "time", made.clock):
        yield made


def test_only_the_first_creation_wins(fake: Aws) -> None:
    Bucket(BUCKET).create("a", b"1")
    with pytest.raises(Raced):
        Bucket(BUCKET).create("a", b"2")
    assert fake.s3.read(BUCKET, "a") == b"1"


def test_a_creation_that_meets_itself_is_no_race(fake: Aws) -> None:
    etag = Bucket(BUCKET).create("a", b"1")
    assert Bucket(BUCKET).create("a", b"1") == etag
    assert len(fake.s3.buckets[BUCKET].objects["a"]) == 1


def test_a_replacement_of_what_was_replaced_is_a_race(fake: Aws) -> None:
    old = Bucket(BUCKET).create("a", b"1")
    Bucket(BUCKET).replace("a", b"2", old)
    with pytest.raises(Raced):
        Bucket(BUCKET).replace("a", b"3", old)
    assert fake.s3.read(BUCKET, "a") == b"2"


def test_what_is_ensured_stays_as_whoever_came_first_wrote_it(fake: Aws) -> None:
    Bucket(BUCKET).ensure("a", b"1")
    Bucket(BUCKET).ensure("a", b"2")
    assert fake.s3.read(BUCKET, "a") == b"1"


@pytest.mark.parametrize("conflicts", [1, 3])
def test_a_conflict_that_left_nothing_there_is_written_again(fake: Aws, conflicts: int) -> None:
    fake.s3.conflicts = conflicts
    etag = Bucket(BUCKET).create("a", b"1")
    fake.s3.conflicts = conflicts
    Bucket(BUCKET).replace("a", b"2", etag)
    fake.s3.conflicts = conflicts
    Bucket(BUCKET).ensure("b", b"1")
    assert (fake.s3.read(BUCKET, "a"), fake.s3.read(BUCKET, "b")) == (b"2", b"1")


def test_a_conflict_that_does_not_end_is_a_race_and_what_is_ensured_says_so(fake: Aws) -> None:
    fake.s3.conflicts = 100
    with pytest.raises(Raced):
        Bucket(BUCKET).create("a", b"1")
    with pytest.raises(ClientError, match="ConditionalRequestConflict"):
        Bucket(BUCKET).ensure("b", b"1")
    assert fake.s3.read(BUCKET, "b") is None
