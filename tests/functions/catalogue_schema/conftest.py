"""A PostgreSQL server for the tests of the catalogue's schema."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.catalogue import DataApiOver, serving


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataApiOver]:
    with serving(tmp_path_factory.mktemp("postgres") / "data") as calls:
        yield calls


@pytest.fixture
def calls(server: DataApiOver) -> DataApiOver:
    """With an empty database."""
    server.empty()
    return server
