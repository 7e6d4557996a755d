"""Queries in the place of a manifest: Plan's function against a real PostgreSQL with the reader's rights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from aws.data_api import DataApi
from contract.errors import DatabaseAway, InvalidRequest
from contract.grid import GridPrefix
from grid_plan import query as reading
from planner import handler
from tests.fakes.catalogue import DataApiOver
from tests.functions.grid_plan.account import Account, line, plan
from tests.functions.grid_plan.catalogue import ACCESS, serve_catalogue
from tools.refusals.grids.yard import BUCKET, DEFAULTS, HOME

MANIFEST = GridPrefix("sweep-7").manifest
DATA = "select 'eu-central-1' as region, 's3://data-eu/train/' as data"
SEEN = """
select d.region, d.address as data, p.market, jsonb_build_object('lr', 0.1, 'layers', array[1, 2]) as hyperparameters,
    7::numeric as "hp.depth", 0.10::numeric as "hp.rate", now() > 'epoch' as "hp.fresh", 1 as "env.SEED", null as volume_gb
from data_sets d join prices p using (region) where p.market = 'spot' order by p.usd, d.region
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataApiOver]:
    """The catalogue as its own files make it, with two copies of one data set."""
    with serve_catalogue(tmp_path_factory.mktemp("postgres") / "data") as calls:
        yield calls


@pytest.fixture
def calls(there: Account, database: DataApiOver, monkeypatch: pytest.MonkeyPatch) -> DataApiOver:
    """The database, as the function of a deployment with a catalogue meets it."""
    assert there
    database.statements.clear()
    monkeypatch.setenv("TRAINYARD_CATALOGUE", json.dumps({"cluster": ACCESS.cluster, "secret": ACCESS.secret}))
    monkeypatch.setattr(handler, "DataApi", partial(DataApi, calls=database, sleep=lambda _: None))
    return database


def ask(sql: str, **given: Any) -> dict[str, Any]:
    return plan({"query": sql, "defaults": DEFAULTS} | given)


def refusal(sql: str) -> str:
    with pytest.raises(InvalidRequest) as problem:
        ask(sql)
    return str(problem.value)


def written(there: Account) -> list[dict[str, Any]]:
    body = there.s3.read(BUCKET, MANIFEST)
    assert body is not None
    return [json.loads(one) for one in body.decode().splitlines()]


@pytest.mark.usefixtures("calls")
def test_rows_become_lines_with_the_types_that_a_manifest_has(there: Account) -> None:
    assert ask(SEEN)["regions"] == {"us-east-1": 1, "eu-central-1": 1}
    first, second = written(there)
    assert first == {
        "region": "us-east-1",
        "data": "s3://data-us/train/",
        "market": "spot",
        "hyperparameters": {"lr": 0.1, "layers": [1, 2], "depth": 7, "rate": 0.1, "fresh": True},
        "environment": {"SEED": "1"},
    }
    assert second["region"] == HOME


@pytest.mark.usefixtures("calls")
def test_a_number_keeps_the_digits_that_the_database_wrote(there: Account) -> None:
    numbers = '3.10::numeric as "env.VERSION", 3.10::numeric as "tag.version", 3.10::numeric as "hp.rate"'
    ask(f"{DATA}, 'images:v1' as image, 0.12345678901234567891::numeric as \"hp.exact\", {numbers}")
    (line,) = written(there)
    assert (line["environment"], line["tags"]) == ({"VERSION": "3.10"}, {"version": "3.10"})
    assert line["hyperparameters"] == {"rate": 3.1, "exact": "0.12345678901234567891"}


@pytest.mark.usefixtures("calls")
def test_a_plan_is_that_of_the_manifest_that_its_query_wrote(there: Account) -> None:
    ask("select * from next_grid order by region")
    (newest,) = [there.s3.buckets[BUCKET].newest(MANIFEST)]
    found = there.grid().manifest
    assert newest is not None
    assert (found.bucket, found.key, found.version) == (BUCKET, MANIFEST, newest.id)
    assert [one.region for one in there.lines()] == ["eu-central-1", "us-east-1"]


@pytest.mark.parametrize(
    "sql",
    [
        f"{DATA};",
        f"-- first\n{DATA} -- last",
        f"/* a */ {DATA}",
        "table next_grid",
        "with a as (table next_grid) table a",
    ],
)
@pytest.mark.usefixtures("calls")
def test_every_spelling_of_one_statement_that_reads_is_taken(sql: str) -> None:
    assert ask(sql)["lines"] in (1, 2)


def test_a_repeat_of_a_plan_that_was_checked_asks_no_database(there: Account, calls: DataApiOver) -> None:
    ask(DATA)
    del there.s3.buckets[BUCKET].objects[GridPrefix("sweep-7").description]
    calls.statements.clear()
    assert ask("select 1 / 0")["lines"] == 1
    assert calls.statements == []


def test_a_grid_with_a_manifest_asks_no_database(there: Account, calls: DataApiOver) -> None:
    there.upload(line())
    assert plan({"manifest": f"s3://{BUCKET}/uploads/manifest", "defaults": DEFAULTS})["lines"] == 1
    assert calls.statements == []


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("select 1 frm 2", 'ERROR: syntax error at or near "2" at character 14 (SQLSTATE 42601)'),
        ("select nope from next_grid", 'ERROR: column "nope" does not exist at character 8 (SQLSTATE 42703)'),
        (f"{DATA}; drop table trainyard.runs", "has a second statement, which begins with drop"),
        (f"{DATA}; close lines", "has a second statement, which begins with close"),
        ("", "query: is empty"),
        ("   ", "query: is empty"),
        (";", "query: is empty"),
        ("-- nothing", "query: holds comments alone"),
        (f"/* {DATA}", "unterminated /* comment"),
        ("drop table trainyard.runs", "begins with DROP, which writes"),
        ("insert into trainyard.campaigns (name) values ('x') returning name", "begins with INSERT, which writes"),
        ("update trainyard.campaigns set note = 'x'", "begins with UPDATE, which writes"),
        ("with x as (insert into campaigns (name) values ('x') returning name) table x", "data-modifying"),
        ("select * into team.mine from next_grid", "INTO"),
        ("select * from data_sets for update", "SELECT FOR UPDATE in a read-only transaction"),
        ("select * from hidden.things", "permission denied for schema hidden"),
        ("select * from trainyard.applied", "permission denied"),
        ("select rolpassword as data from pg_authid", "permission denied"),
        ("set role keeper", "begins with set"),
        ("copy data_sets to program 'id'", "begins with copy"),
        (
            f"select set_config('role', 'keeper', false) as region, * from ({DATA}) a",
            'permission denied to set role "keeper"',
        ),
        ("select set_config('session_authorization', 'keeper', false) as region", "permission denied"),
        (
            "select set_config('transaction_read_only', 'off', false) as region",
            "read-write mode must be set before any query",
        ),
        ("select nextval('team.numbers') as region", "permission denied"),
        ("select lo_import('/etc/passwd') as region", "permission denied"),
        ("select lo_create(0) as region", "read-only transaction"),
        ("select pg_read_file('/etc/passwd') as region", "permission denied"),
        ("select * from dblink('', '') as a (region text)", "does not exist"),
        (
            "select pg_terminate_backend(pid)::text as region from pg_stat_activity where pid <> pg_backend_pid()",
            "permission denied to terminate process",
        ),
        ("select :region as region", "has the placeholder :region"),
        ("select region, address as data from data_sets where region = $1", "has the placeholder $1"),
        (
            "select pg_terminate_backend(pg_backend_pid())::text as region",
            f"due to administrator command (SQLSTATE 57P01); allowed: {reading.UNENDED}",
        ),
        ("select '\\x00'::bytea as data", "the column data of the type bytea"),
        ("select 1", "gives a column without a name"),
        ("select 'a' as region, 'b' as \"Region\"", "gives the column region twice"),
        ("select 's3://data-eu/train/' as data, 's3://data-eu/train/' as s3_location", "gives the column data twice"),
        ("select 0.1 as lr", "gives the column lr, which is unknown"),
        ("select", "gives no column"),
        (f"{DATA} where false", "query: gives no row; allowed: 1 to 10,000 rows"),
        ("select 'NaN'::numeric as max_hours", "line 1: max_hours: nan is not a finite number"),
        ("select 'Infinity'::float8 as max_hours", "line 1: max_hours: inf is not a finite number"),
        ('select \'{"a": 1, "a": 2}\'::json as tags', "line 1: tags:"),
        (
            "select jsonb_build_object('lr', 1) as hyperparameters, 2 as \"hp.lr\"",
            "line 1: hyperparameters.lr: appears twice",
        ),
        ("select repeat('x', 200000) as data", "gives a row of more than 64 KB"),
        ("select 'eu-central-1' as region from generate_series(1, 10001)", "gives more than 10,000 rows"),
        ("select generate_series(1, 1e12) as volume_gb", "gives more than 10,000 rows"),
        ("select 'mars' as region, 's3://data-eu/train/' as data", "line 1: region: mars"),
    ],
)
@pytest.mark.usefixtures("calls")
def test_what_a_query_may_not_do_is_refused_in_words_and_starts_nothing(there: Account, sql: str, said: str) -> None:
    found = refusal(sql)
    assert said in found
    assert "allowed: " in found
    assert [one for one in there.changes if one != "s3:PutObject"] == []
    assert there.s3.read(BUCKET, GridPrefix("sweep-7").facts) is None


@pytest.mark.parametrize(
    "sql",
    [
        "select pg_sleep(3600)::text as region",
        "select set_config('statement_timeout', '0', false) as region, pg_sleep(3600)::text as data",
        "select * from (select set_config('statement_timeout', '0', false) as region from generate_series(1, 1000)) a "
        "union all select pg_sleep(3600)::text",
        "select count(*)::text as region from generate_series(1, 1e12)",
    ],
)
@pytest.mark.usefixtures("calls")
def test_a_query_cannot_outlast_its_time(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "STATEMENT_S", 0.5)
    assert "canceling statement due to statement timeout (SQLSTATE 57014); allowed: a query that gives" in refusal(sql)


CANCEL = "select pg_cancel_backend(pg_backend_pid()), pg_sleep(10)"
END = "select pg_terminate_backend(pg_backend_pid()), pg_sleep(10)"


@pytest.mark.parametrize("interruption", [CANCEL, END])
def test_a_query_that_another_session_interrupts_is_asked_again(interruption: str, calls: DataApiOver) -> None:
    database = DataApi(ACCESS, Interrupting(calls, interruption, times=2))
    assert reading.read_lines(database, DATA, most=5, clock=lambda: 0.0).count(b"\n") == 1


@pytest.mark.parametrize(
    ("interruption", "said"),
    [
        (CANCEL, f"user request .SQLSTATE 57014.; allowed: {reading.UNCANCELLED}"),
        (END, f"administrator command .SQLSTATE 57P01.; allowed: {reading.UNENDED}"),
    ],
)
def test_a_query_that_is_always_interrupted_is_refused_in_words(
    interruption: str, said: str, calls: DataApiOver
) -> None:
    with pytest.raises(reading.QueryRefused, match=said):
        reading.read_lines(DataApi(ACCESS, Interrupting(calls, interruption, times=3)), DATA, most=5, clock=lambda: 0.0)


def test_a_server_that_ends_the_session_of_our_own_statement_is_away_and_blames_no_query(calls: DataApiOver) -> None:
    calls_of_a_stop = Interrupting(calls, END, times=1, at="set transaction")
    with pytest.raises(DatabaseAway, match="57P01"):
        reading.read_lines(DataApi(ACCESS, calls_of_a_stop), DATA, most=5, clock=lambda: 0.0)


class Interrupting:
    """The Data API over a real PostgreSQL, in which so many of the statements that begin so are interrupted, as another session does it."""

    def __init__(self, calls: DataApiOver, interruption: str, *, times: int, at: str = "fetch") -> None:
        self.calls, self.interruption, self.left, self.at = calls, interruption, times, at

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.calls, name)

        def interrupting(**given: Any) -> Any:
            if given.get("sql", "").startswith(self.at) and self.left:
                self.left -= 1
                given["sql"] = self.interruption
            return call(**given)

        return interrupting


def test_no_statement_of_a_query_has_more_than_40_seconds_nor_more_than_is_left() -> None:
    for now, left in ((0.0, "40000ms"), (230.0, "10000ms")):
        times, calls = iter([0.0]), DataApiNothing()
        with pytest.raises(reading.QueryRefused, match="gives no column"):
            reading.read_lines(
                DataApi(ACCESS, calls), DATA, most=5, clock=lambda times=times, now=now: next(times, now)
            )
        assert [one["value"]["stringValue"] for one in calls.parameters if one["name"] == "time"] == [left, left]


@pytest.mark.usefixtures("calls")
def test_the_lines_of_a_query_have_at_most_128_mb_together(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reading.MOST_BYTES == 134_217_728
    monkeypatch.setattr(reading, "MOST_BYTES", 1024**2)
    wide = f'select a.*, n as "hp.n", repeat(\'x\', 2000) as "hp.x" from ({DATA}) a, generate_series(1, 600) n'
    assert "query: gives more than 1 MB; allowed: up to 1 MB" in refusal(wide)


def test_all_pages_together_have_their_time() -> None:
    times = iter([0.0, 0.0, reading.WHOLE_S + 1])
    with pytest.raises(reading.QueryRefused, match="takes longer than 4 minutes"):
        reading.read_lines(DataApi(ACCESS, DataApiNothing()), DATA, most=5, clock=lambda: next(times))


def test_what_a_query_sets_is_gone_with_it(calls: DataApiOver) -> None:
    ask(f"select set_config('search_path', 'hidden', false) as \"hp.path\", * from ({DATA}) a")
    assert calls.statements[-1] == "RollbackTransaction"
    assert "CommitTransaction" not in calls.statements


def test_rows_too_large_for_a_page_come_in_smaller_ones_and_none_is_lost(there: Account, calls: DataApiOver) -> None:
    wide = f'select a.*, n as "hp.n", repeat(\'x\', 2000) as "hp.x" from ({DATA}) a, generate_series(1, 1234) n'
    assert ask(wide)["lines"] == 1234
    assert [one["hyperparameters"]["n"] for one in written(there)] == list(range(1, 1235))
    assert calls.statements.count("BeginTransaction") == calls.statements.count("RollbackTransaction") == 2


@pytest.mark.parametrize("rows", [999, 1000, 1001])
@pytest.mark.usefixtures("calls")
def test_the_last_page_ends_the_rows(rows: int) -> None:
    assert ask(f'select a.*, n as "hp.n" from ({DATA}) a, generate_series(1, {rows}) n')["lines"] == rows


def test_a_bad_name_or_a_closed_admission_wakes_no_database(calls: DataApiOver) -> None:
    with pytest.raises(InvalidRequest, match="name: the execution is called"):
        plan({"query": DATA, "defaults": DEFAULTS}, {"name": "a.b", "arn": "arn:a:b", "started_at": "2026"})
    assert calls.statements == []


class DataApiNothing:
    """A Data API that answers every call with nothing, or one kind of call with an error, so many times."""

    def __init__(self, code: str = "", at: str = "", times: int = 1_000) -> None:
        self.code, self.at, self.left = code, at, times
        self.parameters: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        def call(**given: Any) -> dict[str, Any]:
            self.parameters += given.get("parameters", [])
            if name == self.at and self.left:
                self.left -= 1
                raise ClientError({"Error": {"Code": self.code, "Message": "is so"}}, name)
            return {"transactionId": "t"}

        return call


def let_answer(monkeypatch: pytest.MonkeyPatch, nothing: DataApiNothing) -> None:
    monkeypatch.setattr(handler, "DataApi", partial(DataApi, calls=nothing, sleep=lambda _: None))


@pytest.mark.parametrize(
    "code",
    ["DatabaseNotFoundException", "SecretsErrorException", "HttpEndpointNotEnabledException", "ForbiddenException"],
)
@pytest.mark.usefixtures("calls")
def test_a_database_or_a_secret_that_is_gone_is_a_refusal(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    let_answer(monkeypatch, DataApiNothing(code, "begin_transaction"))
    assert f"query: the catalogue does not let Plan in: is so ({code}); allowed: {reading.ENTRANCE}" in refusal(DATA)


@pytest.mark.parametrize("at", ["begin_transaction", "execute_statement"])
@pytest.mark.usefixtures("calls")
def test_a_login_that_is_refused_without_a_sqlstate_is_a_refusal_in_words(
    at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_answer(monkeypatch, DataApiNothing("BadRequestException", at))
    assert f"query: the catalogue does not let Plan in: is so; allowed: {reading.ENTRANCE}" in refusal(DATA)


@pytest.mark.parametrize("code", ["InternalServerErrorException", "TransactionNotFoundException"])
@pytest.mark.usefixtures("calls")
def test_a_database_that_is_away_is_no_refusal_and_plan_is_tried_again(
    code: str, there: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_answer(monkeypatch, DataApiNothing(code, "execute_statement"))
    with pytest.raises(DatabaseAway, match=code):
        ask(DATA)
    assert there.changes == []
