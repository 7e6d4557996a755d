"""The account that the tests of the command line share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.command_line.account import Account, account


@pytest.fixture
def there() -> Iterator[Account]:
    with account() as found:
        yield found
