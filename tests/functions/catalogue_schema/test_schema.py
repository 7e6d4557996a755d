"""The files of SQL, applied to a real PostgreSQL through the Data API, and what the reader may do afterwards."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

import aws.data_api
import aws.rds
import aws.secrets
from aws.data_api import DataApi, StatementRefused
from catalogue_schema import handler
from catalogue_schema.migration import migrate, set_password
from catalogue_schema.policy import SchemaRefused, SqlFile, read_files, verify_with
from contract.catalogue import DATABASE, KEEPER, PROTECTION, READER, SCHEMA, TEAM
from contract.catalogue_environments import CatalogueSchemaEnvironment
from tests.fakes.catalogue import CLUSTER, DataApiOver
from tests.fakes.cloudformation import CloudFormation

FILES = read_files({one.name: one.read_text() for one in Path(handler.FILES).glob("*.sql")})
PASSWORD = "of-the-reader"
TABLES = {"applied", "campaigns", "capacity", "data_sets", "prices", "runs"}
BOUNDS = {
    "default_transaction_read_only": "on",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "1min",
    "search_path": "trainyard, team",
}
BAD = SqlFile(
    number=3, name="0003_bad.sql", statements=("create table trainyard.half (a int)", "select 1/0"), sha256="c"
)


def database(calls: DataApiOver, role: str = KEEPER) -> DataApi:
    return DataApi(calls.access(role), calls)


@pytest.fixture
def migrated(calls: DataApiOver) -> DataApiOver:
    """With all files applied, and a reader who can log in."""
    migrate(database(calls), FILES)
    set_password(database(calls), verify_with(PASSWORD, b"salt" * 4))
    calls.passwords[READER] = PASSWORD
    return calls


def tables(calls: DataApiOver) -> set[str]:
    found = database(calls).run(
        f"select table_name::text from information_schema.tables where table_schema = '{SCHEMA}'"
    )
    return {name for (name,) in found.rows}


def refused(calls: DataApiOver, sql: str, role: str = READER) -> str:
    with pytest.raises(StatementRefused) as problem:
        database(calls, role).run(sql)
    return problem.value.state


# Files


def test_an_empty_database_gets_every_table_and_remembers_every_file(migrated: DataApiOver) -> None:
    assert tables(migrated) == TABLES
    found = database(migrated).run("select number, name, sha256 from trainyard.applied order by number")
    assert found.rows == tuple((one.number, one.name, one.sha256) for one in FILES)


def test_a_second_deploy_changes_nothing(migrated: DataApiOver) -> None:
    assert migrate(database(migrated), FILES) == []


def test_a_file_that_fails_leaves_nothing_of_itself_and_what_was_before_it(migrated: DataApiOver) -> None:
    with pytest.raises(StatementRefused, match="division by zero"):
        migrate(database(migrated), [*FILES, BAD])
    assert tables(migrated) == TABLES
    mended = replace(BAD, statements=BAD.statements[:1])
    assert migrate(database(migrated), [*FILES, mended]) == [mended]


def test_a_file_that_changed_is_refused_before_anything_is_applied(migrated: DataApiOver) -> None:
    changed = [replace(FILES[0], sha256="another"), *FILES[1:], replace(BAD, statements=BAD.statements[:1])]
    with pytest.raises(SchemaRefused, match=f"{FILES[0].name} changed"):
        migrate(database(migrated), changed)
    assert tables(migrated) == TABLES


def test_two_deploys_at_once_apply_each_file_once(calls: DataApiOver) -> None:
    migrate(database(calls), FILES[:1])
    found: list[list[SqlFile]] = []
    threads = [threading.Thread(target=lambda: found.append(migrate(database(calls), FILES))) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(map(len, found)) == [0, len(FILES) - 1]


def test_a_reader_cannot_keep_a_deploy_from_its_lock(migrated: DataApiOver) -> None:
    with migrated.connect(READER) as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("lock table trainyard.applied in share mode")
        connection.rollback()
        connection.execute("select pg_advisory_lock(n) from generate_series(1, 100) n")
        assert migrate(database(migrated), [*FILES, replace(BAD, statements=BAD.statements[:1])]) != []


def test_names_of_the_files_are_those_of_the_contract() -> None:
    text = "\n".join(statement for one in FILES for statement in one.statements)
    assert (DATABASE, SCHEMA, TEAM, READER) == ("trainyard", "trainyard", "team", "reader")
    for words in (
        f"create role {READER} ",
        f"create schema {TEAM}",
        f"on database {DATABASE} ",
        f"set search_path = {SCHEMA}, {TEAM}",
    ):
        assert words in text


def test_every_table_and_every_role_has_a_comment(migrated: DataApiOver) -> None:
    bare = database(migrated).run(
        "select relname::text from pg_class where relkind = 'r' and relnamespace = 'trainyard'::regnamespace "
        "and obj_description(oid, 'pg_class') is null"
    )
    assert bare.rows == ()


# The reader


def test_a_reader_reads_tables_and_whatever_the_keeper_adds_for_the_team(migrated: DataApiOver) -> None:
    database(migrated).run(
        "create view team.cheap as select region, min(usd) as usd from trainyard.prices group by region"
    )
    database(migrated).run("insert into trainyard.prices values ('r', 't', 'spot', 1.5, now())")
    assert database(migrated, READER).run("select region, usd from cheap").rows == (("r", 1.5),)
    assert database(migrated, READER).run("select count(*) from runs").rows == ((0,),)


@pytest.mark.parametrize(
    "sql",
    [
        "insert into prices values ('r', 't', 'spot', 1, now())",
        "update runs set name = 'x'",
        "delete from campaigns",
        "truncate runs",
        "drop table runs",
        "create table team.mine (a int)",
        "create table public.mine (a int)",
        "create table trainyard.mine (a int)",
        "create temporary table mine (a int)",
        "create schema mine",
        "create function team.f() returns int language sql as 'select 1'",
        "create role other",
        "alter role reader createrole",
        "set role keeper",
        "select set_config('role', 'keeper', false)",
        "set session authorization keeper",
        "copy runs to program 'id'",
        "copy runs to '/tmp/x'",
        "select pg_read_file('/etc/passwd')",
        "select lo_import('/etc/passwd')",
        "select lo_create(4711)",
        "select lo_from_bytea(0, 'x')",
        "select rolpassword from pg_authid",
        "select * from trainyard.applied",
        "grant select on runs to public",
        "alter default privileges in schema team grant all on tables to reader",
        "create extension dblink",
        "alter system set log_statement = 'all'",
        "select pg_reload_conf()",
        "do 'begin perform 1; end' language plpython3u",
    ],
)
def test_a_reader_may_do_nothing_but_read(migrated: DataApiOver, sql: str) -> None:
    assert refused(migrated, sql) in {"42501", "25006", "42704", "0LP01", "0A000", "25001"}
    assert tables(migrated) == TABLES


@pytest.mark.parametrize("sql", ["set transaction read write", "set default_transaction_read_only = off"])
def test_a_reader_who_asks_for_writes_still_has_no_right_to_any(migrated: DataApiOver, sql: str) -> None:
    with migrated.connect(READER) as connection:
        connection.execute(sql.encode())
        connection.commit()
        for write in (
            "insert into campaigns values ('x')",
            "create temporary table x (a int)",
            "create table team.x (a int)",
        ):
            with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)):
                connection.execute(write.encode())
            connection.rollback()


def test_a_function_of_the_keeper_is_not_the_readers_to_run(migrated: DataApiOver) -> None:
    database(migrated).run(
        "create function team.wipe() returns void security definer language sql as 'delete from trainyard.campaigns'"
    )
    assert refused(migrated, "select team.wipe()") == "42501"


def show_settings(calls: DataApiOver) -> dict[str, str]:
    """What PostgreSQL says of a new session of the reader."""
    with calls.connect(READER) as connection:
        found = {name: connection.execute(f"show {name}".encode()).fetchone() for name in (*BOUNDS, "work_mem")}
    return {name: one[0] for name, one in found.items() if one}


def test_sessions_of_a_reader_are_read_only_and_short(migrated: DataApiOver) -> None:
    assert BOUNDS.items() <= show_settings(migrated).items()


def test_what_a_reader_changed_of_itself_is_set_anew_with_its_password(migrated: DataApiOver) -> None:
    before = show_settings(migrated)
    with migrated.connect(READER) as connection:
        connection.execute("set transaction read write")
        for change in (
            "set default_transaction_read_only = off",
            "set work_mem = '1GB'",
            "in database trainyard set statement_timeout = 0",
            "in database trainyard set search_path = public",
            "password 'another'",
        ):
            connection.execute(f"alter role reader {change}".encode())
        connection.commit()
    set_password(database(migrated), verify_with(PASSWORD, b"salt" * 4))
    assert show_settings(migrated) == before


def test_a_reader_has_no_attribute_and_is_in_no_role(migrated: DataApiOver) -> None:
    found = database(migrated).run(
        "select rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls or rolinherit, "
        "(select count(*) from pg_auth_members where member = r.oid) from pg_roles r where rolname = 'reader'"
    )
    assert found.rows == ((False, 0),)


# Rows


@pytest.mark.parametrize(
    "sql",
    [
        "insert into trainyard.runs (name, kind, outcome, ended_at) values ('a', 'search', 'Completed', now())",
        "insert into trainyard.runs (name, kind, outcome, ended_at) values ('a', 'job', 'Lost', now())",
        "insert into trainyard.runs (name, kind, outcome, ended_at, cost_usd) values ('a', 'job', 'Failed', now(), -1)",
        "insert into trainyard.prices values ('r', 't', 'block', 1, now())",
        "insert into trainyard.prices values ('r', 't', 'spot', 0, now())",
        "insert into trainyard.data_sets values ('none', 'a', 'r', 's3://b/', 1)",
        "insert into trainyard.capacity values ('cr-1', 'r', 't', 'reservation', -1, null, null)",
    ],
)
def test_a_row_that_says_nothing_sensible_is_refused(migrated: DataApiOver, sql: str) -> None:
    assert refused(migrated, sql, KEEPER) in {"23514", "23503"}


# The function


@pytest.fixture
def yard(calls: DataApiOver, monkeypatch: pytest.MonkeyPatch) -> Yard:
    return Yard(calls, monkeypatch)


class Yard:
    """The function with its three services."""

    def __init__(self, calls: DataApiOver, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls, self.changes, self.secret = calls, list[dict[str, Any]](), f'{{"password": "{PASSWORD}"}}'
        for module, client in ((aws.data_api, calls), (aws.secrets, self), (aws.rds, self)):
            monkeypatch.setattr(module, "client", lambda *_, client=client: client)
        env = CatalogueSchemaEnvironment(deployment="yard", cluster=CLUSTER, keeper_secret=KEEPER, reader_secret=READER)
        for name, value in env.write().items():
            monkeypatch.setenv(name, value)

    def get_secret_value(self, **named: str) -> dict[str, str]:
        assert named == {"SecretId": READER}
        return {"SecretString": self.secret}

    def modify_db_cluster(self, **changes: Any) -> None:
        self.changes.append(changes)


def test_a_deploy_makes_the_schema_and_the_reader_logs_in_with_its_secret(
    yard: Yard, cloudformation: CloudFormation
) -> None:
    handler.handler(cloudformation.request("Create", {}, stack="yard-catalogue"), None)
    (answer,) = cloudformation.answers
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "yard-catalogue-schema")
    yard.calls.passwords[READER] = PASSWORD
    assert database(yard.calls, READER).run("select count(*) from campaigns").rows == ((0,),)


def test_no_statement_and_no_log_has_the_password(yard: Yard, capsys: pytest.CaptureFixture[str]) -> None:
    handler.handler({}, None)
    assert "alter role reader password 'SCRAM-SHA-256$" in "\n".join(yard.calls.statements)
    assert PASSWORD not in "\n".join(yard.calls.statements) + capsys.readouterr().out


def test_a_person_who_changed_the_secret_calls_it_and_the_old_password_is_over(yard: Yard) -> None:
    handler.handler({}, None)
    yard.secret = '{"password": "another"}'
    handler.handler({}, None)
    yard.calls.passwords[READER] = "another"
    assert database(yard.calls, READER).run("select 1").rows == ((1,),)
    yard.calls.passwords[READER] = PASSWORD
    with pytest.raises(psycopg.OperationalError):
        yard.calls.connect(READER)


@pytest.mark.parametrize("secret", ["", "{}", "[]", "not json", '{"password": 7}', '{"password": "with space"}'])
def test_a_secret_without_a_password_fails_the_deploy_in_words_and_shows_nothing_of_it(
    yard: Yard, cloudformation: CloudFormation, secret: str
) -> None:
    yard.secret = secret
    handler.handler(cloudformation.request("Update", {}, stack="yard-catalogue"), None)
    (answer,) = cloudformation.answers
    assert answer["Status"] == "FAILED"
    assert "allowed: " in answer["Reason"]
    assert not secret or secret not in answer["Reason"]


def test_a_destroy_lifts_the_protection_of_this_cluster_and_leaves_the_tables(
    yard: Yard, cloudformation: CloudFormation
) -> None:
    handler.handler({}, None)
    yard.calls.statements.clear()
    handler.handler(cloudformation.request("Delete", {}, stack="yard-catalogue"), None)
    assert yard.changes == []
    handler.handler(cloudformation.request("Delete", {}, stack="yard-catalogue", resource=PROTECTION), None)
    assert cloudformation.answers[-1]["Status"] == "SUCCESS"
    assert yard.changes == [
        {"DBClusterIdentifier": "yard-catalogue", "DeletionProtection": False, "ApplyImmediately": True}
    ]
    assert yard.calls.statements == []


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_a_deploy_of_the_protection_changes_nothing_and_needs_no_writer(
    yard: Yard, cloudformation: CloudFormation, kind: str
) -> None:
    yard.calls.away = True
    handler.handler(cloudformation.request(kind, {}, stack="yard-catalogue", resource=PROTECTION), None)
    (answer,) = cloudformation.answers
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "yard-catalogue-protection")
    assert (yard.changes, yard.calls.statements) == ([], [])
    yard.calls.away = False
