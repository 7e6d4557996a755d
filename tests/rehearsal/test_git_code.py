"""Jobs whose code is a commit: Admit fetches it from git's own server over TLS, and every node of every attempt unpacks that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contract import keys
from contract.codec import decode
from contract.jobs import Job
from localaws.conditions import Conditions
from localaws.git_host import GitHosts, git
from localaws.testing.waiting import HANG_S, until
from rehearsal.faults import parse_faults
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import DENIALS, ENDLESS, TWO, failed, stored, succeeded, train

pytestmark = [pytest.mark.rehearsal]
TRAINER = Path(__file__).with_name("trainer")
HOST, PRIVATE, TOKEN = "git.example.com", "private.example.com", "a-token"
LOST = "node-lost:rank=1,step=10,job=moved"
QUICK = {**TWO, "checkpoint_minutes": 0.02}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHosts]:
    with GitHosts(tmp_path_factory.mktemp("git"), [HOST, PRIVATE]) as made:
        yield made


@pytest.fixture(scope="module")
def there(hosts: GitHosts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    settings = {"git_hosts": {HOST: "", PRIVATE: "git-token"}}
    conditions = Conditions(speed=10.0, faults=parse_faults([LOST]))
    made = Yard(tmp_path_factory.mktemp("yard"), conditions, settings=settings, wanted=["workflow"])
    made.aws.outside = hosts.variables  # ahead of the deployment, after which functions run
    with made:
        made.client("secretsmanager").create_secret(Name="git-token", SecretString=TOKEN)
        yield made


def pushed(hosts: GitHosts, address: str, work: Path) -> str:
    """A repository of the trainer at the address; returns the commit. `work` becomes the one of somebody who pushes to it."""
    bare = hosts.repository(address)
    work.mkdir(parents=True)
    git(work, "init", "--quiet", "--initial-branch", "main")
    return push(bare, work, (TRAINER / "train.py").read_text())


def push(bare: Path, work: Path, script: str) -> str:
    """Pushes by force a history of one commit with this trainer, and drops whatever the repository had before."""
    (work / "train.py").write_text(script)
    git(work, "add", "train.py")
    made = git(work, "commit-tree", git(work, "write-tree"), "-m", "the trainer")
    git(work, "push", "--quiet", "--force", str(bare), f"{made}:refs/heads/main")
    git(bare, "reflog", "expire", "--expire=now", "--all")
    git(bare, "gc", "--quiet", "--prune=now")
    return made


def described(job: StartedJob) -> Job:
    return decode(Job, stored(job.yard, keys.JobPrefix(job.name).description))


def test_a_job_of_two_nodes_whose_code_is_a_commit_ends_done(there: Yard, hosts: GitHosts, tmp_path: Path) -> None:
    ref = pushed(hosts, f"{HOST}/team/trainer.git", tmp_path / "work")
    code = {"git": f"https://{HOST}/team/trainer.git", "ref": ref}
    job = there.start({**QUICK, "code": code, "command": train(20, 0.1)}, "from-git")
    succeeded(job)
    assert job.artifacts()
    found = described(job).code
    assert found is not None
    assert (found.source, found.source_version) == (code["git"], ref)
    said = [line for stream in job.log_streams() for line in job.log(stream)]
    assert sorted(line for line in said if "the last line" in line) == [
        f"rank {rank} is done, the last line" for rank in (0, 1)
    ]
    assert sum(one.endswith("info/refs") for one in hosts.asked if one.startswith(f"{HOST}/team/trainer")) == 1


def test_what_is_pushed_by_force_between_two_attempts_changes_nothing(
    there: Yard, hosts: GitHosts, tmp_path: Path
) -> None:
    ref = pushed(hosts, f"{HOST}/team/moved.git", tmp_path / "work")
    code = {"git": f"https://{HOST}/team/moved.git", "ref": ref}
    job = there.start({**QUICK, **ENDLESS, "code": code, "command": train(5, 0.2)}, "moved")
    until(lambda: "Train" in job.states(), HANG_S)
    assert push(hosts.folder / HOST / "team" / "moved.git", tmp_path / "work", "raise SystemExit(9)") != ref
    succeeded(job)
    assert job.attempt() == 2
    later = there.start({**QUICK, "code": code, "command": train(3, 0.1)}, "later")
    assert f"has no commit {ref}" in failed(later, "InvalidRequest")


def test_a_private_repository_is_fetched_with_the_secret_of_its_host_and_nothing_is_denied(
    there: Yard, hosts: GitHosts, tmp_path: Path
) -> None:
    address = f"{PRIVATE}/team/trainer.git"
    ref = pushed(hosts, address, tmp_path / "work")
    hosts.tokens[address] = f"x-access-token:{TOKEN}"
    code = {"git": f"https://{address}", "ref": ref}
    job = there.start({**QUICK, "nodes": 1, "code": code, "command": train(3, 0.1)}, "private")
    succeeded(job)
    reads = [one for one in there.aws.recorder.of(name="secretsmanager:GetSecretValue") if "Admission" in one.role]
    assert reads
    assert [one.name for one in there.aws.recorder.of() if "Admission" in one.role and one.error in DENIALS] == []
    assert TOKEN not in stored(there, keys.JobPrefix(job.name).description).decode()
    assert not [line for lines in there.aws.workers.logs().values() for line in lines if TOKEN in line]
