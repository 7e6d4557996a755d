"""A grid of one line, of which the child is a plain job."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.grid_yard import GridYard, planned


@pytest.fixture
def yard() -> Iterator[GridYard]:
    with planned() as found:
        yield found
