"""What each kind of file system asks of the network and of IAM, and what a session of the job may do with those of its job."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from contract import mounts, sessions
from contract.codec import decode, encode
from contract.mounts import JobMount, Kind
from tests.builders import FILE_SYSTEMS, JOB, MOUNTED

ACCOUNT = "123456789012"
HOME = f"arn:aws:elasticfilesystem:eu-central-1:{ACCOUNT}:file-system/fs-0123456789abcdef1"
IMAGES = f"arn:aws:s3files:eu-central-1:{ACCOUNT}:file-system/fs-0123456789abcdef2"


def statements(*mounted: JobMount) -> list[dict[str, Any]]:
    """What a session's own policy says beside what it leaves to the role."""
    found: list[dict[str, Any]] = json.loads(sessions.policy([], [], mounted, account=ACCOUNT))["Statement"]
    return found[1:]


def test_lustre_has_its_two_ranges_of_ports_and_the_others_have_that_of_nfs() -> None:
    assert Kind.FSX.ports == ((988, 988), (1018, 1023))
    assert Kind.EFS.ports == Kind.S3FILES.ports == ((2049, 2049),)
    assert [kind for kind in Kind if kind.calls_back] == [Kind.FSX]


def test_a_job_that_mounts_nothing_has_no_right_on_any_file_system() -> None:
    (rest,) = json.loads(sessions.policy([]))["Statement"]
    assert {"elasticfilesystem:*", "s3files:*"} <= set(rest["NotAction"])


def test_a_job_may_mount_its_own_file_systems_by_their_arns_and_write_none_that_it_only_reads() -> None:
    corpus, home, images = MOUNTED
    assert statements(home, replace(images, read_only=False)) == [
        {
            "Effect": "Allow",
            "Action": ["elasticfilesystem:ClientMount"],
            "Resource": [HOME],
            "Condition": {"StringLike": {"elasticfilesystem:AccessPointArn": ["*/fsap-0123456789abcdef0"]}},
        },
        {
            "Effect": "Allow",
            "Action": ["s3files:ClientMount", "s3files:ClientWrite"],
            "Resource": [IMAGES],
        },
    ]
    assert statements(corpus) == [], "Lustre asks nobody"


def test_a_file_system_with_an_access_point_and_one_without_have_statements_of_their_own() -> None:
    _, home, _ = MOUNTED
    whole = replace(home, file_system=replace(home.file_system, access_point=""))
    bare, through = statements(whole, home)
    assert "Condition" not in bare
    assert "Condition" in through


def test_nobody_is_root_on_a_file_system() -> None:
    assert "ClientRootAccess" not in str(statements(*(replace(one, read_only=False) for one in MOUNTED)))


def test_an_arn_is_of_the_file_systems_own_region_and_partition() -> None:
    arn = mounts.arn(Kind.EFS, "fs-1", partition="aws-cn", region="cn-north-1", account=ACCOUNT)
    assert arn == f"arn:aws-cn:elasticfilesystem:cn-north-1:{ACCOUNT}:file-system/fs-1"


def test_a_job_of_a_version_before_mounts_nothing_and_one_of_now_survives_its_document() -> None:
    before = json.loads(encode(JOB))
    del before["mounted"]
    assert decode(type(JOB), json.dumps(before)).mounted == ()
    now = replace(JOB, mounted=MOUNTED)
    assert decode(type(JOB), encode(now)) == now


@pytest.mark.parametrize("name", ["", "a", "Corpus", "a--b", "corpus-", "-corpus", "a" * 21, "cor pus", "corpus\n"])
def test_a_name_is_short_and_has_no_odd_letters(name: str) -> None:
    assert not mounts.NAME_PATTERN.fullmatch(name) or len(name) > 20


def test_people_read_the_kind_and_the_name() -> None:
    assert [one.address for one in FILE_SYSTEMS] == ["fsx:corpus", "efs:home", "s3files:images"]
