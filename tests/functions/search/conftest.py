"""An account for the tests of searches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functions.search.account import Searches, searched


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Searches]:
    """What a search finds: buckets, images, prices and executions, on fakes that real boto3 clients call."""
    with searched(monkeypatch) as made:
        yield made
