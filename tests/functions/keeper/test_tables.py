"""Rows are written by their key into a real PostgreSQL: late, twice and out of order change nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from aws.data_api import DataApi, StatementRefused
from keeper.market import CapacityRow
from keeper.rows import RunRow
from keeper.tables import BATCH, name_campaigns, read_types, write_capacity, write_prices, write_runs

NOW = 1_800_000_000.0
RUN = RunRow(
    name="digits-0123456789ab",
    kind="job",
    campaign="digits",
    region="eu-central-1",
    type="g5.xlarge",
    image="",
    outcome="Completed",
    metrics={"metric": 0.25},
    seconds=60.0,
    cost_usd=0.5,
    ended_at=NOW,
)


def write(database: DataApi, *rows: RunRow) -> None:
    database.run("insert into trainyard.campaigns (name) values ('digits') on conflict do nothing")
    with database.transaction() as transaction:
        write_runs(transaction, rows)


def outcomes(database: DataApi) -> dict[str, Any]:
    return dict(database.run("select name, outcome from trainyard.runs").rows)


def test_a_row_is_written_as_it_is(database: DataApi) -> None:
    write(database, RUN)
    (row,) = database.run(
        "select kind, campaign, region, type, image, metrics ->> 'metric', seconds, cost_usd, extract(epoch from ended_at)::float8 "
        "from trainyard.runs"
    ).rows
    assert row == ("job", "digits", "eu-central-1", "g5.xlarge", "", "0.25", 60.0, 0.5, NOW)


def test_a_name_that_only_looks_like_a_campaigns_has_none_until_there_is_one(database: DataApi) -> None:
    names = ("train-202611271200", "train-202611271200-r2/7", "train-b-202611271200", "train-2026")
    write(database, *(replace(RUN, name=name, campaign=name.rpartition("-2")[0]) for name in names))
    assert database.run("select distinct campaign from trainyard.runs").rows == (("",),)
    database.run("insert into trainyard.campaigns (name) values ('train'), ('.*')")
    with database.transaction() as transaction:
        name_campaigns(transaction)
    found = database.run("select name from trainyard.runs where campaign = 'train' order by name").rows
    assert [name for (name,) in found] == list(names[:2])


def test_twice_is_once(database: DataApi) -> None:
    write(database, RUN)
    write(database, RUN)
    assert outcomes(database) == {RUN.name: "Completed"}


def test_an_older_report_never_replaces_a_newer_one(database: DataApi) -> None:
    write(database, RUN)
    write(database, replace(RUN, outcome="Failed", ended_at=NOW - 0.001))
    assert outcomes(database) == {RUN.name: "Completed"}
    write(database, replace(RUN, outcome="Failed", ended_at=NOW + 1))
    assert outcomes(database) == {RUN.name: "Failed"}


def test_what_is_not_known_is_null(database: DataApi) -> None:
    write(database, replace(RUN, seconds=None, cost_usd=None))
    assert database.run("select seconds, cost_usd from trainyard.runs").rows == ((None, None),)


def test_more_rows_than_a_batch_are_all_written(database: DataApi) -> None:
    write(database, *(replace(RUN, name=f"grid/{number}", kind="line") for number in range(2 * BATCH + 1)))
    assert database.run("select count(*) from trainyard.runs").rows == ((2 * BATCH + 1,),)


@pytest.mark.parametrize("text", ["'; drop table trainyard.runs; --", 'a"b', "\\", "{}", ":now", "ü\u2028"])
def test_texts_of_people_stay_texts(database: DataApi, text: str) -> None:
    write(database, replace(RUN, image=text, metrics={text: 1.0}))
    assert database.run("select image, metrics ->> :name from trainyard.runs", {"name": text}).rows == ((text, "1.0"),)


def test_a_batch_with_a_bad_row_writes_nothing(database: DataApi) -> None:
    with pytest.raises(StatementRefused):
        write(database, RUN, replace(RUN, name="other", kind="search"))
    assert outcomes(database) == {}


def test_prices_that_are_gone_are_deleted_with_the_write_of_the_others(database: DataApi) -> None:
    for prices in ({"r a spot": 1.0, "r b spot": 2.0}, {"r b spot": 2.5, "r b on-demand": 3.0}, {}):
        with database.transaction() as transaction:
            write_prices(transaction, prices, now=NOW)
        found = database.run("select region || ' ' || type || ' ' || market, usd from trainyard.prices").rows
        assert dict(found) == prices


def test_a_price_of_an_earlier_hour_that_comes_late_replaces_none(database: DataApi) -> None:
    for usd, at in ((1.0, NOW), (9.0, NOW - 3600)):
        with database.transaction() as transaction:
            write_prices(transaction, {"r a spot": usd}, now=at)
    assert database.run("select usd from trainyard.prices").rows == ((1.0,),)


def test_reservations_that_are_gone_are_deleted(database: DataApi) -> None:
    row = CapacityRow(region="r", type="p5.48xlarge", kind="block", free=3, begins=None, ends=NOW)
    for capacity in ({"cr-1": row, "cr-2": row}, {"cr-2": replace(row, free=0)}, {}):
        with database.transaction() as transaction:
            write_capacity(transaction, capacity)
        found = database.run("select reservation, free, begins from trainyard.capacity").rows
        assert {name: (free, begins) for name, free, begins in found} == {
            name: (one.free, None) for name, one in capacity.items()
        }


def test_types_are_those_of_campaigns_and_of_runs_of_90_days(database: DataApi) -> None:
    database.run("insert into trainyard.campaigns (name, instance_types) values ('c', '{p5.48xlarge,ml.g5.xlarge}')")
    write(
        database,
        RUN,
        replace(RUN, name="old", type="p2.xlarge", ended_at=NOW - 91 * 86400),
        replace(RUN, name="none", type=""),
    )
    with database.transaction() as transaction:
        assert read_types(transaction, now=NOW) == ("g5.xlarge", "ml.g5.xlarge", "p5.48xlarge")
