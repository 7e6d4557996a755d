"""A request that names everything at once: an image, code from git, file systems, a role, secrets and another job's checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from contract import sessions
from contract.errors import InvalidRequest
from localaws.git_host import GitHosts
from tests.builders import PLACE
from tests.fakes.git import HOST
from tests.fakes.yard import ABROAD
from tests.functions.admission.account import ADMITTING, Account, account, start
from tools.refusals.jobs import resume
from tools.refusals.jobs.git import HEADS
from tools.refusals.jobs.table import SECRET

HOME, AWAY = PLACE.region, ABROAD.region
GOOD = {"git": f"https://{HOST}/owner/good", "ref": HEADS["good"]}
ALL: dict[str, Any] = {
    "image": "images:v1",
    "code": GOOD,
    "command": ["python"],
    "arguments": ["train.py", "--epochs", "3"],
    "instance_types": ["g5.xlarge"],
    "regions": "auto",
    "nodes": 2,
    "mounts": [{"from": "fsx:corpus", "at": "/data"}, {"from": "efs:home", "at": "/shared", "read_only": False}],
    "secrets": {"TOKEN": f"{SECRET}token"},
    "environment": {"PYTHONUNBUFFERED": "", "SHARED": "/shared"},
    "job_role": next(iter(ADMITTING.job_roles)),
    "resume_from": resume.TRAINED,
}


@pytest.fixture
def there(git_hosts: GitHosts) -> Iterator[Account]:
    git_hosts.asked.clear()
    with account(replace(ADMITTING, regions=(HOME, AWAY))) as opened:
        yield opened


def test_a_job_has_all_of_it_where_one_region_has_all_of_it(there: Account) -> None:
    told = start(ALL)
    job = there.job("job-1")
    assert job is not None
    assert job.code is not None
    assert job.container is not None
    assert job.resume is not None
    assert (job.code.source, job.code.source_version) == (GOOD["git"], GOOD["ref"])
    assert (job.command, job.container.arguments) == (("python",), ("train.py", "--epochs", "3"))
    assert {rung.region for rung in job.ladder} == set(job.places) == set(job.container.repositories) == {HOME}
    assert [one.at for one in job.mounted] == ["/data", "/shared"]
    assert any(one.startswith(f"{AWAY}: mounts.0.from") for one in told["left_out"])
    own = sessions.policy(
        job.secrets.values(), job.container.arns("aws"), job.mounted, partition="aws", account="123456789012"
    )
    assert len(own) < sessions.MOST_POLICY


def test_a_dry_run_of_all_of_it_writes_nothing(there: Account) -> None:
    assert start({**ALL, "dry_run": True})["dry_run"]
    assert there.changes == []


def test_each_wrong_part_is_told_beside_the_others(there: Account) -> None:
    wrong = {
        "image": "images:gone",
        "code": {**GOOD, "ref": "1" * 40},
        "mounts": [{"from": "efs:nothing", "at": "/data"}],
        "secrets": {"TOKEN": f"{SECRET}missing"},
        "job_role": "nobody",
        "resume_from": "no-job",
    }
    with pytest.raises(InvalidRequest) as problem:
        start({**ALL, **wrong})
    told = str(problem.value)
    for field in ("image", "code", "mounts.0.from", "secrets.TOKEN", "job_role", "resume_from"):
        assert f"\n- {field}: " in told
    assert there.changes == []
