"""File systems that a request mounts; wrong ones are in the table of refusals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from contract.errors import InvalidRequest
from contract.jobs import Job
from job_requests.mount_fields import KEPT, SHARED, MountField
from tests.builders import FILE_SYSTEMS, PLACE
from tests.fakes.yard import ABROAD
from tests.functions.admission.account import ADMITTING, Account, account, start
from tools.refusals.jobs import LEAST
from tools.refusals.jobs.reservation import OURS

HOME, AWAY = PLACE.region, ABROAD.region
DATA = {"from": "fsx:corpus", "at": "/data"}
MOUNTS = [DATA, {"from": "efs:home", "at": "/mnt/home", "read_only": False}]


@pytest.fixture
def there() -> Iterator[Account]:
    """Two training regions, of which home has file systems."""
    with account(replace(ADMITTING, regions=(HOME, AWAY))) as opened:
        yield opened


def job(there: Account, name: str = "job-1") -> Job:
    found = there.job(name)
    assert found is not None
    return found


def refused(request: dict[str, Any]) -> str:
    with pytest.raises(InvalidRequest) as problem:
        start(request)
    return str(problem.value)


def test_a_job_pins_what_the_region_says_of_its_file_systems(there: Account) -> None:
    told = start({**LEAST, "mounts": MOUNTS})
    corpus, home, _ = FILE_SYSTEMS
    assert [(one.file_system, one.region, one.at, one.read_only) for one in job(there).mounted] == [
        (corpus, HOME, "/data", True),
        (home, HOME, "/mnt/home", False),
    ]
    assert told["mounts"] == ["fsx:corpus at /data, read only", "efs:home at /mnt/home, to write"]


def test_a_job_without_mounts_has_none_and_no_region_is_asked_for_file_systems(there: Account) -> None:
    assert start(LEAST)["mounts"] == []
    assert job(there).mounted == ()
    assert not any("file-systems" in str(one) for one in there.find_params("GetParameter"))


def test_mounts_need_no_image_and_go_with_one(there: Account) -> None:
    start({"image": "images:v1", "instance_types": ["g5.xlarge"], "mounts": [DATA]})
    assert job(there).container is not None
    assert [one.at for one in job(there).mounted] == ["/data"]


def test_a_file_system_may_be_mounted_twice_in_folders_apart(there: Account) -> None:
    start({**LEAST, "mounts": [DATA, {**DATA, "at": "/again", "read_only": False}]})
    assert [one.at for one in job(there).mounted] == ["/data", "/again"]


def test_a_name_that_only_begins_alike_is_no_nested_folder(there: Account) -> None:
    start({**LEAST, "mounts": [DATA, {"from": "efs:home", "at": "/data-2"}]})
    assert len(job(there).mounted) == 2


def test_of_all_regions_one_without_the_file_system_is_left_out_with_the_reason(there: Account) -> None:
    told = start({**LEAST, "regions": "auto", "mounts": [DATA]})
    assert {rung.region for rung in job(there).ladder} == {HOME}
    reason = f"{AWAY}: mounts.0.from: fsx:corpus names no file system in {AWAY}; allowed: none there (file_systems in cdk.json)"
    assert reason in told["left_out"]


def test_a_region_that_the_request_names_has_to_have_the_file_system(there: Account) -> None:
    for where in ({"region": AWAY}, {"regions": [HOME, AWAY]}):
        assert f"mounts.0.from: fsx:corpus names no file system in {AWAY}" in refused(
            {**LEAST, **where, "mounts": [DATA]}
        )
    assert there.changes == []


@pytest.mark.usefixtures("there")
def test_where_no_region_has_a_file_system_every_one_is_named() -> None:
    said = refused({**LEAST, "regions": "auto", "mounts": [{**DATA, "from": "efs:nothing"}]})
    assert f"names no file system in {HOME}; allowed: efs:home, fsx:corpus, s3files:images" in said
    assert f"names no file system in {AWAY}; allowed: none there" in said


@pytest.mark.usefixtures("there")
def test_a_reservation_is_asked_for_the_file_system_as_well() -> None:
    said = refused({**LEAST, "reservation": OURS, "mounts": [{**DATA, "from": "efs:nothing"}]})
    assert "mounts.0.from: efs:nothing names no file system" in said


@pytest.mark.parametrize("kept", [*KEPT, *SHARED])
def test_nothing_is_mounted_over_a_folder_of_the_machine(kept: str) -> None:
    for at in (kept, *([] if kept in SHARED else [f"{kept}/data"])):
        with pytest.raises(ValueError, match="would hide"):
            MountField.model_validate({"from": "fsx:corpus", "at": at})


@pytest.mark.parametrize("at", ["/data", "/mnt", "/mnt/a/b", "/opt/corpus", "/home/me", "/srv", "/a.b/_c-1", "/optics"])
def test_a_folder_of_its_own_is_taken(at: str) -> None:
    assert MountField.model_validate({"from": "fsx:corpus", "at": at}).at == at


@pytest.mark.usefixtures("there")
def test_what_mounts_take_of_a_jobs_keys_leaves_less_room_for_secrets() -> None:
    secrets = {
        f"T{n}": f"arn:aws:secretsmanager:{HOME}:123456789012:secret:trainyard/yard/token-{n}" for n in range(18)
    }
    mounts = [{"from": "efs:home", "at": f"/{n}", "read_only": n % 2 == 0} for n in range(4)]
    without = refused({**LEAST, "secrets": secrets})
    assert "characters too long" not in without
    assert "characters too long" in refused({**LEAST, "secrets": secrets, "mounts": mounts})
