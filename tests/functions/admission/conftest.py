"""What the tests of Admit share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localaws.git_host import GitHosts
from tests.fakes.git import hosts
from tests.functions.admission.account import Account, account


@pytest.fixture(scope="session")
def git_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHosts]:
    """Hosts that Admit's child reaches as it would reach any."""
    with hosts(tmp_path_factory.mktemp("git")) as made, pytest.MonkeyPatch.context() as patch:
        for name, value in made.variables.items():
            patch.setenv(name, value)
        yield made


@pytest.fixture
def there() -> Iterator[Account]:
    """The account behind the clients of the functions."""
    with account() as made:
        yield made
