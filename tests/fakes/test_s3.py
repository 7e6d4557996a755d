"""The fake S3 says what S3 says: conditional writes, versions, pages, and times of its own."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.builders import NOW
from tests.fakes.aws import Aws
from tests.fakes.faked import BUCKET, connected, refused, s3
from tests.fakes.faults import Kind


@pytest.fixture
def aws() -> Iterator[Aws]:
    with connected() as fake:
        yield fake


def test_only_the_first_of_two_creations_wins(aws: Aws) -> None:
    s3().put_object(Bucket=BUCKET, Key="a", Body=b"1", IfNoneMatch="*")
    assert refused(s3().put_object, Bucket=BUCKET, Key="a", Body=b"2", IfNoneMatch="*") == "PreconditionFailed"
    assert aws.s3.read(BUCKET, "a") == b"1"


def test_a_replacement_names_what_it_replaces(aws: Aws) -> None:
    etag = s3().put_object(Bucket=BUCKET, Key="a", Body=b"1")["ETag"]
    s3().put_object(Bucket=BUCKET, Key="a", Body=b"2", IfMatch=etag)
    assert refused(s3().put_object, Bucket=BUCKET, Key="a", Body=b"3", IfMatch=etag) == "PreconditionFailed"
    assert refused(s3().put_object, Bucket=BUCKET, Key="b", Body=b"3", IfMatch=etag) == "NoSuchKey"
    assert aws.s3.read(BUCKET, "a") == b"2"


def test_a_conditional_write_whose_answer_was_lost_meets_itself(aws: Aws) -> None:
    aws.faults.add(Kind.LOST, "s3:PutObject")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        boto3.client("s3").put_object(Bucket=BUCKET, Key="a", Body=b"1", IfNoneMatch="*")
    assert aws.s3.read(BUCKET, "a") == b"1"


def test_a_deleted_object_is_gone_and_its_version_is_not(aws: Aws) -> None:  # noqa: ARG001
    version = s3().put_object(Bucket=BUCKET, Key="a", Body=b"1")["VersionId"]
    s3().delete_object(Bucket=BUCKET, Key="a")
    s3().delete_object(Bucket=BUCKET, Key="never there")
    assert refused(s3().get_object, Bucket=BUCKET, Key="a") == "NoSuchKey"
    assert refused(s3().head_object, Bucket=BUCKET, Key="a") == "404"
    assert s3().get_object(Bucket=BUCKET, Key="a", VersionId=version)["Body"].read() == b"1"
    assert s3().list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0


def test_a_copy_takes_the_version_it_names(aws: Aws) -> None:
    version = s3().put_object(Bucket=BUCKET, Key="a b/ü", Body=b"1")["VersionId"]
    s3().put_object(Bucket=BUCKET, Key="a b/ü", Body=b"2")
    s3().copy_object(Bucket=BUCKET, Key="c", CopySource={"Bucket": BUCKET, "Key": "a b/ü", "VersionId": version})
    assert aws.s3.read(BUCKET, "c") == b"1"


def test_times_are_s3s_own_and_whole_seconds(aws: Aws) -> None:
    s3().put_object(Bucket=BUCKET, Key="a", Body=b"1")
    aws.clock.run(90.7)
    page = s3().list_objects_v2(Bucket=BUCKET)
    assert page["Contents"][0]["LastModified"].timestamp() == NOW
    assert page["ResponseMetadata"]["HTTPHeaders"]["date"].endswith("08:01:30 GMT")


def test_a_listing_comes_in_pages_and_in_the_order_of_keys(aws: Aws) -> None:
    aws.s3.pages.size = 2
    for key in "cabed":
        aws.s3.write(BUCKET, f"x/{key}", b"")
    aws.s3.write(BUCKET, "y", b"")
    pages = list(s3().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="x/"))
    assert [len(page["Contents"]) for page in pages] == [2, 2, 1]
    assert [one["Key"] for page in pages for one in page["Contents"]] == [f"x/{key}" for key in "abcde"]


def test_keys_that_are_equal_up_to_the_delimiter_are_one_entry_that_counts_as_one(aws: Aws) -> None:
    for key in ("x/tr", "x/train-old/a", "x/train.csv", "x/train/a", "x/train/b/c", "y/train"):
        aws.s3.write(BUCKET, key, b"")
    page = s3().list_objects_v2(Bucket=BUCKET, Prefix="x/tr", Delimiter="/")
    assert [one["Key"] for one in page["Contents"]] == ["x/tr", "x/train.csv"]
    assert [one["Prefix"] for one in page["CommonPrefixes"]] == ["x/train-old/", "x/train/"]
    assert (page["KeyCount"], page["IsTruncated"]) == (4, False)


def test_a_page_of_folders_goes_on_behind_them(aws: Aws) -> None:
    for key in ("a/1", "a/2", "b", "c/1", "c/2"):
        aws.s3.write(BUCKET, key, b"")
    aws.s3.pages.size = 2
    pages = list(s3().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Delimiter="/"))
    assert [[one["Prefix"] for one in page.get("CommonPrefixes", [])] for page in pages] == [["a/"], ["c/"]]
    assert [one["Key"] for page in pages for one in page.get("Contents", [])] == ["b"]


def test_without_a_delimiter_behind_the_prefix_there_are_no_folders(aws: Aws) -> None:
    aws.s3.write(BUCKET, "a/1", b"")
    assert "CommonPrefixes" not in s3().list_objects_v2(Bucket=BUCKET)
    assert "CommonPrefixes" not in s3().list_objects_v2(Bucket=BUCKET, Prefix="a/", Delimiter="/")


def test_what_may_not_be_touched_is_forbidden_and_head_tells_the_status_alone(aws: Aws) -> None:
    aws.s3.buckets[BUCKET].forbidden = ("control/",)
    assert refused(s3().get_object, Bucket=BUCKET, Key="control/x") == "AccessDenied"
    assert refused(s3().head_object, Bucket=BUCKET, Key="control/x") == "403"
    assert refused(s3().get_object, Bucket="nobodys", Key="x") == "NoSuchBucket"


def test_an_object_in_an_archive_class_is_told_of_and_can_neither_be_read_nor_copied_until_it_is_restored(
    aws: Aws,
) -> None:
    aws.s3.write(BUCKET, "cold", b"1", storage_class="GLACIER")
    here = {"Bucket": BUCKET, "Key": "cold"}
    assert s3().head_object(**here)["StorageClass"] == "GLACIER"
    assert refused(s3().get_object, **here) == "InvalidObjectState"
    assert refused(s3().copy_object, Bucket=BUCKET, Key="b", CopySource=here) == "InvalidObjectState"
    aws.s3.write(BUCKET, "cold", b"1", storage_class="GLACIER", restore='ongoing-request="false"')
    assert s3().get_object(**here)["Body"].read() == b"1"
