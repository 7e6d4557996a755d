"""An account for the tests of Plan."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functions.grid_plan.account import Account, account


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """What Plan finds: buckets, images, prices and regions, on fakes that real boto3 clients call."""
    with account(monkeypatch) as made:
        yield made
