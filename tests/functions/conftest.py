"""What functions meet that is not AWS: CloudFormation's address for answers, and hosts of git."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from git_code import fetching
from localaws.git_host import GitHosts
from tests.fakes.cloudformation import CloudFormation, listening
from tests.fakes.git import ask_here, hosts


@pytest.fixture
def cloudformation() -> Iterator[CloudFormation]:
    with listening() as server:
        yield server


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHosts]:
    with hosts(tmp_path_factory.mktemp("git")) as opened:
        yield opened


@pytest.fixture
def git_hosts(served: GitHosts, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHosts]:
    """Hosts that a child reaches as it would reach any; nothing else goes through their proxy. Afterwards they answer as git does again."""
    for name, value in served.variables.items():
        monkeypatch.setenv(name, value)
    served.asked.clear()
    yield served
    served.instead = lambda _: None


@pytest.fixture
def git_hosts_here(git_hosts: GitHosts, monkeypatch: pytest.MonkeyPatch) -> GitHosts:
    """Hosts that are asked by what the child runs, without a process for each question: it takes longer to start than to ask."""
    monkeypatch.setattr(fetching, "ask_child", ask_here)
    return git_hosts
