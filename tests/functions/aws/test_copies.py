"""Copies of large archives: in parts, side by side, whole or not at all."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from aws.copies import PART_BYTES, copy
from aws.facts import Object

LARGEST = 5 * 1024**3
"""The largest archive that Admit takes."""


class S3:
    """Answers as S3 does to a copy; `failing`: a call to its error code."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.failing: dict[str, str] = {}
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        def call(**arguments: Any) -> dict[str, Any]:
            with self._lock:
                self.calls.append((name, arguments))
            if code := self.failing.get(name):
                raise ClientError({"Error": {"Code": code, "Message": "said S3"}}, name)
            number = arguments.get("PartNumber")
            return {"ETag": '"whole"', "UploadId": "upload", "CopyPartResult": {"ETag": f'"{number}"'}}

        return call

    def named(self, name: str) -> list[dict[str, Any]]:
        return [arguments for call, arguments in list(self.calls) if call == name]


def run(s3: S3, size: int, version: str = "v1") -> None:
    copy(cast(Any, s3), Object(bucket="from", key="a.tar.gz", size=size, version=version), "to", "code.tar.gz")


def test_a_small_archive_is_one_call_that_leaves_its_tags_behind() -> None:
    s3 = S3()
    run(s3, PART_BYTES)
    source = {"Bucket": "from", "Key": "a.tar.gz", "VersionId": "v1"}
    copied = {"Bucket": "to", "Key": "code.tar.gz", "CopySource": source, "TaggingDirective": "REPLACE"}
    assert s3.calls == [("copy_object", copied)]


@pytest.mark.parametrize("size", [PART_BYTES + 1, 3 * PART_BYTES, LARGEST - 1, LARGEST])
def test_a_large_one_is_copied_in_parts_that_are_the_whole(size: int) -> None:
    s3 = S3()
    run(s3, size)
    ranges = sorted(
        tuple(map(int, part["CopySourceRange"].removeprefix("bytes=").split("-")))
        for part in s3.named("upload_part_copy")
    )
    assert (ranges[0][0], ranges[-1][1]) == (0, size - 1)
    assert all(after[0] == before[1] + 1 for before, after in pairwise(ranges))
    assert max(last - first + 1 for first, last in ranges) <= PART_BYTES
    (done,) = s3.named("complete_multipart_upload")
    numbers = [part["PartNumber"] for part in done["MultipartUpload"]["Parts"]]
    assert numbers == list(range(1, len(ranges) + 1))
    assert s3.named("abort_multipart_upload") == []


def test_every_part_is_of_the_same_object() -> None:
    s3 = S3()
    run(s3, LARGEST, version="")
    assert {part["CopySourceIfMatch"] for part in s3.named("upload_part_copy")} == {'"whole"'}
    assert all("VersionId" not in part["CopySource"] for part in s3.named("upload_part_copy"))


@pytest.mark.parametrize("call", ["upload_part_copy", "complete_multipart_upload"])
def test_a_copy_that_fails_leaves_no_parts_and_is_raised(call: str) -> None:
    s3 = S3()
    s3.failing[call] = "PreconditionFailed"
    with pytest.raises(ClientError, match="PreconditionFailed"):
        run(s3, LARGEST)
    assert s3.named("abort_multipart_upload") == [{"Bucket": "to", "Key": "code.tar.gz", "UploadId": "upload"}]


def test_parts_that_cannot_be_taken_back_hide_no_failure() -> None:
    s3 = S3()
    s3.failing |= {"upload_part_copy": "SlowDown", "abort_multipart_upload": "AccessDenied"}
    with pytest.raises(ClientError, match="SlowDown"):
        run(s3, LARGEST)
