"""A PostgreSQL server with the catalogue's tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aws.data_api import DataApi
from catalogue_schema.migration import migrate
from catalogue_schema.policy import read_files
from contract.catalogue import KEEPER
from tests.fakes.catalogue import DataApiOver, serving
from tools.synthesis import ROOT

SQL = ROOT / "lambda" / "catalogue_schema" / "sql"


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataApiOver]:
    with serving(Path(tmp_path_factory.mktemp("postgres"), "data")) as calls:
        yield calls


@pytest.fixture
def calls(server: DataApiOver) -> DataApiOver:
    """With empty tables."""
    server.empty()
    migrate(
        DataApi(server.access(KEEPER), server), read_files({one.name: one.read_text() for one in SQL.glob("*.sql")})
    )
    server.statements.clear()
    return server


@pytest.fixture
def database(calls: DataApiOver) -> DataApi:
    return DataApi(calls.access(KEEPER), calls)
