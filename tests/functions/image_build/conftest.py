"""The account of the Build machine's function."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functions.image_build.account import Account, account


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with account(monkeypatch) as made:
        yield made
