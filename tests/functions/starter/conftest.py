"""An account for the tests of the starter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functions.starter.account import Campaigns, started


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Campaigns]:
    """An account in which data starts a grid, on fakes that real boto3 clients call."""
    with started(monkeypatch, tmp_path) as made:
        yield made
