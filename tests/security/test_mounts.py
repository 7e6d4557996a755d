"""Who may mount which file system, as an IAM simulator sees it: sessions of a job what it names, and nobody anything else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract import sessions
from contract.mounts import FileSystem, JobMount, Kind, arn
from localaws.iam.simulator import Policies, Request, simulate
from tests.security.asking import TAGGED_SESSION
from tests.security.policies import ACCOUNT, REGION, of_roles, role
from tools.file_systems import EVERY, HOME, IMAGES
from tools.synthesis import synthesise

EFS = arn(Kind.EFS, HOME["id"], partition="aws", region=REGION, account=ACCOUNT)
S3FILES = arn(Kind.S3FILES, IMAGES["id"], partition="aws", region=REGION, account=ACCOUNT)
POINT = f"arn:aws:elasticfilesystem:{REGION}:{ACCOUNT}:access-point/{HOME['access_point']}"
THROUGH = {"elasticfilesystem:AccessPointArn": POINT}


@pytest.fixture(scope="module")
def with_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Policies]:
    return of_roles(synthesise(tmp_path_factory.mktemp("files"), file_systems=EVERY))


def mounted(setting: Mapping[str, Any], *, read_only: bool) -> JobMount:
    system = FileSystem(
        name=setting["name"],
        kind=Kind(setting["kind"]),
        id=setting["id"],
        clients="sg-1",
        access_point=setting.get("access_point", ""),
    )
    return JobMount(file_system=system, region=REGION, at="/data", read_only=read_only)


def ask(action: str, resource: str, *mounts: JobMount, who: str = "Job", through: bool = True) -> Request:
    """Of a session whose job has these mounts."""
    context = {"aws:RequestedRegion": REGION, **TAGGED_SESSION, **(THROUGH if through and resource == EFS else {})}
    own = json.loads(sessions.policy([], [], mounts, account=ACCOUNT)) if who == "Job" else None
    if who != "Job":
        del context[next(iter(TAGGED_SESSION))]
    return Request(principal=role(who), action=action, resource=resource, context=context, session_policy=own)


def allowed(policies: dict[str, Policies], request: Request) -> bool:
    (answer,) = simulate(policies, [request])
    assert not answer.error, answer.error
    return answer.allowed


READS, WRITES = mounted(HOME, read_only=True), mounted(HOME, read_only=False)
MOUNT, WRITE, ROOT = (f"elasticfilesystem:Client{what}" for what in ("Mount", "Write", "RootAccess"))


def test_a_job_mounts_what_it_names_and_writes_it_only_where_it_says_so(with_files: dict[str, Policies]) -> None:
    assert allowed(with_files, ask(MOUNT, EFS, READS))
    assert not allowed(with_files, ask(WRITE, EFS, READS))
    assert allowed(with_files, ask(WRITE, EFS, WRITES))


def test_a_job_that_names_another_file_system_or_none_may_not_mount_this_one(with_files: dict[str, Policies]) -> None:
    assert not allowed(with_files, ask(MOUNT, EFS))
    assert not allowed(with_files, ask(MOUNT, EFS, mounted(IMAGES, read_only=False)))


def test_a_file_system_with_an_access_point_is_mounted_through_it_alone(with_files: dict[str, Policies]) -> None:
    assert not allowed(with_files, ask(MOUNT, EFS, READS, through=False))


def test_a_job_mounts_no_other_access_point_of_its_file_system(tmp_path: Path) -> None:
    other = HOME | {"name": "theirs", "access_point": "fsap-0123456789abcdef9"}
    both = of_roles(synthesise(tmp_path, file_systems=[HOME, other]))
    theirs = mounted(other, read_only=False)
    assert allowed(both, ask(MOUNT, EFS, READS))
    assert allowed(both, ask(MOUNT, EFS, READS, theirs))
    assert not allowed(both, ask(MOUNT, EFS, theirs))
    assert not allowed(both, ask(WRITE, EFS, READS, theirs)), "through ours the job reads alone"


def test_a_file_system_that_the_settings_lack_is_mounted_by_nobody(with_files: dict[str, Policies]) -> None:
    other = replace(READS, file_system=replace(READS.file_system, id="fs-0123456789abcdef9"))
    assert not allowed(with_files, ask(MOUNT, EFS.replace(HOME["id"], other.file_system.id), other))


def test_nobody_is_root(with_files: dict[str, Policies]) -> None:
    assert not allowed(with_files, ask(ROOT, EFS, WRITES))


@pytest.mark.parametrize("who", ["Node", "Attendant", "Launcher", "Admission", "Training", "Child"])
def test_no_other_role_mounts_anything(with_files: dict[str, Policies], who: str) -> None:
    assert not allowed(with_files, ask(MOUNT, EFS, who=who))


def test_the_rights_of_s3_files_are_its_own(with_files: dict[str, Policies]) -> None:
    reads, writes = mounted(IMAGES, read_only=True), mounted(IMAGES, read_only=False)
    assert allowed(with_files, ask("s3files:ClientMount", S3FILES, reads))
    assert not allowed(with_files, ask("s3files:ClientWrite", S3FILES, reads))
    assert allowed(with_files, ask("s3files:ClientWrite", S3FILES, writes))
    assert not allowed(with_files, ask("s3files:ClientRootAccess", S3FILES, writes))
    assert not allowed(with_files, ask("s3files:ClientMount", S3FILES, WRITES))
