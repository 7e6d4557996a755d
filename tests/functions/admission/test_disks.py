"""The disk that Admit gives a job: large enough for what is known, and as fast as its size and the settings let it be."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from aws.facts import Object
from contract.errors import InvalidRequest
from contract.jobs import Job
from job_checks import volumes
from refusals.archive import Listing, listing
from tests.archives import link, tarred, zip_entry, zip_with
from tests.builders import IMAGE, LIMITS
from tests.functions.admission.account import Account, start
from tools.refusals.jobs import LEAST

GIB = volumes.GIB
FAST = replace(LIMITS, volume_iops=16_000, volume_throughput=1_000)
CODE = Object(bucket="yard-home", key="uploads/a.zip", size=5 * GIB, version="v1")


def admitted(there: Account, **fields: object) -> Job:
    start({**LEAST, **fields})
    job = there.job("job-1")
    assert job is not None
    return job


def test_a_disk_of_a_deployment_that_asks_for_nothing_has_what_every_disk_has(there: Account) -> None:
    job = admitted(there)
    assert (job.volume_iops, job.volume_throughput) == (3_000, 125)


def test_a_disk_gets_the_settings_where_its_size_takes_them() -> None:
    assert volumes.choose_disk(100, FAST, [IMAGE], 0) == volumes.Disk(gb=100, iops=16_000, throughput=1_000)


def test_a_disk_that_is_too_small_for_the_settings_gets_fewer_and_is_not_rejected() -> None:
    small = replace(IMAGE, snapshot_gb=6)
    assert volumes.choose_disk(6, FAST, [small], 0) == volumes.Disk(gb=6, iops=3_000, throughput=750)


def test_the_default_has_room_for_the_largest_image_and_the_code_beside_it() -> None:
    images = [IMAGE, replace(IMAGE, snapshot_gb=98)]
    assert volumes.choose_disk(None, LIMITS, images, 14 * GIB).gb == 112
    assert volumes.choose_disk(None, LIMITS, images, 100).gb == LIMITS.volume_gb


def test_the_default_does_not_pass_the_deployments_limit_for_the_codes_sake() -> None:
    images = [replace(IMAGE, snapshot_gb=995)]
    assert volumes.choose_disk(None, LIMITS, images, 14 * GIB).gb == LIMITS.max_volume_gb


def test_a_size_that_was_asked_for_is_never_changed() -> None:
    assert volumes.choose_disk(76, LIMITS, [IMAGE], 14 * GIB).gb == 76


def test_a_size_that_the_code_alone_fills_is_rejected_with_the_number() -> None:
    (line,) = volumes.check_size(14, LIMITS, volumes.count_code_bytes(CODE, Listing(size=10 * GIB)))
    assert line == (
        "volume_gb: 14 is too small for the code, which takes 15.0 GiB, packed and unpacked; "
        "allowed: more than 15, and room for the image and the checkpoints"
    )


@pytest.mark.parametrize(
    ("asked", "bytes_brought"),
    [(None, 999 * GIB), (15, 15 * GIB), (1, 0), (1, 1)],
)
def test_a_size_that_may_be_enough_is_not_rejected(asked: int | None, bytes_brought: int) -> None:
    assert volumes.check_size(asked, LIMITS, bytes_brought) == []


def test_code_that_nobody_could_look_at_brings_nothing_that_is_known() -> None:
    assert volumes.count_code_bytes(None, None) == 0
    assert volumes.count_code_bytes(CODE, None) == 5 * GIB


def test_a_request_learns_of_the_image_and_of_the_limit_by_the_name_of_the_field(there: Account) -> None:
    for asked, words in (
        (74, "too small for the image"),
        (1001, "too large; allowed: a whole number from 1 to 1000"),
    ):
        with pytest.raises(InvalidRequest, match=rf"- volume_gb: {asked} is {words}"):
            start({**LEAST, "volume_gb": asked})
    assert there.changes == []


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (tarred(("a.py", "123"), ("b/c.py", "4567"), link("l", "a.py"), link("h", "a.py", hard=True)), "a.tar.gz"),
        (zip_with(("a.py", "123"), ("b/", ""), ("b/c.py", "4567"), (zip_entry("l", 0o120777), "a.py")), "a.zip"),
    ],
    ids=["tar.gz", "zip"],
)
def test_the_files_of_an_archive_are_counted_and_its_folders_and_links_are_not(body: bytes, name: str) -> None:
    assert listing(io.BytesIO(body), name, lambda: False).size == 7
