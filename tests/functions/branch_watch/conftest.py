"""An account for the tests of the watch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localaws.git_host import GitHosts
from tests.functions.branch_watch.account import Watched, watch, watched


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, git_hosts_here: GitHosts) -> Iterator[Watched]:
    """An account that watches the branch `main` of a repository without a commit."""
    with watched(monkeypatch, tmp_path, git_hosts_here) as made:
        made.deploy(digits=watch())
        made.repository()
        yield made
