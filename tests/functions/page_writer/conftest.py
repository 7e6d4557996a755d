"""An account for the tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functions.page_writer.account import Pages, opened


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pages]:
    with opened(monkeypatch) as found:
        yield found
