"""Applies files of SQL to the catalogue's database, each in one transaction, and sets the reader's password."""

from __future__ import annotations

from collections.abc import Sequence

from aws.data_api import DataApi, Transaction
from catalogue_schema.policy import SqlFile, find_unapplied
from contract.catalogue import DATABASE, READER, SCHEMA, TEAM

APPLIED = f"{SCHEMA}.applied"
FIRST = (
    f"create schema if not exists {SCHEMA}",
    f"comment on schema {SCHEMA} is 'Tables of the deployment'",
    f"create table if not exists {APPLIED} (number integer primary key, name text not null, sha256 text not null, "
    "at timestamptz not null default now())",
    f"comment on table {APPLIED} is 'Files of SQL that made this schema'",
)
SETTINGS = (
    f"alter role {READER} reset all",
    f"alter role {READER} in database {DATABASE} reset all",
    f"alter role {READER} set default_transaction_read_only = on",
    f"alter role {READER} set statement_timeout = '30s'",
    f"alter role {READER} set idle_in_transaction_session_timeout = '60s'",
    f"alter role {READER} set search_path = {SCHEMA}, {TEAM}",
)
"""What the files of SQL say of the reader's sessions, and nothing beside it."""
LOCK = f"lock table {APPLIED} in share row exclusive mode"
"""Keeps two deploys apart. Not an advisory lock, which the reader could hold as well: with SELECT alone it cannot take this one."""


def migrate(database: DataApi, files: Sequence[SqlFile]) -> list[SqlFile]:
    """Applies what is missing and returns it. One that fails leaves the files before it applied, and nothing of itself."""
    with database.transaction() as transaction:
        if transaction.run(f"select to_regclass('{APPLIED}') is null").rows[0][0]:
            for statement in FIRST:
                transaction.run(statement)
    find_unapplied(files, _read_applied(database))  # before anything changes
    return [one for one in files if _apply(database, files, one)]


def set_password(database: DataApi, verifier: str) -> None:
    """Gives the reader the password of a SCRAM verifier, which has no quote in it, and its settings: a role may change both of itself. DDL
    takes no parameters."""
    assert "'" not in verifier
    with database.transaction() as transaction:
        for statement in SETTINGS:
            transaction.run(statement)
        transaction.run(f"alter role {READER} password '{verifier}'")


def _apply(database: DataApi, files: Sequence[SqlFile], file: SqlFile) -> bool:
    """Returns whether it was missing: another deploy may have applied it meanwhile."""
    with database.transaction() as transaction:
        transaction.run(LOCK)
        if file not in find_unapplied(files, _read_applied(transaction)):
            return False
        for statement in file.statements:
            transaction.run(statement)
        transaction.run(
            f"insert into {APPLIED} (number, name, sha256) values (:number, :name, :sha256)",
            {"number": file.number, "name": file.name, "sha256": file.sha256},
        )
    return True


def _read_applied(database: DataApi | Transaction) -> dict[int, str]:
    return dict(database.run(f"select number, sha256 from {APPLIED}").rows)
