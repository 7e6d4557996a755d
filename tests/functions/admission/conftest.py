"""What the tests of Admit share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localaws.git_host import GitHosts
from tests.fakes.git import hosts
from tests.functions.admission.account import Account, account


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHosts]:
    with hosts(tmp_path_factory.mktemp("git")) as opened:
        yield opened


@pytest.fixture
def git_hosts(served: GitHosts, monkeypatch: pytest.MonkeyPatch) -> GitHosts:
    """Hosts that Admit's child reaches as it would reach any; nothing else goes through their proxy."""
    for name, value in served.variables.items():
        monkeypatch.setenv(name, value)
    return served


@pytest.fixture
def there() -> Iterator[Account]:
    """The account behind the clients of the functions."""
    with account() as opened:
        yield opened
