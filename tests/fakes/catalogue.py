"""The Data API over a PostgreSQL server of its own, without HTTP, for tests of what functions say to the catalogue's database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from botocore.exceptions import ClientError

from contract.catalogue import DATABASE, KEEPER, READER, CatalogueAccess
from localaws.model import Refused
from localaws.postgres import Postgres
from localaws.services import rds_data_model as model

CLUSTER = "arn:aws:rds:eu-central-1:123456789012:cluster:yard-catalogue"
KEEPER_PASSWORD = "of-the-keeper"


class DataApiOver:
    """Calls as a client of boto3 has them. A secret is called as its role; `passwords` are those that the secrets have."""

    def __init__(self, server: Postgres, database: str = DATABASE) -> None:
        self.passwords = {KEEPER: KEEPER_PASSWORD}
        self.statements: list[str] = []
        self.away = False
        self._server, self._database = server, database
        self._api = model.DataApi(self, time)

    @staticmethod
    def access(role: str) -> CatalogueAccess:
        return CatalogueAccess(cluster=CLUSTER, secret=role)

    def connect(self, role: str) -> psycopg.Connection[Any]:
        """Logs in as PostgreSQL's own clients do."""
        return psycopg.connect(self.dsn(CLUSTER, self._database, role, self.passwords[role]))

    def empty(self) -> None:
        """Begins again: an empty database, no reader, and no statement that was sent."""
        with psycopg.connect(self._server.dsn(), autocommit=True) as connection:
            connection.execute(f"drop database if exists {DATABASE} with (force)")
            connection.execute(f"drop role if exists {READER}")
            connection.execute(f"create database {DATABASE} owner {KEEPER} strategy file_copy")
        self.passwords = {KEEPER: KEEPER_PASSWORD}
        self.statements.clear()

    def find(self, arn: str) -> model.Cluster:
        return model.Cluster(arn)

    def dsn(self, _arn: str, _database: str, user: str, password: str) -> str:
        return self._server.dsn(self._database, user, password)

    def credentials(self, secret: str) -> tuple[str, str]:
        return secret, self.passwords[secret]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = "".join(word.capitalize() for word in name.split("_"))

        def call(**arguments: Any) -> Any:
            self.statements.append(arguments.get("sql", operation))
            if self.away:
                raise ClientError({"Error": {"Code": "DatabaseUnavailableException", "Message": "away"}}, operation)
            try:
                return self._api.answer(operation, arguments)
            except Refused as problem:
                raise ClientError({"Error": {"Code": problem.code, "Message": problem.message}}, operation) from None

        return call


@contextmanager
def serving(folder: Path) -> Iterator[DataApiOver]:
    """Starts a server with an empty database, whose master user is the keeper."""
    with Postgres(folder) as server:
        server.create_master(KEEPER, KEEPER_PASSWORD, DATABASE)
        yield DataApiOver(server)
