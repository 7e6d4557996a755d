"""Each kind of error of SQL has advice of its own: on a real PostgreSQL as far as a query can provoke it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from aws.data_api import DataApi
from contract.catalogue import KEEPER
from grid_plan import sql_states
from grid_plan.query import QueryRefused, read_lines
from grid_plan.sql_states import BY_CLASS, BY_STATE, say_allowed
from tests.fakes.catalogue import DataApiOver
from tests.functions.grid_plan.catalogue import ACCESS, serve_catalogue

REFUSED = [
    ("select region adress from data_sets where", "42601", sql_states.SYNTAX),
    ("select top 5 region from data_sets", "42601", sql_states.SYNTAX),
    ("select region from data_sets limit 5, 5", "42601", sql_states.SYNTAX),
    ("select 'open", "42601", sql_states.SYNTAX),
    ("select region from data_sets union select region, address from data_sets", "42601", sql_states.SYNTAX),
    ("select * from nowhere.things", "42P01", sql_states.TABLES),
    ("select a.region from data_sets d", "42P01", sql_states.TABLES),
    ("select * from nowhere.f()", "3F000", sql_states.TABLES),
    ("select nonsense from data_sets", "42703", sql_states.COLUMNS),
    ('select region from data_sets where campaign = "drive-eu"', "42703", sql_states.COLUMNS),
    ("select region from data_sets order by 9", "42P10", sql_states.COLUMNS),
    ("select nonsense()", "42883", sql_states.FUNCTIONS),
    ("select region from data_sets where campaign == 'x'", "42883", sql_states.FUNCTIONS),
    ("select 'x'::nonsense as region", "42704", sql_states.OBJECTS),
    ("select current_setting('nonsense') as region", "42704", sql_states.OBJECTS),
    ("select region from data_sets a, prices b", "42702", sql_states.AMBIGUOUS),
    ("select * from data_sets a, prices a", "42712", sql_states.DOUBLE),
    ("select region, count(*) from data_sets", "42803", sql_states.GROUPS),
    ("select region from data_sets where row_number() over () = 1", "42P20", sql_states.GROUPS),
    ("select lag(1) from data_sets", "42809", sql_states.GROUPS),
    ("select case when true then now() else 1 end as region", "42804", sql_states.TYPES),
    ("select now()::int as volume_gb", "42846", sql_states.TYPES),
    ("select 'x'::int as volume_gb", "22P02", sql_states.VALUES),
    ("select 1 / 0 as volume_gb", "22012", sql_states.VALUES),
    ("select 9999999999::int as volume_gb", "22003", sql_states.VALUES),
    ("select '2026-13-01'::date as region", "22008", sql_states.VALUES),
    ("select regexp_match('a', '(')::text as region", "2201B", sql_states.VALUES),
    ("select * from data_sets limit -1", "2201W", sql_states.VALUES),
    ("select (values ('a'), ('b')) as region", "21000", sql_states.ONE_ROW),
    ("select * from hidden.things", "42501", sql_states.RIGHTS),
    ("select pg_read_file('/etc/passwd') as region", "42501", sql_states.RIGHTS),
    ("select repeat('x', 2000000000) as data", "54000", sql_states.LIMITS),
    ("select team.fail() as region", "P0001", sql_states.RAISED),
    ("with x as (insert into campaigns (name) values ('x') returning name) table x", "0A000", sql_states.READABLE),
    ("select * into team.mine from data_sets", "42601", sql_states.READABLE),
    ("select * from data_sets for update", "25006", sql_states.READABLE),
    ("select set_config('transaction_read_only', 'off', false) as region", "25001", sql_states.READABLE),
]
"""Query, SQLSTATE that PostgreSQL gives it, and what is then allowed."""
UNPROVOKED = [
    ("53100", sql_states.SMALLER),
    ("53200", sql_states.SMALLER),
    ("53400", sql_states.SMALLER),
    ("54001", sql_states.LIMITS),
    ("40001", sql_states.AGAIN),
    ("40P01", sql_states.AGAIN),
    ("55P03", sql_states.AGAIN),
    ("58030", sql_states.BROKEN),
    ("XX000", sql_states.BROKEN),
    ("XX001", sql_states.BROKEN),
    ("08P01", sql_states.PARAMETERS),
    ("42P02", sql_states.PARAMETERS),
    ("42P18", sql_states.TYPES),
    ("42725", sql_states.AMBIGUOUS),
    ("42P11", sql_states.READABLE),
    ("38000", sql_states.RAISED),
    ("", sql_states.RESULTS),
    ("HV000", sql_states.OTHER),
    ("99999", sql_states.OTHER),
]
NAMES = [
    ("select regoin from data_sets", "region"),
    ("select d.adress from data_sets d", "address"),
    ('select "Region" from data_sets', "region"),
    ("select * from data_set", "data_sets"),
    ('select * from "Data_Sets"', "data_sets"),
    ("select * from team.next_gird", "next_grid"),
    ("select metric from team.scores", "metrics"),
]
"""Queries with an unknown name, and the name that is like it."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataApiOver]:
    """The catalogue, with a function of the team that always fails."""
    with serve_catalogue(tmp_path_factory.mktemp("postgres") / "data") as calls:
        keeper = DataApi(calls.access(KEEPER), calls)
        keeper.run("create function team.fail() returns text language plpgsql as $$ begin raise exception 'no'; end $$")
        keeper.run("grant execute on function team.fail() to reader")
        keeper.run("create view team.scores as select name, metrics from trainyard.runs")
        yield calls


def refusal(calls: Any, query: str) -> str:
    with pytest.raises(QueryRefused) as refused:
        read_lines(DataApi(ACCESS, calls, sleep=lambda _: None), query, most=100, clock=time.monotonic)
    return str(refused.value)


@pytest.mark.parametrize(("query", "state", "allowed"), REFUSED)
def test_an_error_of_sql_has_the_advice_of_its_kind(
    query: str, state: str, allowed: str, database: DataApiOver
) -> None:
    found = refusal(database, query)
    assert f"(SQLSTATE {state})" in found
    assert found.endswith(f"; allowed: {allowed}")


@pytest.mark.parametrize(("state", "allowed"), UNPROVOKED)
def test_an_error_that_no_query_provokes_has_the_advice_of_its_class(state: str, allowed: str) -> None:
    assert say_allowed(state, "ERROR: so it is") == allowed


def test_only_a_statement_that_does_not_read_is_told_to_read() -> None:
    states = [*BY_STATE, *(f"{one}999" for one in BY_CLASS), "99999"]
    told = {one for one in states if say_allowed(one, "") == sql_states.READABLE}
    assert told == {"42P11", "25001", "25006", "0A999", "23999"}


def test_every_advice_is_one_of_its_own_and_every_state_has_the_form_of_one() -> None:
    assert all(re.fullmatch("([0-9A-Z]{5})?", state) for state in BY_STATE)
    assert all(re.fullmatch("[0-9A-Z]{2}", one) for one in BY_CLASS)
    assert not [state for state, allowed in BY_STATE.items() if BY_CLASS.get(state[:2]) == allowed]


@pytest.mark.parametrize(("query", "meant"), NAMES)
def test_an_unknown_name_is_answered_with_the_one_that_is_like_it(
    query: str, meant: str, database: DataApiOver
) -> None:
    assert f" (did you mean {meant}?); allowed: " in refusal(database, query)


@pytest.mark.parametrize(
    "query",
    ["select quaternion from data_sets", "select rolname from pg_authid", "select one from hidden.things"],
)
def test_a_name_that_is_like_none_or_belongs_to_others_suggests_nothing(query: str, database: DataApiOver) -> None:
    assert "did you mean" not in refusal(database, query)


def test_a_hint_of_postgresql_stays_and_no_other_is_looked_up() -> None:
    calls = Refusing('ERROR: column "regoin" does not exist; Hint: Perhaps you meant "d.region".; SQLState: 42703')
    assert 'Hint: Perhaps you meant "d.region". (SQLSTATE 42703); allowed: columns' in refusal(calls, "select regoin")
    assert [one for one in calls.statements if "information_schema" in one] == []


def test_a_name_that_cannot_be_looked_up_is_refused_all_the_same() -> None:
    calls = Refusing('ERROR: column "regoin" does not exist; SQLState: 42703', away="information_schema")
    assert "does not exist (SQLSTATE 42703); allowed: columns" in refusal(calls, "select regoin")
    assert [one for one in calls.statements if "information_schema" in one] != []


class Refusing:
    """A Data API that refuses every cursor with these words, and answers the statements with `away` in them not at all."""

    def __init__(self, said: str, away: str = "?") -> None:
        self.said, self.away, self.statements = said, away, list[str]()

    def __getattr__(self, name: str) -> Any:
        def call(**given: Any) -> dict[str, Any]:
            statement = given.get("sql", "")
            self.statements.append(statement)
            if self.away in statement:
                raise ClientError({"Error": {"Code": "InternalServerErrorException", "Message": ""}}, name)
            if statement.startswith("declare"):
                raise ClientError({"Error": {"Code": "DatabaseErrorException", "Message": self.said}}, name)
            return {"transactionId": "t"}

        return call
