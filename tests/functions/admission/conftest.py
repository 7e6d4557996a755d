"""What the tests of Admit share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functions.admission.account import Account, account


@pytest.fixture
def there() -> Iterator[Account]:
    """The account behind the clients of the functions."""
    with account() as opened:
        yield opened
